-- In the order in which the API locks them, so that the two do not wait for each other.
lock table session_heads, sessions in access exclusive mode;

-- Null for workers of older versions.
alter table workers
    add column version       text,
    add column harnesses     text[] not null default '{}',
    add column max_turns     integer,
    add column running_turns integer not null default 0,
    add column last_seen_at  timestamptz not null default now();

-- Whether an ended turn with this status and result was not successful. A completed turn can have a step that failed.
create function has_turn_failed(status text, result json) returns boolean language sql immutable parallel safe as $$
    select status in ('failed', 'limit_reached', 'timed_out') or status = 'completed' and coalesce(result ->> 'success' = 'false', false)
$$;

-- Whether the last turn or the end of the session was not successful. Written with the commit that ends either, if it changes,
-- which is seldom. `harness`: null for the deployment's default.
alter table sessions
    add column has_failed boolean not null default false,
    add column harness    text generated always as (agent ->> 'harness') stored;
update sessions s set has_failed = true
where case when s.ended_at is not null then s.end_outcome in ('failed', 'expired') else (
    select has_turn_failed(t.status, t.result) from turns t where t.session_id = s.id order by t.id desc limit 1) end;

create index session_heads_paused on session_heads (organisation, session_id) where not playing;
create index sessions_failed on sessions (organisation, created_at, id) where has_failed;
create index sessions_by_owner on sessions (organisation, coalesce(owner, principal), created_at, id);
-- For counts. Sessions with equal values share an entry, so the index is small and read as a whole.
create index sessions_counted on sessions (organisation, visible_to, owner, principal, agent_id, harness, has_failed)
    where archived_at is null;
