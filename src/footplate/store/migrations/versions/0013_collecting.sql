-- Which sessions began with a base: asked before it is removed from the object store.
create index sessions_by_project on sessions using gin (project_ids);

-- When an archived session was last touched: its events are in the object.
alter table archives add column last_event_at timestamptz;
