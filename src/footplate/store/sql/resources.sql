-- Agents, environments, sessions and stored responses.

-- name: insert_agent
with head as (
    insert into agents (id, organisation, version, name, definition, metadata)
    values ($1, $2, 1, $3, $4, $5) returning *
), version as (
    insert into agent_versions (agent_id, version, organisation, name, definition, metadata, updated_at)
    select id, version, organisation, name, definition, metadata, updated_at from head
)
select * from head

-- name: agent
select * from agents where id = $1 and organisation = $2

-- name: agent_version
select a.id, a.organisation, v.version, v.name, v.definition, v.metadata, a.created_at, v.updated_at, a.archived_at
from agents a join agent_versions v on v.agent_id = a.id and v.version = $3
where a.id = $1 and a.organisation = $2

-- name: agent_versions
select a.id, a.organisation, v.version, v.name, v.definition, v.metadata, a.created_at, v.updated_at, a.archived_at
from agents a join agent_versions v on v.agent_id = a.id
where a.id = $1 and a.organisation = $2 and ($3::integer is null or v.version < $3)
order by v.version desc
limit $4

-- name: lock_agent
select * from agents where id = $1 and organisation = $2 for update

-- name: update_agent
with head as (
    update agents set version = version + 1, name = $2, definition = $3, metadata = $4, updated_at = now()
    where id = $1 returning *
), version as (
    insert into agent_versions (agent_id, version, organisation, name, definition, metadata, updated_at)
    select id, version, organisation, name, definition, metadata, updated_at from head
)
select * from head

-- name: archive_agent
update agents set archived_at = coalesce(archived_at, now()), updated_at = now()
where id = $1 and organisation = $2 returning *

-- name: insert_environment
insert into environments (id, organisation, name, description, config, metadata)
values (:id, :organisation, :name, :description, :config, :metadata) returning *

-- name: environment
select * from environments where id = $1 and organisation = $2

-- name: lock_environment
select * from environments where id = $1 and organisation = $2 for update

-- name: update_environment
update environments set name = $2, description = $3, config = $4, metadata = $5, updated_at = now()
where id = $1 returning *

-- name: archive_environment
update environments set archived_at = coalesce(archived_at, now()), updated_at = now()
where id = $1 and organisation = $2 returning *

-- name: delete_environment
delete from environments where id = $1 and organisation = $2 returning id

-- name: insert_session
-- Returns no row if the organisation has no such environment, or has archived it.
with session as (
    insert into sessions (id, organisation, agent_id, agent_version, agent, environment_id, environment, title, metadata,
                          context, principal, owner, mode, project_ids, workspace_id, permissions, visible_to, ends_when_done,
                          deployment_id)
    select :id, :organisation, :agent_id, :agent_version, :agent, e.id, e.config || :environment_overrides, :title,
           :metadata, :context, :principal, :principal, :mode, :project_ids, :workspace_id, :permissions, :visible_to,
           :ends_when_done, :deployment_id
    from environments e where e.id = :environment_id and e.organisation = :organisation and e.archived_at is null
    returning *
), head as (
    insert into session_heads (session_id, organisation) select id, organisation from session returning *
)
select s.*, h.status, h.input_tokens, h.output_tokens, h.cache_read, h.cache_write, h.requests, h.cost_microusd, h.active_seconds
from session s, head h

