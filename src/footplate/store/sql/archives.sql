-- Retention: archives each inactive session as one object. Deletion: removes a session's data outside of its rows.

-- name: walk_place
select place from walks where name = 'retention'

-- name: walked
insert into walks (name, place) values ('retention', $1) on conflict (name) do update set place = excluded.place

-- name: walk
-- The next heads, and which of them may be inactive. This is a cheap pre-selection over all sessions; `resting` decides.
select h.session_id, h.organisation,
       h.status in ('idle', 'terminated') and h.turn_id is null and h.holder is null and not h.wake and h.seq > coalesce(a.last_seq, 0)
       and (h.claimed_at is null or h.claimed_at < now() - $2::interval) as candidate
from (select * from session_heads where session_id > $1 order by session_id limit $3) h
left join archives a on a.session_id = h.session_id
order by h.session_id

-- name: lock_archiving
-- Until the transaction ends, no other process writes or removes objects of the session's archive. Turns never wait for
-- this lock.
select pg_try_advisory_xact_lock(hashtext('archive'), hashtext($1))

-- name: lock_head_only
select from session_heads where session_id = $1 for update

-- name: resting
-- Defines an inactive session: no turn runs, is parked or is due, no step is queued, and its last event is old. A session
-- with existing forks is not inactive, because they read its rows.
select h.seq, h.epoch, h.entries, h.inherited_seq, h.inherited_entries, a.object_key
from session_heads h
left join archives a on a.session_id = h.session_id
where h.session_id = $1 and h.status in ('idle', 'terminated') and h.turn_id is null and h.holder is null and not h.wake
  and h.seq > coalesce(a.last_seq, 0)
  and not exists (select from steps s where s.session_id = $1 and s.sort_key > h.taken_position and s.state = 'pending')
  and not exists (select from stretches f where f.owner = $1)
  and exists (
      select from events e where e.session_id = $1 and e.seq = h.seq and e.created_at < now() - $2::interval)

-- name: archive
select session_id, organisation, object_key, last_seq, entries, index_at, size, sha256, replaced, pruned
from archives where session_id = $1

-- name: archive_events
-- Positions as readers see them, including the body and the time of processing, so that a block can be read on its own.
-- No later row refers to an archived one: only open steps and turns refer to earlier rows, and there were none.
-- Uses one index lookup per row, even if the planner's statistics are older than the session's growth.
-- `taken_seq` and `entries` are for forks.
select e.seq as place, json_build_object(
    'seq', e.seq, 'event_id', e.event_id, 'ref_seq', e.ref_seq, 'type', e.type, 'version', e.version,
    'turn_id', e.turn_id, 'principal', e.principal, 'created_at', e.created_at, 'processed_at', e.processed_at,
    'taken_at', (select t.processed_at from events t where t.session_id = $1 and t.ref_seq = e.seq),
    'taken_seq', (select t.seq from events t where t.session_id = $1 and t.ref_seq = e.seq),
    'body', coalesce((select o.body from events o where o.session_id = $1 and o.seq = e.ref_seq), e.body),
    'object_key', e.object_key, 'entries', e.entries)::text as line
from events e
where e.session_id = $1 and e.seq > $2 and e.seq <= $3
order by e.seq
limit $4

-- name: archive_entries
select n.idx as place, json_build_object(
    'idx', n.idx, 'turn_id', n.turn_id, 'kind', n.kind, 'created_at', n.created_at, 'body', n.body,
    'object_key', n.object_key)::text as line
from entries n
where n.session_id = $1 and n.idx > $2 and n.idx <= $3
order by n.idx
limit $4

-- name: record_archive
-- Once this is committed, readers use the object.
insert into archives (session_id, organisation, object_key, last_seq, entries, index_at, size, sha256, last_event_at)
values (:session_id, :organisation, :object_key, :last_seq, :entries, :index_at, :size, :sha256,
        (select created_at from events where session_id = :session_id and seq = :last_seq))
on conflict (session_id) do update
set object_key = excluded.object_key, last_seq = excluded.last_seq, entries = excluded.entries,
    index_at = excluded.index_at, size = excluded.size, sha256 = excluded.sha256, replaced = archives.object_key,
    pruned = false, created_at = now(), last_event_at = excluded.last_event_at

-- name: to_prune
select session_id from archives where not pruned order by created_at limit $1

-- name: prune
-- Deletes one batch of archived rows, oldest first, so that the remaining rows never have a gap. Locks the head, so that a
-- deletion of the session waits.
with place as (
    select a.last_seq, a.entries
    from archives a join session_heads h on h.session_id = a.session_id
    where a.session_id = $1
    for key share of h
), old_events as (
    delete from events e using place
    where e.session_id = $1 and e.seq <= place.last_seq
      and e.seq < (select min(seq) from events where session_id = $1) + $2::integer
    returning 1
), old_entries as (
    delete from entries n using place
    where n.session_id = $1 and n.idx < place.entries
      and n.idx < (select min(idx) from entries where session_id = $1) + $2::integer
    returning 1
)
select (select count(*) from old_events) + (select count(*) from old_entries) as rows

-- name: pruned
update archives set pruned = true, replaced = null where session_id = $1

-- name: deletions_due
-- Due immediately, and once more later, for objects that a worker wrote after it had lost the deleted session.
select session_id, organisation
from deletions
where purged_at is null or deleted_at < now() - $1::interval
order by deleted_at
limit $2

-- name: purged
with over as (
    delete from deletions where session_id = $1 and deleted_at < now() - $2::interval returning session_id
)
update deletions set purged_at = now() where session_id = $1 and not exists (select from over)

-- name: deleted_sessions
-- While a deletion record exists, every host removes its data of that session.
select organisation, session_id from deletions order by deleted_at desc limit 10000

-- name: existing_sessions
select id from sessions where id = any($1::text[])

-- name: cell
select id from cell
