-- What the object store has and nobody needs; and sessions that have expired.

-- name: round_due
-- Whether the last round began so long ago; notes that one begins now, so that it is one worker's.
insert into walks (name, place) values ('collecting', now()::text)
on conflict (name) do update set place = excluded.place where walks.place::timestamptz < now() - $1::interval
returning 1

-- name: told_of_session
select h.session_id is not null as living,
       coalesce(h.turn_id is not null or h.holder is not null or h.status <> 'idle' or h.wake, false) as busy,
       exists (select from deletions where session_id = $1) as deleting,
       exists (select from stretches where owner = $1) as pinned,
       exists (select from stretches where session_id = $1) as forked
from (select $1::text as id) s left join session_heads h on h.session_id = s.id

-- name: snapshots_of_session
select tree, number, files, apart, commits, bundles, base from snapshots where session_id = $1

-- name: lock_bases
-- Against `decide_base`, which takes it shared: a base that nobody needs goes before somebody begins with it, or stays.
select pg_advisory_xact_lock(hashtext('bases'), hashtext($1))

-- name: bases_of_project
-- Forks have a copy of what their parents began with, so those that are left speak for the deleted.
select distinct bases -> $1 ->> 'tree' as tree
from sessions where project_ids @> array[$1::text] and (bases -> $1 ->> 'commit') is not null

-- name: told_of_files
-- Those of some files that there are, and those whose bytes go by a note: both at the same moment.
select id, false as noted from files where id = any($1::text[]) and organisation = $2
union all
select file_id, true from file_removals where file_id = any($1::text[]) and organisation = $2

-- name: expired
-- Those of some sessions that wait for nothing and were last touched long ago. As `resting`, but that an archive is no
-- reason to stay.
select h.session_id, h.organisation, s.project_ids
from session_heads h
join sessions s on s.id = h.session_id
left join archives a on a.session_id = h.session_id
left join events e on e.session_id = h.session_id and e.seq = h.seq
where h.session_id = any($1::text[]) and h.status = 'idle' and h.turn_id is null and h.holder is null and not h.wake
  and not exists (select from steps t where t.session_id = h.session_id and t.position > h.taken_position and t.state = 'queued')
  and not exists (select from stretches f where f.owner = h.session_id)
  and greatest(coalesce(e.created_at, a.last_event_at, a.created_at, s.created_at), h.claimed_at) < now() - $2::interval

-- name: expiry_place
select place from walks where name = 'expiry'

-- name: expiry_walked
insert into walks (name, place) values ('expiry', $1) on conflict (name) do update set place = excluded.place

-- name: heads_after
select session_id from session_heads where session_id > $1 order by session_id limit $2