-- name: session
-- Lists of sessions use the same columns and tables (store/page_query.py). The columns from `wake` on determine the session's
-- activity. Each is read by a primary key, and the last turn only if none is open or it is parked.
select s.*, h.status, h.input_tokens, h.output_tokens, h.cache_read, h.cache_write, h.requests, h.cost_microusd, h.active_seconds,
       h.last_interaction_at, o.name as owner_name, h.wake, h.waits_for is not null as author_disabled, h.deferred is not null as is_deferred, not h.playing as is_paused,
       h.pause_reason, h.wake_at, h.claimed_at,
       case when h.turn_id is not null then (
           select json_build_object('type', e.type, 'name', e.body ->> 'name', 'created_at', e.created_at,
                                    'input', coalesce(e.body -> 'input' -> 'questions' -> 0 ->> 'question', left(coalesce(
                                        e.body -> 'input' ->> 'command', e.body -> 'input' ->> 'file_path', e.body -> 'input' ->> 'path'), 300)))
           from events e
           where e.session_id = h.session_id and e.seq = coalesce(
               (select min(a.seq) from approvals a where a.session_id = h.session_id and a.closed_at is null), h.seq)) end as current_event,
       case when s.project_ids <> '{}' then (
           select json_agg(json_build_object('id', p.id, 'name', p.name) order by array_position(s.project_ids, p.id))
           from projects p where p.id = any (s.project_ids)) end as projects,
       h.turn_id is not null as has_open_turn, (select parent_session_id from session_groups where id = s.group_id) as parent_id,
       h.turn_id is not null and exists (
           select from approvals a where a.session_id = h.session_id and a.closed_at is null and not question) as needs_approval,
       h.turn_id is not null and exists (
           select from approvals a where a.session_id = h.session_id and a.closed_at is null and question) as asks_question,
       case when h.holder is not null then exists (
           select from workers w where w.id = h.holder and w.lease_until > now()) end as holder_alive,
       exists (select from workers w where w.lease_until > now()) as any_worker_alive,
       h.needs_backend is not null and not exists (
           select from workers w where w.lease_until > now() and h.needs_backend = any (w.backends)) as lacks_backend,
       case when h.turn_id is null or h.status = 'idle' then (
           select json_build_object('status', t.status, 'success', t.result -> 'success', 'error', left(t.result ->> 'error', 300), 'waits_for_sessions',
               case when t.status = 'awaiting_tool_results' then (
                   select bool_or(g.ended_at is null) and bool_and(g.id is not null)
                   from json_array_elements_text(t.result -> 'pending') as call (id)
                   left join session_groups g on g.parent_session_id = t.session_id and g.started_by is not null
                                             and g.parent_turn_id = t.id and g.waited_for_by = call.id) end)
           from turns t where t.session_id = h.session_id order by t.id desc limit 1) end as last_turn
from sessions s join session_heads h on h.session_id = s.id left join principals o on o.id = coalesce(s.owner, s.principal)
where s.id = $1 and s.organisation = $2

-- name: visible_sessions
-- Those of the sessions that exist and that the viewer can see: $3 are the owners and audiences that include the viewer, $4
-- the projects that it is restricted to. Null: no restriction.
select s.id from sessions s
where s.id = any($1::text[]) and s.organisation = $2
  and ($3::text[] is null or coalesce(s.owner, s.principal) = any($3) or s.visible_to = any($3))
  and ($4::text[] is null or s.project_ids <> '{}' and s.project_ids <@ $4)

-- name: activity_counts
-- The sessions that have work, a pending approval or a question, by the columns that determine their activity (see `session`).
select status, wake, author_disabled, has_open_turn, needs_approval, asks_question, holder_alive, any_worker_alive, lacks_backend,
       count(*) as sessions
from (
    select h.status, h.wake, h.waits_for is not null as author_disabled, h.turn_id is not null as has_open_turn, coalesce(asks.needs_approval, false) as needs_approval,
           coalesce(asks.asks_question, false) as asks_question,
           case when h.holder is not null then coalesce(w.lease_until > now(), false) end as holder_alive,
           exists (select from workers where lease_until > now()) as any_worker_alive,
           h.needs_backend is not null and not exists (
               select from workers o where o.lease_until > now() and h.needs_backend = any (o.backends)) as lacks_backend
    from (select session_id from active_sessions union select session_id from approvals where closed_at is null
          union select session_id from session_heads where waits_for is not null) a
    join session_heads h on h.session_id = a.session_id
    left join workers w on w.id = h.holder
    left join (select session_id, bool_or(not question) as needs_approval, bool_or(question) as asks_question
               from approvals where closed_at is null group by 1) asks on asks.session_id = h.session_id
) facts
where status not in ('idle', 'terminated') or wake or needs_approval or asks_question or author_disabled
group by 1, 2, 3, 4, 5, 6, 7, 8, 9

-- name: update_session
update sessions
set title = :title, metadata = :metadata, agent = :agent, permissions = :permissions, owner = coalesce(:owner, owner),
    visible_to = coalesce(:visible_to, visible_to), updated_at = now()
