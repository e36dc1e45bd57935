-- Limits of organisations and members, and what they use. The counts are grouped by member.

-- name: limits
select name, scope, by_operator, value from limits where organisation = $1

-- name: set_limit
insert into limits (organisation, name, scope, by_operator, value) values ($1, $2, $3, $4, $5)
on conflict (organisation, name, scope, by_operator) do update set value = excluded.value

-- name: unset_limit
delete from limits where organisation = $1 and name = $2 and scope = $3 and by_operator = $4

-- name: lock_limit
-- Held until the transaction ends. The count must be a statement of its own, after this one, so that it sees what the previous
-- holder has committed.
select pg_advisory_xact_lock(hashtextextended($1, 0))

-- name: limited_organisations
-- Organisations that have a limit as a whole; if every organisation has one by default ($1), all of them.
select o.id from organisations o
where $1 or exists (select from limits l where l.organisation = o.id and l.scope = 'organisation')
order by o.id
limit $2

-- name: used_concurrent_turns
-- Here and below, the rows of each active session are read by their primary keys: a plan without statistics would otherwise read
-- the steps, turns and events of all sessions.
select t.principal as member, count(*) as used
from active_sessions a
cross join lateral (select * from session_heads where session_id = a.session_id and status <> 'idle' limit 1) h
cross join lateral (select * from turns where session_id = h.session_id and id = h.turn_id limit 1) t
where a.organisation = $1
group by t.principal

-- name: used_queued_steps
select e.principal as member, count(*) as used
from active_sessions a
cross join lateral (select * from session_heads where session_id = a.session_id limit 1) h
cross join lateral (
    select * from steps
    where session_id = h.session_id and sort_key between h.taken_position + 1 and h.seq and state = 'pending' offset 0
) s
cross join lateral (select * from events where session_id = s.session_id and seq = s.position limit 1) e
where a.organisation = $1
group by e.principal

-- name: used_sessions
select coalesce(owner, principal) as member, count(*) as used
from sessions where organisation = $1 and archived_at is null and ended_at is null
group by 1

-- name: used_stored_bytes
-- Outputs count for the owner of their session.
select case when f.session_id is null then f.owner else coalesce(s.owner, s.principal) end as member,
       sum(f.size_bytes)::bigint as used
from files f left join sessions s on s.id = f.session_id
where f.organisation = $1
group by 1

-- name: turn_slots
-- The running turns by member, including the one that the caller has just claimed in this transaction ($2), and how many
-- sessions of the organisation, and of the member, have a higher priority, or have waited for longer ($3).
select t.principal as member, count(*) as used, bool_or(h.session_id = $2) as is_claimed,
       (select count(*) from session_heads d where d.organisation = $1 and d.deferred = 'organisation'
          and (coalesce(d.priority, 3), d.wake_at) < (own.priority, $3)) as waiting_before,
       (select count(*) from session_heads d where d.organisation = $1 and d.deferred = t.principal
          and (coalesce(d.priority, 3), d.wake_at) < (own.priority, $3)) as member_waiting_before
from active_sessions a
cross join lateral (select * from session_heads where session_id = a.session_id and status <> 'idle' limit 1) h
cross join lateral (select * from turns where session_id = h.session_id and id = h.turn_id limit 1) t
cross join (select coalesce(priority, 3) as priority from session_heads where session_id = $2) own
where a.organisation = $1
group by t.principal, own.priority

-- name: defer_turn
-- The wake flag stays set. The sweep ignores the session, and the next free slot wakes it. The feed reports it.
with deferred as (
    update session_heads set deferred = $2 where session_id = $1 and status = 'idle' and wake
    returning organisation, session_id, seq
)
insert into feed_pending (organisation, session_id, seq, type, event_id)
select organisation, session_id, seq, 'limit.reached', 'sevt_' || replace(gen_random_uuid()::text, '-', '') from deferred

-- name: deferred_turns
-- The first ones of each organisation: by priority, then the oldest.
select organisation, session_id, deferred
from (
    select organisation, session_id, deferred,
           row_number() over (partition by organisation order by coalesce(priority, 3), wake_at) as place
    from session_heads where deferred is not null
) d
where place <= $1
order by place

-- name: release_deferred_turns
-- Other workers may release the same turns. Each is returned to one of them.
update session_heads set deferred = null
where session_id in (
    select session_id from session_heads where session_id = any($1::text[]) and deferred is not null
    order by session_id for update skip locked
)
returning session_id, priority
