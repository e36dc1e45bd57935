-- Snapshots of a session's files.

-- name: files_at
-- The newest snapshot of each tree at a position: the session's own, or an inherited one. A child has a copy of the row with which
-- it started.
select t.tree, n.number, n.files, n.apart, n.base, n.left_out, n.commits, n.bundles,
       array(select owner from stretches where session_id = $1 order by last_seq desc) as owners
from unnest($2::text[]) as t (tree)
cross join lateral (
    select f.*
    from (
        select $1::text as owner, $3::bigint as last_seq
        union all
        select owner, least(last_seq, $3::bigint) from stretches where session_id = $1 and not files_only
    ) o
    cross join lateral (
        select * from snapshots where session_id = o.owner and tree = t.tree and seq <= o.last_seq order by seq desc limit 1
    ) f
    order by f.seq desc
    limit 1
) n

-- name: files_of_turn
-- The snapshots before a turn's first call and at its end, by tree.
select distinct on (tree, begins) tree, begins, number, files, apart, base, left_out, commits, bundles
from snapshots where session_id = $1 and tree = any($2::text[]) and seq >= $3 and turn_id = $4
order by tree, begins, case when begins then seq else -seq end

-- name: snapshots_by_number
-- The snapshots of a tree with these numbers, including inherited ones. A snapshot that was replaced at its position is not
-- found.
select f.number, f.files, f.apart, f.commits, f.bundles
from (
    select $1::text as owner, 9223372036854775807 as last_seq
    union all
    select owner, last_seq from stretches where session_id = $1
) o
join snapshots f on f.session_id = o.owner and f.tree = $2 and f.seq <= o.last_seq
where f.number = any($3::int[])

-- name: departures
-- The delivered snapshots of a tree, including inherited ones, and the newest snapshot, which may be delivered next.
-- Deliveries that an owner made after it was forked are not included.
with o as (
    select $1::text as owner, 9223372036854775807 as last_seq, 9223372036854775807 as departures
    union all
    select owner, last_seq, departures from stretches where session_id = $1 and not files_only
)
select f.session_id, f.seq, f.number, f.files, f.apart, f.commits, f.bundles, f.created_at, l.message as departed
from o
join snapshots f on f.session_id = o.owner and f.tree = $2 and f.seq <= o.last_seq
left join lateral (
    select d.message
    from o whose
    join departures d on d.session_id = whose.owner and d.seq <= whose.last_seq and d.number <= whose.departures
    where d.tree = f.tree and d.seq = f.seq and d.what = f.files || ' ' || md5(f.commits::text)
    order by d.number
    limit 1
) l on true
where l.message is not null or (f.number = $3 and f.files = $4)
order by f.seq

-- name: depart
-- Records a delivery before anything is written. A repeated delivery returns the message of the first one. The lock excludes
-- a concurrent fork, so each of the two knows whether it came first.
with head as (
    select session_id from session_heads where session_id = $1 for update
)
insert into departures as d (session_id, tree, seq, what, organisation, message)
select head.session_id, f.tree, f.seq, f.files || ' ' || md5(f.commits::text), f.organisation, $5
from head, snapshots f
where f.session_id = $2 and f.tree = $3 and f.seq = $4
on conflict (session_id, tree, seq, what) do update set message = d.message
returning d.message as departed, d.xmax = 0 as first

-- name: stay
delete from departures where session_id = $1 and tree = $2 and seq = $3 and message = $4

-- name: leaving_head
select s.id, s.title, s.project_ids, s.bases, h.status, h.epoch, h.seq, h.entries
from sessions s join session_heads h on h.session_id = s.id
where s.id = $1 and s.organisation = $2

-- name: files_head
select s.id, s.project_ids, s.bases, h.seq, h.entries
from sessions s join session_heads h on h.session_id = s.id
where s.id = $1 and s.organisation = $2