where id = :id

-- name: archive_session
-- Pending approvals of the session are closed, because it accepts no more decisions. The feed reports the first archiving.
with asks as (
    update approvals set closed_at = now() where session_id = $1 and closed_at is null
), words as (
    delete from search_documents where session_id = $1
), added as (
    insert into feed_pending (organisation, session_id, seq, type, event_id)
    select s.organisation, s.id, h.seq, 'session.archived', 'sevt_' || replace(gen_random_uuid()::text, '-', '')
    from sessions s join session_heads h on h.session_id = s.id where s.id = $1 and s.archived_at is null
), head as (
    update session_heads set problem = null where session_id = $1 and problem is not null
)
update sessions set archived_at = coalesce(archived_at, now()), updated_at = now() where id = $1

-- name: lock_usage
-- Locks the totals in a fixed order, so that two deletions cannot deadlock.
select lock_usage($1)

-- name: delete_session
-- `delete_rows` deletes its events and entries; data outside of the database is deleted after the commit
-- (store/retention/deletion_cleanup.py).
with a as (delete from steps where session_id = $1), b as (delete from turns where session_id = $1),
     c as (delete from session_heads where session_id = $1), d as (delete from answers where session_id = $1),
     e as (delete from imports where session_id = $1), f as (delete from approvals where session_id = $1),
     g as (update audit set content = null where session = $1 and content is not null),
     i as (insert into hidden_deletions select id from sessions where id = $1 and visible_to <> 'organisation'),
     h as (delete from active_sessions where session_id = $1), l as (delete from shell_states where session_id = $1),
     m as (delete from inbox_states where session_id = $1), n as (delete from merge_conflicts where session_id = $1),
     o as (delete from session_comments where session_id = $1), p as (delete from session_pins where session_id = $1),
     j as (delete from files where session_id = $1 returning id, organisation),
     k as (insert into file_removals (file_id, organisation, due) select id, organisation, now() from j)
delete from sessions where id = $1

-- name: pending_calls
-- The turn's pending calls, whether it is parked or still runs: a custom tool's call waits for its result, a built-in tool's
-- call for a decision.
select call.event_id as id,
       case call.type when 'agent.custom_tool_use' then 'user.custom_tool_result' else 'user.tool_confirmation' end as answer,
       call.body ->> 'session_thread_id' as thread_id, call.body ->> 'question' = 'true' as is_question,
       call.body ->> 'waits_for_sessions' = 'true' as waits_for_sessions
from turns t join events call on call.session_id = t.session_id and call.seq >= t.first_seq and call.turn_id = t.id
where t.session_id = $1 and t.id = $2
  and (call.type = 'agent.custom_tool_use'
       or call.type in ('agent.tool_use', 'agent.mcp_tool_use') and call.body ->> 'evaluated_permission' = 'ask')
  and not exists (
      select from events e
      where e.session_id = $1 and e.seq >= t.first_seq and e.ref_seq is null
        and (e.type = 'user.custom_tool_result' and e.body ->> 'custom_tool_use_id' = call.event_id
             or e.type = 'user.tool_confirmation' and e.body ->> 'tool_use_id' = call.event_id))
order by call.seq

-- name: lock_answer
-- A retry waits here for an earlier attempt that still runs.
select pg_advisory_xact_lock($1)

-- name: answer_by_key
select id, body_hash, status, body from answers where fingerprint = $1 order by id desc limit 1

-- name: answer_by_retry
-- A stored response that was not delivered. Each response serves one retry of each number (a bit of `served`), in any order
-- of arrival. The same text sent twice on purpose therefore stays two messages.
update answers set served = served | (1::bigint << $2)
where id = (
    select id from answers
    where fingerprint = $1 and served & (1::bigint << $2) = 0 and created_at > now() - interval '2 minutes'
    order by id desc limit 1
)
returning id, status, body

-- name: forget_answer
delete from answers where id = $1

-- name: insert_answer
insert into answers (organisation, fingerprint, body_hash, served, status, body, session_id)
values (:organisation, :fingerprint, :body_hash, 1::bigint << :attempt, :status, :body, :session_id)
returning id
