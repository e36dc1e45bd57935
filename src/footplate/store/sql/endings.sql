-- Sessions that end. Callers hold the head's lock.

-- name: request_end
-- The commit that ends the running turn ends the session.
update session_heads set end_request = $2 where session_id = $1

-- name: head_to_end
select h.epoch, h.turn_id, s.ended_at, s.group_id
from session_heads h join sessions s on s.id = h.session_id
where h.session_id = $1

-- name: cancel_pending_steps
with cancelled as (
    update steps s set state = 'cancelled', not_before = null, error_message = $2
    from session_heads h
    where h.session_id = $1 and s.session_id = $1 and s.sort_key between h.taken_position + 1 and h.seq and s.state = 'pending'
    returning s.event_id, s.sort_key
)
select event_id from cancelled order by sort_key

-- name: mark_ended
-- A person who ends the session (`ended_by`) knows of a failed turn and of merge conflicts.
-- The epoch is raised if the session had an open turn (`has_open_turn`), so a worker that still has it is refused.
with asks as (
    update approvals set closed_at = now() where session_id = :session_id and closed_at is null
), head as (
    update session_heads
    set status = 'terminated', turn_id = null, holder = null, wake = false, wake_at = null, waits_for = null, deferred = null,
        end_request = null, next_steps = 0, epoch = epoch + case when :has_open_turn then 1 else 0 end,
        problem = case when :ended_by::text is null then problem end
    where session_id = :session_id
), conflicts as (
    update merge_conflicts set dismissed_at = now()
    where session_id = :session_id and :ended_by::text is not null and dismissed_at is null
)
update sessions set ended_at = now(), end_outcome = :outcome, end_reason = :reason, ended_by = :ended_by, updated_at = now(),
    has_failed = :outcome in ('failed', 'expired')
where id = :session_id and organisation = :organisation

-- name: finished_work
-- How the last turn of a session and its step ended, if nothing else can run: no step is pending, or this step has paused the
-- session. A session with pending steps that was paused by a client, or by a message that ended a step, waits to be played.
-- Without a turn, the last step counts that did not run.
select coalesce(t.result ->> 'error', s.error_message) as error, s.state
from session_heads h
left join lateral (select * from turns where session_id = h.session_id order by id desc limit 1) t on true
join steps s on s.session_id = h.session_id and s.position = coalesce(t.position, (
    select position from steps where session_id = $1 and state <> 'pending' order by sort_key desc limit 1))
where h.session_id = $1 and h.turn_id is null and h.status <> 'terminated'
  and (h.pause_reason = 'step_failed' and s.definition is not null and s.state in ('failed', 'cancelled') or not exists (
      select from steps q where q.session_id = $1 and q.sort_key between h.taken_position + 1 and h.seq and q.state = 'pending'))
