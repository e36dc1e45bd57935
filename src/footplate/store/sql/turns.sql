-- Turns, from claim to commit.
-- Pending steps have sort keys between `taken_position` and `seq`. The upper bound changes no result, but with both bounds the
-- planner expects few rows and uses the index; with the lower one alone it may read every step of the session.

-- name: claim_step
-- Claims an idle session whose next step is a message, without a transaction. While this waits for the head's lock, other transactions may commit changes that
-- its snapshot does not show: a step, or other tools for the agent. Only the head is read anew. The result is therefore empty
-- if `seq` has changed meanwhile, and an empty result does not mean that there is no work: the caller then runs `claim_head`.
-- The wake flag stays set until `begin_turn`, so the sweep finds the session if this worker dies in between. A worker that is
-- recorded on an idle session has started nothing, so the claim does not wait for it.
with seen as (
    select seq from session_heads where session_id = $1
), old as (
    select session_id, seq, taken_position from session_heads
    where session_id = $1 and organisation = $2 and turn_id is null and (playing or next_steps > 0)
      and status <> 'terminated'
    for update
), step as (
    select s.* from old cross join lateral (
        select * from steps where session_id = $1 and sort_key between old.taken_position + 1 and old.seq and state = 'pending'
        order by sort_key limit 1
    ) s
    where s.definition is null and acting_principal((select principal from events where session_id = $1 and seq = s.position)) is distinct from ''
), head as (
    update session_heads h
    set epoch = h.epoch + 1, holder = $3, claimed_at = now()
    from old, seen, step
    where h.session_id = old.session_id and old.seq = seen.seq
    returning h.epoch, h.seq, h.entries, h.control_seq, null::text as old_holder
)
select head.*, step.position, step.sort_key, step.event_id, step.overrides, step.context, step.traceparent, e.body as input_body,
       e.object_key as input_object, e.created_at as accepted_at, acting_principal(e.principal) as author_id,
       p.name as author_name, p.kind as author_kind, se.agent, se.environment, se.fork, se.mode,
       se.context as session_context, se.project_ids, se.bases, se.resources, se.outputs, se.ends_when_done,
       (select state from shell_states where session_id = se.id) as shell,
       case when se.fork is not null then se.created_at end as forked_at
from head, step
join sessions se on se.id = step.session_id
cross join lateral (select * from events where session_id = step.session_id and seq = step.position limit 1) e
left join principals p on p.id = acting_principal(e.principal)

-- name: claim_head
-- Raises the epoch: from here on every older writer is refused. Clears the wake flag in the same statement.
with old as (
    select h.session_id, h.holder, h.status, h.wake_at, h.claimed_at, s.ends_when_done
    from session_heads h join sessions s on s.id = h.session_id
    where h.session_id = $1 and h.organisation = $2 and h.status <> 'terminated'
    for update of h
)
update session_heads h
set epoch = h.epoch + 1, wake = false, wake_at = null, deferred = null, needs_backend = null, holder = $3, claimed_at = now()
from old
where h.session_id = old.session_id
returning h.epoch, h.seq, h.entries, h.inherited_entries, h.turn_id, h.control_seq, h.playing or h.next_steps > 0 as may_start, old.status as old_status,
          old.holder as old_holder, old.wake_at as old_wake_at, old.claimed_at as old_claimed_at, old.ends_when_done

-- name: lease_lives
select lease_until > clock_timestamp() from workers where id = $1

-- name: release_head
-- The claim has found nothing to run, so the session has not run since it was claimed before ($3).
update session_heads set holder = null, claimed_at = $3 where session_id = $1 and epoch = $2

-- name: turn_of_head
select t.*, s.agent, s.fork, s.ends_when_done, s.context as session_context, s.project_ids, s.bases, s.resources, s.outputs, e.body as input_body,
       (select state from shell_states where session_id = s.id) as shell,
       e.object_key as input_object, st.traceparent, case when s.fork is not null then s.created_at end as forked_at,
       st.kind, st.name, st.definition, st.event_id, st.attempts, st.sort_key, t.principal as author_id, p.name as author_name, p.kind as author_kind
from turns t
join sessions s on s.id = t.session_id
join events e on e.session_id = t.session_id and e.seq = t.position
join steps st on st.session_id = t.session_id and st.position = t.position
left join principals p on p.id = t.principal
where t.session_id = $1 and t.id = $2

-- name: last_completed
select max(started_at) as started_at from turns where session_id = $1 and status = 'completed'

