-- Tool calls that wait for approval, and questions that wait for a reply.

-- name: confirmations
-- The decisions on these calls, and the replies to these questions.
select seq, event_id, type, turn_id, created_at, processed_at, body, object_key from events
where session_id = $1 and ref_seq is null
  and (type = 'user.tool_confirmation' and body ->> 'tool_use_id' = any($2::text[])
       or type = 'user.custom_tool_result' and body ->> 'custom_tool_use_id' = any($2) and body ->> 'answered_by' is not null)

-- name: thread_of_ask
select body ->> 'session_thread_id' as thread_id from events where session_id = $1 and event_id = $2 and ref_seq is null

-- name: answer_ask
update approvals set closed_at = now(), outcome = $3, principal = $4, reply = $5
where session_id = $1 and event_id = $2 and closed_at is null

-- name: allow_for_session
-- Adds an allow rule to the session. The caller holds the head's lock.
update sessions
set permissions = jsonb_set(permissions, '{allow}', coalesce(permissions -> 'allow', '[]') || to_jsonb($2::text)), updated_at = now()
where id = $1 and not coalesce(permissions -> 'allow', '[]') ? $2

-- name: turn_authors
-- The author of the message or step that the turn processes and of each message that joined it, the member who edited the step,
-- and the member in whose name the turn runs.
select e.principal from steps s join events e on e.session_id = s.session_id and e.seq = s.position
where s.session_id = $1 and s.turn_id = $2
union
select edited_by from steps where session_id = $1 and turn_id = $2 and edited_by is not null
union
select principal from turns where session_id = $1 and id = $2

-- name: edits
-- Edited inputs of calls that are still pending.
select event_id, edited_input as input, edited_by as id, edited_name as name from approvals
where session_id = $1 and event_id = any($2::text[]) and closed_at is null and edited_input is not null

-- name: edit_ask
update approvals set edited_input = $3, edited_by = $4, edited_name = $5
where session_id = $1 and event_id = $2 and closed_at is null

-- name: approval
select a.event_id as id, a.*, e.body, e.object_key, s.title
from approvals a join sessions s on s.id = a.session_id
left join events e on e.session_id = a.session_id and e.seq = a.seq
where a.event_id = $1 and a.organisation = $2 and a.question = $5
  and ($3::text[] is null or coalesce(s.owner, s.principal) = any($3) or s.visible_to = any($3))
  and ($4::text[] is null or s.project_ids <> '{}' and s.project_ids <@ $4)

-- name: due_asks
select a.organisation, a.session_id, a.event_id, a.expires_at, a.question, e.body, e.object_key,
       coalesce(p.approvals ->> 'outcome', 'deny') as outcome
from approvals a left join policies p on p.organisation = a.organisation
left join events e on a.question and e.session_id = a.session_id and e.seq = a.seq
where a.closed_at is null and a.expires_at < now() order by a.expires_at limit $1
