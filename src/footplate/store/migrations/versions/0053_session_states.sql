-- In the order in which the API locks them, so that the two do not wait for each other.
lock table session_heads, sessions in access exclusive mode;

-- Whether an ended turn with this status and result was not successful. A completed turn can have a step that failed.
create function has_turn_failed(status text, result json) returns boolean language sql immutable parallel safe as $$
    select status in ('failed', 'limit_reached', 'timed_out') or status = 'completed' and coalesce(result ->> 'success' = 'false', false)
$$;

-- Whether the last turn or the end of the session was not successful. Written with the commit that ends either. It seldom
-- changes, so the updates of a running turn stay in place.
alter table session_heads add column has_failed boolean not null default false;
update session_heads h set has_failed = true
from sessions s
where s.id = h.session_id
  and case when s.ended_at is not null then s.end_outcome in ('failed', 'expired') else (
          select has_turn_failed(t.status, t.result) from turns t where t.session_id = h.session_id order by t.id desc limit 1) end;
create index session_heads_failed on session_heads (organisation, session_id) where has_failed;
create index session_heads_paused on session_heads (organisation, session_id) where not playing;

-- Null: the deployment's default.
alter table sessions add column harness text generated always as (agent ->> 'harness') stored;

create index sessions_by_owner on sessions (organisation, coalesce(owner, principal), created_at, id);
-- For counts. Sessions with equal values share an entry, so the index is small and read as a whole.
create index sessions_counted on sessions (organisation, visible_to, owner, principal, project_ids, agent_id, harness)
    where archived_at is null;
