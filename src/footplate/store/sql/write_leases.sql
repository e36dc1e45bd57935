-- Write leases: one writer at a time for each resource.

-- name: queue_to_write
-- Also removes waiters that stopped polling long ago.
with gone as (
    delete from write_queue
    where organisation = $1 and place = $2 and asked_at < clock_timestamp() - interval '1 hour'
)
insert into write_queue (organisation, place, asker) values ($1, $2, $3)
on conflict (asker) do update set asked_at = clock_timestamp()
returning ticket

-- name: ask_to_write
update write_queue set asked_at = clock_timestamp() where ticket = $1

-- name: take_to_write
-- The first live waiter in the queue gets the lease once it is free or expired. A retry of the statement finds the lease held
-- by its own ticket, with the same token. `is_successor`: the caller is known to be the holder's only
-- successor and gets it at once.
insert into write_leases as l (organisation, place, token, ticket, holder, since, until)
select :organisation, :place, 1, :ticket, :holder, clock_timestamp(), clock_timestamp() + :lease_seconds * interval '1 second'
where not exists (
    select from write_queue
    where organisation = :organisation and place = :place and ticket < :ticket
      and asked_at > clock_timestamp() - :dead_after_seconds * interval '1 second'
) or (:is_successor and exists (
    select from write_leases where organisation = :organisation and place = :place and holder = :holder))
on conflict (organisation, place) do update
set token = l.token + case when l.ticket = excluded.ticket then 0 else 1 end,
    ticket = excluded.ticket, holder = excluded.holder, until = excluded.until,
    since = case when l.ticket = excluded.ticket then l.since else excluded.since end
where l.holder is null or l.until < clock_timestamp() or l.ticket = excluded.ticket
   or (:is_successor and l.holder = excluded.holder)
returning token, since

-- name: leave_queue
delete from write_queue where ticket = $1

-- name: writer
-- The holder, and the number of waiters ahead in the queue. A session that not all members can see is not named.
select case when exists (
           select from sessions s
           where s.organisation = l.organisation and s.visible_to <> 'organisation' and strpos(l.holder, s.id) > 0
       ) then 'another session' else l.holder end as holder, l.since, extract(epoch from clock_timestamp() - l.since)::float as seconds,
       (select count(*) from write_queue q
        where q.organisation = l.organisation and q.place = l.place and q.ticket < $3
          and q.asked_at > clock_timestamp() - $4 * interval '1 second') as before
from write_leases l
where l.organisation = $1 and l.place = $2 and l.holder is not null

-- name: renew_to_write
-- Also succeeds for an expired lease, as long as no other writer has taken it.
update write_leases set until = clock_timestamp() + $4 * interval '1 second'
where organisation = $1 and place = $2 and token = $3 and holder is not null
returning token

-- name: end_to_write
update write_leases set holder = null where organisation = $1 and place = $2 and token = $3
