-- The queue of a session: steps that clients add, change, reorder and remove, and its playback. Callers that change it hold the
-- head's lock.

-- name: insert_step
with active as (
    insert into active_sessions (session_id, organisation) values (:session_id, :organisation) on conflict do nothing
)
insert into steps (session_id, position, sort_key, organisation, kind, event_id, when_busy, overrides, context, traceparent, name,
                   definition)
values (:session_id, :position, :position, :organisation, :kind, :event_id, 'wait', :overrides, '{}', :traceparent, :name,
        :definition)

-- name: pending_steps
-- The position and id of each pending step, in the order in which they will run.
select s.position, s.event_id
from session_heads h
join steps s on s.session_id = h.session_id and s.sort_key between h.taken_position + 1 and h.seq and s.state = 'pending'
where h.session_id = $1
order by s.sort_key

-- name: reorder_steps
-- Gives the pending steps at these positions, in this order, their sort keys in ascending order.
with places as (
    select sort_key, row_number() over (order by sort_key) as n
    from steps where session_id = $1 and position = any($2::bigint[])
)
update steps s set sort_key = places.sort_key
from unnest($2::bigint[]) with ordinality as wanted (position, n) join places using (n)
where s.session_id = $1 and s.position = wanted.position

-- name: step_to_retry
-- The overrides of a step, and the step that repeats it already.
select s.overrides, (select r.event_id from steps r where r.session_id = $1 and r.definition ->> 'retry_of' = $3 limit 1) as retried_by
from steps s where s.session_id = $1 and s.event_id = $2

-- name: open_terminal
-- The step that opens the terminal of a session, if it has not ended.
select event_id from steps where session_id = $1 and kind = 'terminal' and state in ('pending', 'running') limit 1

-- name: edit_step
update steps set name = $3, definition = $4, edited_by = $5 where session_id = $1 and position = $2 and state = 'pending'

-- name: end_step
-- Ends a step that has not run.
update steps set state = $3, not_before = null, error_message = $4 where session_id = $1 and position = $2 and state = 'pending'

-- name: consume_next
-- A paused session that skips a step has used one of the steps that it may start. Returns whether it may start another one.
update session_heads set next_steps = greatest(next_steps - 1, 0) where session_id = $1
returning playing or next_steps > 0

-- name: retry_step
-- Puts a failed step back to its place in the queue. The wake flag lets the sweep find the session if Temporal loses its state.
with step as (
    update steps set state = 'pending', not_before = now() + $3 * interval '1 second'
    where session_id = $1 and position = $2
    returning sort_key, not_before
)
update session_heads h
set taken_position = least(h.taken_position, step.sort_key - 1), wake = h.wake or h.playing or h.next_steps > 0,
    wake_at = case when h.playing or h.next_steps > 0 then step.not_before else h.wake_at end
from step where h.session_id = $1

-- name: wait_for_retry
update session_heads set wake = true, wake_at = now() + $3 * interval '1 second' where session_id = $1 and epoch = $2

-- name: playback
select playing, next_steps, pause_reason from session_heads where session_id = $1 and organisation = $2

-- name: set_playback
update session_heads set playing = $2, next_steps = $3, pause_reason = $4 where session_id = $1

-- name: wake_queue
-- Wakes an idle session that may start a step and has one, or whose turn waits, or that ends because its last step was removed:
-- the claim decides. A running one looks at its queue when the turn ends.
with queue as (
    select exists (
        select from steps q
        where q.session_id = $1 and q.sort_key between h.taken_position + 1 and h.seq and q.state = 'pending') as has_steps,
        s.ends_when_done and h.turn_id is null and exists (select from steps where session_id = $1) as ends_without
    from session_heads h join sessions s on s.id = h.session_id where h.session_id = $1
), head as (
    update session_heads h set wake = true, wake_at = coalesce(h.wake_at, now()), waits_for = null
    from queue
    where session_id = $1 and status = 'idle'
      and case when queue.has_steps then playing or next_steps > 0 else queue.ends_without end
    returning session_id, organisation, wake
), active as (
    insert into active_sessions (session_id, organisation) select session_id, organisation from head where wake
    on conflict do nothing
)
select wake from head

-- name: kind_of_turn
select s.kind from turns t join steps s on s.session_id = t.session_id and s.position = t.position
where t.session_id = $1 and t.id = $2

-- name: steps
-- In the order of the queue. The turn has the result of a step that ran.
select s.session_id, s.position, s.sort_key, s.event_id, s.kind, s.state, s.name, s.definition, s.attempts, s.not_before,
       s.turn_id, s.created_at, s.error_message, t.status as turn_status, t.result, t.started_at, t.ended_at
from steps s
left join turns t on t.session_id = s.session_id and t.id = s.turn_id
where s.session_id = :session_id and s.organisation = :organisation and (:states::text[] is null or s.state = any(:states))
  and (:after::bigint is null or s.sort_key > :after) and (:event_ids::text[] is null or s.event_id = any(:event_ids))
order by s.sort_key
limit :limit

-- name: step_results
-- The last ended step of each name, with its result. Steps that were removed or interrupted do not count.
select distinct on (s.name) s.session_id, s.position, s.sort_key, s.event_id, s.kind, s.state, s.name, s.definition, s.attempts,
       s.not_before, s.turn_id, s.created_at, s.error_message, t.status as turn_status, t.result, t.started_at, t.ended_at
from steps s left join turns t on t.session_id = s.session_id and t.id = s.turn_id
where s.session_id = $1 and s.name = any($2::text[]) and s.state in ('completed', 'failed', 'skipped')
order by s.name, s.sort_key desc

-- name: external_call
-- The call that an external step waits for, and the result that was submitted.
select e.event_id, r.body as submitted, r.object_key
from turns t
join events e on e.session_id = t.session_id and e.seq >= t.first_seq and e.turn_id = t.id and e.type = 'agent.custom_tool_use'
left join events r on r.session_id = t.session_id and r.seq > e.seq and r.type = 'user.custom_tool_result' and r.ref_seq is null
    and r.body ->> 'custom_tool_use_id' = e.event_id
where t.session_id = $1 and t.id = $2
