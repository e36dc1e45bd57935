-- Imported transcripts, and the export of a conversation.

-- name: imported
-- The first session that was created from a transcript, if the viewer owns it, or can see it and asks for the same audience ($5).
select i.session_id from imports i join sessions s on s.id = i.session_id
where i.organisation = $1 and i.digest = $2
  and ($3::text[] is null or coalesce(s.owner, s.principal) = any($3) or s.visible_to = any($3))
  and (coalesce(s.owner, s.principal) = $4 or s.visible_to = $5)
order by s.created_at
limit 1

-- name: insert_import
insert into imports (organisation, digest, session_id) values ($1, $2, $3)

-- name: import_rows
-- Inserts a batch of a transcript's lines: entries from `index` on, events after the position `seq`.
with new_entries as (
    insert into entries (session_id, idx, organisation, turn_id, kind, body, object_key)
    select :session_id, :index + n::integer - 1, :organisation, 'imported', kind, body::json, nullif(object_key, '')
    from unnest(:entry_kinds::text[], :entry_bodies::text[], :entry_object_keys::text[])
        with ordinality as b (kind, body, object_key, n)
)
insert into events (session_id, seq, organisation, principal, event_id, type, body, object_key, processed_at, entries)
select :session_id, :seq + n, :organisation, :principal, event_id, type, body::json, nullif(object_key, ''),
       coalesce(moment, now()), entries
from unnest(:event_ids::text[], :event_types::text[], :event_bodies::text[], :event_object_keys::text[],
            :times::timestamptz[], :entry_counts::integer[]) with ordinality
    as b (event_id, type, body, object_key, moment, entries, n)

-- name: import_head
update session_heads set seq = $2, entries = $3 where session_id = $1

-- name: conversation_length
select entries from session_heads where session_id = $1 and organisation = $2
