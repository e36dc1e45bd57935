-- What a session's files were like.

-- name: files_at
-- The newest snapshot of each tree at a position: the session's own, or one of those that it begins in.
select t.tree, n.number, n.files, n.apart, n.base, n.left_out, n.commits, n.bundles,
       array(select owner from stretches where session_id = $1 order by last_seq desc) as owners
from unnest($2::text[]) as t (tree)
cross join lateral (
    select f.*
    from (
        select $1::text as owner, $3::bigint as last_seq
        union all
        select owner, least(last_seq, $3::bigint) from stretches where session_id = $1
    ) o
    cross join lateral (
        select * from snapshots where session_id = o.owner and tree = t.tree and seq <= o.last_seq order by seq desc limit 1
    ) f
    order by f.seq desc
    limit 1
) n

-- name: files_of_turn
-- What a turn found before its first call, and what it left, by tree.
select distinct on (tree, begins) tree, begins, number, files, apart, base, left_out, commits, bundles
from snapshots where session_id = $1 and tree = any($2::text[]) and seq >= $3 and turn_id = $4
order by tree, begins, case when begins then seq else -seq end

-- name: departures
-- The snapshots of a tree as which its files left, those of a fork's beginning among them, and the newest, which may leave.
select f.session_id, f.seq, f.number, f.files, f.apart, f.commits, f.bundles, f.departed, f.created_at
from (
    select $1::text as owner, 9223372036854775807 as last_seq
    union all
    select owner, last_seq from stretches where session_id = $1
) o
join snapshots f on f.session_id = o.owner and f.tree = $2 and f.seq <= o.last_seq
where f.departed is not null or (f.number = $3 and f.files = $4)
order by f.seq

-- name: depart
-- Before anything is written anywhere. Who asks again finds the message of the first time.
with before as (
    select departed from snapshots where session_id = $1 and tree = $2 and seq = $3 for update
)
update snapshots s set departed = coalesce(s.departed, $4) from before
where s.session_id = $1 and s.tree = $2 and s.seq = $3
returning s.departed, before.departed is null as first

-- name: stay
update snapshots set departed = null where session_id = $1 and tree = $2 and seq = $3 and departed = $4

-- name: leaving_head
select s.id, s.title, s.project_ids, s.bases, h.status, h.seq, h.entries
from sessions s join session_heads h on h.session_id = s.id
where s.id = $1 and s.organisation = $2

-- name: files_head
select s.id, s.project_ids, s.bases, h.seq, h.entries
from sessions s join session_heads h on h.session_id = s.id
where s.id = $1 and s.organisation = $2