-- name: next_step
-- The author is empty if the sender is disabled and has no successor: then the step has to wait.
select s.position, s.sort_key, s.event_id, s.overrides, s.context, s.traceparent, s.when_busy, s.kind, s.name, s.definition,
       s.attempts, extract(epoch from s.not_before - now())::float8 as wait_seconds, e.body as input_body,
       e.object_key as input_object, e.created_at as accepted_at, coalesce(s.edited_by, e.principal) as sender_id, acting_principal(coalesce(s.edited_by, e.principal)) as author_id,
       p.name as author_name, p.kind as author_kind, se.agent, se.environment, se.fork, se.mode,
       se.context as session_context, se.project_ids, se.bases, se.resources, se.outputs, se.ends_when_done,
       (select state from shell_states where session_id = se.id) as shell,
       case when se.fork is not null then se.created_at end as forked_at
-- The step first and its event by position: a plan without statistics would otherwise read every event of the session.
from session_heads h
cross join lateral (
    select * from steps where session_id = h.session_id and sort_key between h.taken_position + 1 and h.seq and state = 'pending'
    order by sort_key limit 1
) s
join sessions se on se.id = s.session_id
cross join lateral (select * from events where session_id = s.session_id and seq = s.position limit 1) e
left join principals p on p.id = acting_principal(coalesce(s.edited_by, e.principal))
where h.session_id = $1

-- name: wait_for_author
update session_heads set waits_for = $3 where session_id = $1 and epoch = $2

-- name: outlook
-- The expected next turn of an idle session without queued work. Excludes sessions with projects, whose first turn decides
-- their bases.
select h.epoch, h.seq, h.entries, h.control_seq, s.agent, s.environment, s.mode, s.context as session_context
from session_heads h join sessions s on s.id = h.session_id
where h.session_id = $1 and h.organisation = $2 and h.turn_id is null and not h.wake and s.archived_at is null and s.ended_at is null
  and s.project_ids = '{}'

