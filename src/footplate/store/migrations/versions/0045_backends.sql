-- Empty for workers of older versions, which run every session on their only backend.
alter table workers add column backends text[] not null default '{}';
-- Set when a worker has claimed the session and does not offer the backend of its next turn. Cleared when a turn begins.
alter table session_heads add column needs_backend text;
