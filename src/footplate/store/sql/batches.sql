-- Batches: their jobs are sessions, and each statement here adds or reads the rows of all jobs at once.

-- name: insert_batch
insert into session_groups (id, organisation, kind, name, principal, owner, visible_to, max_running, definition, total, started)
values (:id, :organisation, 'batch', :name, :principal, :principal, :visible_to, :max_running, :definition, :total, :started)

-- name: environments_of
select id, archived_at from environments where id = any($1::text[]) and organisation = $2

-- name: insert_jobs
-- The sessions of a batch, in its order, with their heads. Jobs beyond `started` are paused until others have ended.
-- Returns how many were added: fewer than wanted if an environment was archived meanwhile.
with job as (
    select j.*, n::integer - 1 as place
    from unnest(:ids::text[], :custom_ids::text[], :agent_numbers::integer[], :environment_ids::text[], :titles::text[],
                :metadata::text[], :contexts::text[], :project_ids::text[], :workspace_ids::text[], :permissions::text[],
                :seqs::integer[])
        with ordinality as j (id, custom_id, agent, environment_id, title, metadata, context, project_ids, workspace_id,
                              permissions, seq, n)
), agent as (
    select a.agent::jsonb as agent, n::integer - 1 as number from unnest(:agents::text[]) with ordinality as a (agent, n)
), session as (
    insert into sessions (id, organisation, agent_id, agent_version, agent, environment_id, environment, title, metadata, context,
                          principal, owner, mode, project_ids, workspace_id, permissions, visible_to, ends_when_done, group_id,
                          group_index, group_name)
    select j.id, :organisation, a.agent ->> 'id', (a.agent ->> 'version')::integer, a.agent, e.id, e.config,
           coalesce(j.title, j.custom_id), j.metadata::jsonb,
           j.context::jsonb, :principal, :principal, :mode, array(select jsonb_array_elements_text(j.project_ids::jsonb)),
           j.workspace_id, j.permissions::jsonb, :visible_to, true, :batch_id, j.place, j.custom_id
    from job j join agent a on a.number = j.agent
    join environments e on e.id = j.environment_id and e.organisation = :organisation and e.archived_at is null
    returning id, group_index
), head as (
    insert into session_heads (session_id, organisation, seq, priority, wake, wake_at, playing, pause_reason)
    select j.id, :organisation, j.seq, :priority, place < :started, case when place < :started then now() end,
           place < :started, case when place >= :started then :pause_reason end
    from job j
), active as (
    insert into active_sessions (session_id, organisation) select id, :organisation from job
)
select count(*) from session

-- name: insert_job_events
insert into events (session_id, seq, organisation, event_id, type, principal, processed_at, body, object_key, entries)
select session_id, seq, :organisation, event_id, type, :principal, case when type <> 'user.message' then now() end, body::json,
       nullif(object_key, ''), 0
from unnest(:session_ids::text[], :seqs::bigint[], :event_ids::text[], :types::text[], :bodies::text[], :object_keys::text[])
    as e (session_id, seq, event_id, type, body, object_key)

-- name: insert_job_steps
insert into steps (session_id, position, sort_key, organisation, kind, event_id, when_busy, overrides, context, traceparent, name,
                   definition)
select session_id, seq, seq, :organisation, kind, event_id, case when definition is null then 'queue' else 'wait' end,
       overrides::json, '{}', :traceparent, name, definition::json
from unnest(:session_ids::text[], :seqs::bigint[], :event_ids::text[], :kinds::text[], :overrides::text[], :names::text[],
            :definitions::text[])
    as e (session_id, seq, event_id, kind, overrides, name, definition)

-- name: batch
-- Lists of batches use the same columns and tables (store/page_query.py). The jobs of a batch that has ended are not counted
-- again.
select s.*, c.pending, c.running, c.waiting
from session_groups s
left join lateral (
    select count(*) filter (where state = 'pending') as pending, count(*) filter (where state = 'running') as running,
           count(*) filter (where state = 'waiting') as waiting
    from group_members where group_id = s.id) c on s.ended_at is null
where s.id = $1 and s.organisation = $2 and s.kind = 'batch'
  and ($3::text[] is null or coalesce(s.owner, s.principal) = any($3) or s.visible_to = any($3))

-- name: jobs
-- `after` is the index, or with `in_order_of_ending` the number, after which the page starts. The rows of `turns` are read
-- for the page alone.
select j.*, last.result, coalesce(t.turns, 0) as turns, t.started_at
from (
    select * from group_members
    where group_id = :batch_id and organisation = :organisation
      and (:audiences::text[] is null or owner = any(:audiences) or visible_to = any(:audiences))
      and (:states::text[] is null or state = any(:states)) and (:custom_id::text is null or group_name = :custom_id)
      and case when :in_order_of_ending then group_end > :after else group_index > :after end
    order by case when :in_order_of_ending then group_end else group_index end
    limit :limit
) j
left join lateral (select result from turns where session_id = j.session_id order by id desc limit 1) last on true
left join lateral (
    select count(*) as turns, min(started_at) as started_at from turns where session_id = j.session_id) t on true
order by case when :in_order_of_ending then j.group_end else j.group_index end

-- name: jobs_to_retry
select s.id, s.group_name, s.agent, s.environment_id, s.title, s.metadata, s.context, s.project_ids, s.workspace_id,
       s.permissions
from sessions s join group_members m on m.session_id = s.id
where m.group_id = $1 and m.state = any($2::text[]) and ($3::text[] is null or m.owner = any($3) or m.visible_to = any($3))
order by s.group_index

-- name: first_inputs
-- The message or the steps with which these sessions were created, in the same transaction.
select e.session_id, e.body, e.object_key, q.kind, q.name, q.definition, q.overrides
from sessions s
join steps q on q.session_id = s.id
join events e on e.session_id = s.id and e.seq = q.position and e.created_at = s.created_at
where s.id = any($1::text[])
order by e.session_id, e.seq

-- name: granted_rules
-- Approvals that may have added a rule to the session. Large bodies are in the object store.
select session_id, body, object_key from events
where session_id = any($1::text[]) and type = 'user.tool_confirmation' and ref_seq is null
  and (object_key is not null or body ->> 'session_rule' is not null)

-- name: cancel_batch
update session_groups set cancelled_at = coalesce(cancelled_at, now())
where id = $1 and organisation = $2 and kind = 'batch' and ended_at is null
