-- The search index. The sweep writes it from the feed, so a turn writes nothing for it.

-- name: search_backlog
-- The organisations with changes that are not indexed, in a random order: the time of a sweep may not suffice for all.
-- `first` is the oldest change that their feed still has.
select h.organisation, h.position as head, coalesce(p.position, 0) as position,
       (select f.position from feed f where f.organisation = h.organisation order by f.position limit 1) as first
from feed_heads h left join search_progress p on p.organisation = h.organisation
where h.position > coalesce(p.position, 0)
order by random()

-- name: search_changes
select max(position) as position, array_agg(distinct session_id) as session_ids
from (select position, session_id from feed where organisation = $1 and position > $2 order by position limit $3) f

-- name: record_search_progress
insert into search_progress (organisation, position) values ($1, $2)
on conflict (organisation) do update set position = greatest(search_progress.position, excluded.position)

-- name: search_walk
-- The next sessions of the walk over all sessions that fills the index for the first time, and after the feed was too short.
select id from sessions where id > coalesce((select place from walks where name = 'search'), '') order by id limit $1

-- name: record_search_walk
insert into walks (name, place) values ('search', $1) on conflict (name) do update set place = excluded.place

-- name: searchable_session
select s.organisation, s.title, s.archived_at is not null as is_archived,
       coalesce((select max(seq) from search_documents where session_id = s.id), 0) as indexed_seq,
       coalesce((select last_seq from archives where session_id = s.id), 0) as archived_seq
from sessions s where s.id = $1

-- name: searchable_events
select seq, type, body, object_key from events
where session_id = $1 and seq > $2 and ref_seq is null and type = any($4)
order by seq
limit $3

-- name: insert_search_document
insert into search_documents as d (session_id, seq, document) values ($1, $2, array_to_tsvector($3::text[]))
on conflict (session_id, seq) do update set document = excluded.document where d.document <> excluded.document

-- name: delete_search_documents
delete from search_documents where session_id = $1
