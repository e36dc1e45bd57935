-- Garbage collection of the object store, and expired sessions.

-- name: round_due
-- Returns a row if the last run is long enough ago, and records that a run starts now, so that only one worker runs it.
insert into walks (name, place) values ('collecting', now()::text)
on conflict (name) do update set place = excluded.place where walks.place::timestamptz < now() - $1::interval
returning 1

-- name: told_of_session
select h.session_id is not null as living,
       coalesce(h.turn_id is not null or h.holder is not null or h.status not in ('idle', 'terminated') or h.wake, false) as busy,
       exists (select from deletions where session_id = $1) as deleting,
       exists (select from stretches where owner = $1) as pinned,
       exists (select from stretches where session_id = $1) as forked
from (select $1::text as id) s left join session_heads h on h.session_id = s.id

-- name: snapshots_of_session
select tree, number, files, apart, commits, bundles, base from snapshots where session_id = $1

-- name: lock_bases
-- Excludes `decide_base`, which takes this lock shared: an unused base is removed before a session starts from it, or not
-- at all.
select pg_advisory_xact_lock(hashtext('bases'), hashtext($1))

-- name: bases_of_project
-- Forks copy the bases of their parents, so the existing sessions also cover the deleted ones.
select distinct bases -> $1 ->> 'tree' as tree
from sessions where project_ids @> array[$1::text] and (bases -> $1 ->> 'commit') is not null

-- name: told_of_files
-- Which of these files exist, and which have a deletion record, in one snapshot.
select id, false as noted from files where id = any($1::text[]) and organisation = $2
union all
select file_id, true from file_removals where file_id = any($1::text[]) and organisation = $2

-- name: expired
-- Which of these sessions are inactive and were last used long ago. Same conditions as `resting`, but includes archived
-- sessions. $3: the caller removes the host's copies of their files. Ended sessions then count at once, even if forks or children
-- need their snapshots, which the object store has.
select h.session_id, h.organisation, s.project_ids
from session_heads h
join sessions s on s.id = h.session_id
left join archives a on a.session_id = h.session_id
left join events e on e.session_id = h.session_id and e.seq = h.seq
where h.session_id = any($1::text[]) and h.status in ('idle', 'terminated') and h.turn_id is null and h.holder is null and not h.wake
  and not exists (select from steps t where t.session_id = h.session_id and t.sort_key > h.taken_position and t.state = 'pending')
  and ($3 and h.status = 'terminated' or not exists (select from stretches f where f.owner = h.session_id))
  and ($3 and h.status = 'terminated'
       or greatest(coalesce(e.created_at, a.last_event_at, a.created_at, s.created_at), h.claimed_at) < now() - $2::interval)

-- name: unused_sessions
-- Which of these sessions have done nothing for so long. Not those that wait for a person, a worker or their next step.
select h.session_id, h.organisation
from session_heads h
join sessions s on s.id = h.session_id
left join archives a on a.session_id = h.session_id
left join events e on e.session_id = h.session_id and e.seq = h.seq
where h.session_id = any($1::text[]) and h.status = 'idle' and h.turn_id is null and h.holder is null and not h.wake
  and s.archived_at is null
  and not exists (select from steps t where t.session_id = h.session_id and t.sort_key > h.taken_position and t.state = 'pending')
  and greatest(coalesce(e.created_at, a.last_event_at, a.created_at, s.created_at), h.claimed_at) < now() - $2::interval

-- name: expiry_place
-- $1: what the walk over all sessions does: `expiry` or `ending`.
select place from walks where name = $1

-- name: expiry_walked
insert into walks (name, place) values ($1, $2) on conflict (name) do update set place = excluded.place

-- name: heads_after
select session_id from session_heads where session_id > $1 order by session_id limit $2
