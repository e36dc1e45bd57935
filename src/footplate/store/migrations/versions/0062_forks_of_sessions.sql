-- For the list of a session's forks.
create index sessions_forked on sessions ((fork ->> 'session_id'), created_at, id) where fork is not null;