-- name: begin_turn
-- Starts a turn in one statement: consumes the message (its second position) or records the start of another step
-- (`step_event_id`), sets the session to running and inserts the turn.
-- Returns no row if another worker has claimed the session, or if it has changed since position `expected_seq`, which the
-- claim read (null for a caller that holds the head's lock).
with head as (
    update session_heads
    set seq = seq + 2, status = 'running', turn_id = :turn_id, taken_position = :sort_key, wake = false, wake_at = null,
        waits_for = null, deferred = null, needs_backend = null, holder = :holder, next_steps = greatest(next_steps - 1, 0),
        problem = null, problem_turn = null, problem_at = null
    where session_id = :session_id and epoch = :epoch and (:expected_seq::bigint is null or seq = :expected_seq)
    returning seq, entries
), active as (
    insert into active_sessions (session_id, organisation) select :session_id, :organisation from head on conflict do nothing
), step as (
    update steps set state = 'running', turn_id = :turn_id, attempts = attempts + 1, not_before = null
    from head where session_id = :session_id and position = :position
), turn as (
    insert into turns (session_id, id, organisation, position, input_event_id, status, first_seq, controls_seq, config, context,
                       started_at, deadline_at, principal)
    select :session_id, :turn_id, :organisation, :position, :input_event_id, 'running', head.seq - 1, :position, :config,
           :context, now(), now() + :timeout_seconds * interval '1 second',
           (select coalesce(nullif(acting_principal(sender), ''), sender) from (
               select coalesce(q.edited_by, e.principal) as sender from events e, steps q
               where e.session_id = :session_id and e.seq = :position
                 and q.session_id = :session_id and q.position = :position) senders)
    from head
), new_events as (
    insert into events (session_id, seq, organisation, turn_id, event_id, type, ref_seq, processed_at, body, entries)
    select :session_id, head.seq - 1, :organisation, :turn_id, coalesce(:step_event_id, :input_event_id),
           case when :step_event_id::text is null then 'user.message' else 'step.started' end,
           case when :step_event_id::text is null then :position::bigint end, now(), :step_body::json, entries from head
    union all
    select :session_id, head.seq, :organisation, :turn_id, :running_event_id, 'session.status_running', null, now(),
           '{}'::json, entries from head
)
select seq, now() as created_at from head

-- name: resume_turn
-- The time limit ($3, in seconds) of a turn that waited for a person starts anew. Its attempt does not count as a lost worker.
update turns
set attempt = attempt + 1, status = 'running',
    handed_over = handed_over + case when status = 'running' then 0 else 1 end,
    deadline_at = case when status = 'running' then deadline_at else now() + $3 * interval '1 second' end
where session_id = $1 and id = $2
returning attempt, failures, handed_over, controls_seq, extract(epoch from deadline_at - now())::float8 as seconds_left

-- name: set_head_status
update session_heads set status = $3 where session_id = $1 and epoch = $2

-- name: end_turn
-- Ends or parks a turn. The caller holds the head's lock and has appended the last events in the same transaction. Returns
-- whether the session has more work, and sets the wake flag if so: if Temporal loses its state now, the sweep finds the
-- session. A parked turn whose results have all arrived already, or that was interrupted while it was parked
-- (`obeys_interrupt`), is not idle: the next claim resumes it. A parked turn that resumes obeys only interrupts that arrived
-- after it was parked, and that one.
-- `problem`: why the turn needs a person, if it failed.
with turn as (
    update turns
    set status = :status, result = :result, ended_at = case when :is_over then now() end,
        controls_seq = case when :is_over or :obeys_interrupt then controls_seq
                            else (select seq + 1 from session_heads where session_id = :session_id) end
    where session_id = :session_id and id = :turn_id
    returning position, started_at
), step as (
    update steps set state = :step_state where :is_over and session_id = :session_id and position = (select position from turn)
), asks as (
    update approvals set closed_at = now()
    where :is_over and session_id = :session_id and turn_id = :turn_id and closed_at is null
), outcome as (
    update sessions set has_failed = not has_failed
    from turn where :is_over and id = :session_id and has_failed <> has_turn_failed(:status, :result)
)
update session_heads h
set status = case when :is_running then 'running' else 'idle' end, holder = null,
    turn_id = case when :is_over then null else turn_id end,
    problem = :problem, problem_turn = case when :problem::text is not null then :turn_id end,
    problem_at = case when :problem is not null then now() end,
    active_seconds = active_seconds + extract(epoch from now() - h.claimed_at),
    (wake, wake_at) = (select more, case when more then coalesce(h.wake_at, now()) end from (
        select h.wake or :obeys_interrupt or exists (
            select from steps q
            where q.session_id = :session_id and q.sort_key between h.taken_position + 1 and h.seq and q.state = 'pending'
        ) and (h.playing or h.next_steps > 0) as more) work)
from turn
where h.session_id = :session_id and h.epoch = :epoch and h.turn_id = :turn_id
returning h.wake as more

-- name: finish_turn
-- Ends a turn that waits for nothing in one statement: appends its last events, stores its result and sets the session to
-- idle, with the wake flag if there is more work (see `end_turn`). Returns no row if another worker has claimed the session,
-- or if an interrupt must be consumed first.
with head as (
    update session_heads h
    set seq = seq + cardinality(:event_ids::text[]), status = 'idle', holder = null, turn_id = null,
        active_seconds = active_seconds + extract(epoch from now() - h.claimed_at),
        (wake, wake_at) = (select more, case when more then coalesce(h.wake_at, now()) end from (select h.wake or exists (
            select from steps q
            where q.session_id = :session_id and q.sort_key between h.taken_position + 1 and h.seq and q.state = 'pending'
        ) and (h.playing or h.next_steps > 0) as more) work)
    where session_id = :session_id and organisation = :organisation and epoch = :epoch and turn_id = :turn_id
      and control_seq < :controls_seq and end_request is null
    returning seq, entries, wake
), turn as (
    update turns set status = :status, result = :result, ended_at = now()
    from head where session_id = :session_id and id = :turn_id
    returning position
), step as (
    -- A subquery instead of a join, whose plan would read every step of the session.
    update steps set state = :step_state where session_id = :session_id and position = (select position from turn)
), asks as (
    update approvals set closed_at = now() from head where session_id = :session_id and turn_id = :turn_id and closed_at is null
), outcome as (
    update sessions set has_failed = not has_failed
    from head where id = :session_id and has_failed <> has_turn_failed(:status, :result)
), new_events as (
    insert into events (session_id, seq, organisation, turn_id, event_id, type, body, object_key, processed_at, entries)
    select :session_id, head.seq - cardinality(:event_ids::text[]) + n, :organisation, :turn_id, event_id, type, body::json,
           nullif(object_key, ''), now(), head.entries
    from head, unnest(:event_ids::text[], :event_types::text[], :event_bodies::text[], :event_object_keys::text[])
        with ordinality as b (event_id, type, body, object_key, n)
)
select seq, now() as created_at, wake as more from head

-- name: fail_once
update turns set failures = failures + 1 where session_id = $1 and id = $2 returning failures

-- name: set_turn_result
update turns set result = $3 where session_id = $1 and id = $2

-- name: park_head
update session_heads
set status = 'rescheduling', holder = null, active_seconds = active_seconds + extract(epoch from now() - claimed_at)
where session_id = $1 and epoch = $2 and turn_id = $3
returning session_id

-- name: hand_over
-- Releases the turn at a safe point, when all of its commands have ended, so the next worker need not wait.
with head as (
    update session_heads set holder = null, active_seconds = active_seconds + extract(epoch from now() - claimed_at)
    where session_id = $1 and epoch = $2
    returning session_id
)
update turns t set handed_over = handed_over + 1 from head where t.session_id = head.session_id and t.id = $3

-- name: steering
-- Messages that may join the running turn: only from the front of the queue, so that no message overtakes another one, and up
-- to the first one whose author is disabled. Steps that clients have added (`wait`) are not messages: they can be overtaken.
select s.position, s.event_id, e.body, e.object_key
from session_heads h
join steps s on s.session_id = h.session_id and s.sort_key > h.taken_position and s.state = 'pending' and s.when_busy = 'steer'
join events e on e.session_id = s.session_id and e.seq = s.position
where h.session_id = $1
  and s.sort_key < coalesce(
      (select min(q.sort_key) from steps q join events f on f.session_id = q.session_id and f.seq = q.position
       where q.session_id = $1 and q.sort_key > h.taken_position and q.state = 'pending' and q.when_busy <> 'wait'
         and (q.when_busy <> 'steer' or acting_principal(f.principal) = '')),
      9223372036854775807)
order by s.sort_key

-- name: steered
-- Steps that were overtaken stay behind `taken_position`.
with head as (
    update session_heads h
    set waits_for = null, taken_position = coalesce(
        (select min(sort_key) - 1 from steps
         where session_id = $1 and sort_key > h.taken_position and state = 'pending' and position <> all($2::bigint[])),
        (select max(sort_key) from steps where session_id = $1 and position = any($2::bigint[])))
    where session_id = $1
)
update steps set state = 'completed', turn_id = $3 where session_id = $1 and position = any($2::bigint[])

-- name: steered_into
select s.position, s.event_id, e.body, e.object_key
from steps s
join events e on e.session_id = s.session_id and e.seq = s.position
where s.session_id = $1 and s.turn_id = $2 and s.when_busy = 'steer' and s.state = 'completed'
order by s.sort_key

-- name: lock_epoch
select control_seq, end_request, turn_id from session_heads where session_id = $1 and epoch = $2 for update

-- name: interrupts
-- Interrupts that this turn must obey: not consumed yet, or consumed by an earlier attempt of this turn. Interrupts that
-- were processed on receipt found the session idle.
select e.seq, e.event_id, e.body, t.seq is not null as taken
from events e
left join events t on t.session_id = e.session_id and t.ref_seq = e.seq
where e.session_id = $1 and e.seq >= $2 and e.type = 'user.interrupt' and e.ref_seq is null and e.processed_at is null
  and (t.seq is null or t.turn_id = $3)
order by e.seq

-- name: interrupted_threads
-- The threads of subagents that a person has interrupted since this turn began.
select distinct body ->> 'session_thread_id' as thread_id from events
where session_id = $1 and seq >= $2 and type = 'user.interrupt' and ref_seq is null and body ->> 'session_thread_id' is not null

-- name: has_thread
select exists (
    select from events
    where session_id = $1 and type = 'session.thread_created' and body ->> 'session_thread_id' = $2
)

-- name: wants_interrupt
select exists (
    select from steps where session_id = $1 and state = 'pending' and when_busy = 'interrupt' and position >= $2
) as wanted

-- name: answered_calls
select coalesce(body ->> 'custom_tool_use_id', body ->> 'tool_use_id') as id
from events
where session_id = $1 and seq >= $2 and type in ('user.custom_tool_result', 'user.tool_confirmation') and ref_seq is null

-- name: left_answers
-- The custom tool calls, results and decisions of the previous turn, if the turn that starts at $2 superseded it.
select e.event_id, e.type, e.body, e.object_key
from (select t.first_seq, t.result from turns t where t.session_id = $1 and t.first_seq < $2 order by t.first_seq desc limit 1) t
join events e on e.session_id = $1 and e.seq >= t.first_seq and e.seq < $2 and e.ref_seq is null
where t.result ->> 'superseded' = 'true'
  and e.type in ('agent.custom_tool_use', 'user.custom_tool_result', 'user.tool_confirmation')
order by e.seq

-- name: turn
select t.* from turns t where t.session_id = $1 and t.organisation = $2 and t.id = $3

-- name: turns
select t.* from turns t
where t.session_id = $1 and t.organisation = $2 and ($3::text is null or t.id < $3)
order by t.id desc
limit $4
