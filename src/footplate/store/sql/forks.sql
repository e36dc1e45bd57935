-- Forks: sessions that start with rows of other sessions, and the rows that a deleted session leaves for its forks.

-- name: lock_parent
-- Prevents the parent's deletion until the fork is committed. The parent's turns do not wait for this lock.
select s.*, h.status, h.seq, h.entries, h.input_tokens, h.output_tokens, h.cache_read, h.cache_write, h.requests,
       h.cost_microusd, h.active_seconds
from session_heads h join sessions s on s.id = h.session_id
where h.session_id = $1 and h.organisation = $2
for key share of h

-- name: stretches
select owner, last_seq, entries from stretches where session_id = $1 and not files_only order by last_seq

-- name: event_of
-- The position of the event with this id: the one where it was processed, if it was.
select coalesce(t.seq, e.seq) as seq
from events e left join events t on t.session_id = e.session_id and t.ref_seq = e.seq and t.seq <= $3
where e.session_id = $1 and e.event_id = $2 and e.ref_seq is null and e.seq <= $3

-- name: back
-- Positions from $2 downwards.
select seq, event_id, ref_seq, type, turn_id, created_at, entries
from events where session_id = $1 and seq <= $2
order by seq desc
limit $3

-- name: entries_by_time
-- For events of older versions, which lack the number of entries. Events and entries have the time of their transaction.
select coalesce(max(idx) + 1, 0) from entries where session_id = $1 and created_at <= $2

-- name: body_at
select body, object_key from events where session_id = $1 and seq = $2

-- name: insert_fork
-- Uses the parent session's environment, unless another one is given (`environment_id`).
with session as (
    insert into sessions (id, organisation, agent_id, agent_version, agent, environment_id, environment, title, metadata,
                          context, principal, owner, fork, mode, project_ids, workspace_id, bases, resources, permissions,
                          visible_to, ends_when_done)
    select :id, :organisation, :agent_id, :agent_version, :agent, coalesce(e.id, p.environment_id),
           coalesce(e.config, p.environment), :title, :metadata, p.context, :principal, :principal, :fork, p.mode,
           p.project_ids, p.workspace_id, p.bases, p.resources, p.permissions, p.visible_to, :ends_when_done
    from sessions p
    left join environments e on e.id = :environment_id and e.organisation = :organisation and e.archived_at is null
    where p.id = :parent_id and (:environment_id::text is null or e.id is not null)
    returning *
), head as (
    insert into session_heads (session_id, organisation, seq, entries, inherited_seq, inherited_entries)
    select id, organisation, :seq, :entries, :seq, :entries from session
    returning *
), begins as (
    -- The parent's inherited history is the fork's too, with the deliveries that existed when the parent was created.
    insert into stretches (session_id, organisation, owner, last_seq, entries, departures, files_only)
    select session.id, session.organisation, b.*,
           coalesce((select departures from stretches where session_id = :parent_id and owner = b.owner),
                    (select max(number) from departures where session_id = b.owner), 0), false
    from session, unnest(:owners::text[], :last_seqs::bigint[], :entry_counts::integer[]) as b (owner, last_seq, entries)
    union all
    -- Several of them may refer to the same ancestor. The fork needs the longest part.
    select session.id, session.organisation, s.owner, s.last_seq, s.entries, s.departures, true
    from session, (
        select distinct on (owner) owner, last_seq, entries, departures from stretches
        where session_id = any(:owners::text[]) and files_only
        order by owner, last_seq desc
    ) s
)
select s.*, h.status, h.input_tokens, h.output_tokens, h.cache_read, h.cache_write, h.requests, h.cost_microusd, h.active_seconds
from session s, head h

-- name: entries_of_others
-- Whether another turn than this one has added to the fork's conversation.
select exists (select from entries where session_id = $1 and turn_id <> $2) as grown

-- name: lock_owners
-- Serialises deletions that share rows: each must see the result of the other.
select pg_advisory_xact_lock(hashtext('owner'), hashtext(owner))
from (select $1::text as owner union select owner from stretches where session_id = $1 order by 1) owners

-- name: pins
-- How much of a session's history its existing forks need, and how much of its snapshots its forks and children need.
select coalesce(max(last_seq) filter (where not files_only), 0) as seq, coalesce(max(entries), 0) as entries,
       coalesce(max(last_seq), 0) as files_seq
from stretches where owner = $1

-- name: leave_stretches
-- Removes a fork's references to its owners. Returns the owners that are deleted, whose rows may now be unused.
with gone as (
    delete from stretches where session_id = $1 returning owner, organisation
)
select distinct owner, organisation from gone where not exists (select from sessions s where s.id = gone.owner)

-- name: delete_rows
-- Deletes all rows of a deleted session that no fork needs. The deletion record covers its data outside of the database.
with a as (delete from events where session_id = $1 and seq > $3), b as (delete from entries where session_id = $1 and idx >= $4),
     c as (delete from archives where session_id = $1 and $3 = 0), d as (delete from snapshots where session_id = $1 and seq > $5),
     e as (delete from departures where session_id = $1
               and (seq > $3 or number > (select coalesce(max(departures), 0) from stretches where owner = $1)))
insert into deletions (session_id, organisation) values ($1, $2)
on conflict (session_id) do update set deleted_at = now(), purged_at = null

-- name: pinned_objects
-- The keys of objects that forks need of a deleted session, and bodies that name other objects ($2 is the start of a name).
select object_key, case when strpos(body::text, $2) > 0 then body::text end as body
from events where session_id = $1 and (object_key is not null or strpos(body::text, $2) > 0)
union all
select object_key, null from entries where session_id = $1 and object_key is not null

-- name: pinned_packs
-- The highest pack number of a deleted session that its forks need, by tree.
select tree, max(number) as number from snapshots where session_id = $1 group by tree

-- name: restore_events
insert into events (session_id, seq, organisation, event_id, ref_seq, type, version, turn_id, principal, created_at, processed_at,
                    body, object_key, entries)
select $1, r.seq, $2, r.event_id, r.ref_seq, r.type, r.version, r.turn_id, r.principal, r.created_at, r.processed_at,
       case when r.ref_seq is null then r.body end, r.object_key, r.entries
from json_to_recordset($3::json) as r (seq bigint, event_id text, ref_seq bigint, type text, version smallint, turn_id text,
    principal text, created_at timestamptz, processed_at timestamptz, body json, object_key text, entries integer)
on conflict do nothing

-- name: restore_entries
insert into entries (session_id, idx, organisation, turn_id, kind, created_at, body, object_key)
select $1, r.idx, $2, r.turn_id, r.kind, r.created_at, r.body, r.object_key
from json_to_recordset($3::json) as r (idx integer, turn_id text, kind text, created_at timestamptz, body json, object_key text)
on conflict do nothing

-- name: forget_archive
delete from archives where session_id = $1
