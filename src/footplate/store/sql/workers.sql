-- Workers' leases, and the state of a worker's turns.

-- name: renew_lease
-- One statement for all turns of a worker. Returns the epochs of its sessions (if one has changed, the worker has lost that
-- session) and their control positions.
with lease as (
    insert into workers (id, host, lease_until, backends, version, harnesses, max_turns, schema_revision, running_turns,
                         last_seen_at)
    values (:id, :host, clock_timestamp() + :lease_seconds * interval '1 second', :backends, :version, :harnesses,
            :max_turns, :schema_revision, cardinality(:session_ids::text[]), clock_timestamp())
    on conflict (id) do update
    set lease_until = excluded.lease_until, running_turns = excluded.running_turns, last_seen_at = excluded.last_seen_at
)
select session_id, epoch, control_seq from session_heads where session_id = any(:session_ids::text[])

-- name: release_forgotten
-- Releases turns that the worker has claimed and does not run: it lost its lease on them and then renewed it. Temporal repeats
-- such a turn, unless it has lost its state. Without a holder, the sweep finds the turn.
update session_heads h set holder = null
from active_sessions a
where a.session_id = h.session_id and h.holder = $1 and h.status = 'running' and h.session_id <> all($2::text[])
  and h.claimed_at < now() - $3 * interval '1 second'
returning h.session_id

-- name: lapsed_lease
-- Whether the lease of a worker that did not end it has expired, with the same margin that its guardians have.
select lease_until < clock_timestamp() - interval '10 seconds' as lapsed from workers where id = $1

-- name: end_lease
delete from workers where id = $1

-- name: record_api_process
-- Also forgets processes that were killed long ago.
with forgotten as (delete from api_processes where last_seen_at < clock_timestamp() - interval '1 day')
insert into api_processes (id, host, version, schema_revision, last_seen_at) values ($1, $2, $3, $4, clock_timestamp())
on conflict (id) do update set last_seen_at = excluded.last_seen_at

-- name: end_api_process
delete from api_processes where id = $1

-- name: schema_requirement
-- The oldest code that can use the schema, as the newest revision that it knows.
select revision, needs_code from schema_requirements order by needs_code desc limit 1

-- name: to_wake
-- Sessions whose wake signal failed or was lost after the commit, and turns whose worker was lost long ago. Skips sessions
-- whose turn runs or waits for its next attempt: their workflow checks the flag when the turn ends. Skips sessions whose turn
-- waits because of a limit: they are woken when there is room (store/log/deferred_turns.py). In a random order, with the
-- organisations and priorities in turns: many sessions whose turns wait for a worker must not hide one that was lost.
select h.organisation, h.session_id, h.priority
from active_sessions a
join session_heads h on h.session_id = a.session_id
left join workers w on w.id = h.holder
where case when h.status = 'idle' then h.wake and h.deferred is null and h.wake_at < now() - $1 * interval '1 second'
      when h.status = 'terminated' then false
      else h.claimed_at < now() - case when h.status = 'running' then $2 else 10 * $2 end * interval '1 second'
           and (w.id is null or w.lease_until < now() - $2 * interval '1 second') end
order by row_number() over (partition by h.organisation, h.priority order by random())
limit $3

-- name: workers
select id, host, version, backends, harnesses, max_turns, running_turns, started_at, last_seen_at, lease_until > now() as is_alive
from workers order by started_at desc, id

-- name: database_versions
select current_setting('server_version') as postgresql, (select version_num from alembic_version) as schema_revision

-- name: workers_by_backend
select backend, count(*) as workers from workers, unnest(backends) backend where lease_until > now() group by 1

-- name: record_missing_backend
-- The worker $3 has claimed the session and does not offer the backend of its next turn, which it has not begun. $4 is the
-- epoch that its claim has left. A later claim knows better.
update session_heads
set needs_backend = $2, holder = case when holder = $3 and status = 'idle' then null else holder end
where session_id = $1 and epoch = $4

-- name: forget_answers
delete from answers where id in (
    select id from answers where created_at < now() - interval '24 hours' order by created_at limit 5000
)

-- name: forget_active
-- Takes the head's lock, so that a concurrent wake waits and then inserts the row again.
delete from active_sessions where session_id in (
    select h.session_id from active_sessions a join session_heads h on h.session_id = a.session_id
    where a.since < now() - interval '1 minute' and h.status in ('idle', 'terminated') and not h.wake
      -- Sessions with pending steps count for the limit on queued steps.
      and not exists (select from steps s where s.session_id = h.session_id and s.sort_key > h.taken_position and s.state = 'pending')
    limit 5000
    for update of h skip locked
)

-- name: forget_workers
delete from workers where lease_until < now() - interval '1 day'
