-- Files of organisations, and the deletion records for their bytes.

-- name: file
-- $3 is for uploaded files, $4 and $5 for outputs: the audiences, and the projects of a restricted key.
select * from listed_files
where id = $1 and organisation = $2
  and (session_id is not null or $3::text[] is null or owner = any($3) or visible_to = any($3))
  and (session_id is null or $4::text[] is null or owner = any($4) or visible_to = any($4))
  and (session_id is null or $5::text[] is null or (project_ids <> '{}' and project_ids <@ $5))

-- name: files_of
-- The files of the list that belong to the organisation.
select * from listed_files
where id = any($1::text[]) and organisation = $2
  and (session_id is not null or $3::text[] is null or owner = any($3) or visible_to = any($3))
  and (session_id is null or $4::text[] is null or owner = any($4) or visible_to = any($4))
  and (session_id is null or $5::text[] is null or (project_ids <> '{}' and project_ids <@ $5))
order by created_at desc, id desc

-- name: note_upload
insert into file_removals (file_id, organisation, due) values ($1, $2, now() + $3::interval)
on conflict (file_id) do nothing

-- name: take_note_away
-- Returns no row if the deletion record is due or almost due, because the bytes are then being removed.
delete from file_removals where file_id = $1 and organisation = $2 and due > now() + interval '1 minute'
returning file_id

-- name: insert_file
insert into files (id, organisation, filename, mime_type, size_bytes, expires_at, owner, visible_to)
values (:id, :organisation, :filename, :mime_type, :size_bytes, now() + make_interval(secs => :expires_in::int), :owner,
        :visible_to)
returning *

-- name: delete_file
with gone as (
    delete from files where id = (
        select id from listed_files
        where id = $1 and organisation = $2
          and (session_id is not null or $3::text[] is null or owner = any($3) or visible_to = any($3))
          and (session_id is null or $4::text[] is null or owner = any($4) or visible_to = any($4))
          and (session_id is null or $5::text[] is null or (project_ids <> '{}' and project_ids <@ $5))
    )
    returning id, organisation
)
insert into file_removals (file_id, organisation, due)
select id, organisation, now() from gone
returning file_id

-- name: expire_files
with gone as (
    delete from files where id in (select id from files where expires_at <= now() order by expires_at limit $1)
    returning id, organisation
)
insert into file_removals (file_id, organisation, due)
select id, organisation, now() from gone

-- name: removals_due
select file_id, organisation from file_removals where due <= now() order by due limit $1

-- name: removed
delete from file_removals where file_id = $1 and due <= now()

-- name: outputs_of_session
select id, filename, size_bytes, sha256, output_state from files where session_id = $1

-- name: omitted_outputs
select outputs -> 'omitted' as omitted from sessions
where id = $1 and organisation = $2
  and ($3::text[] is null or coalesce(owner, principal) = any($3) or visible_to = any($3))
  and ($4::text[] is null or (project_ids <> '{}' and project_ids <@ $4))

-- name: replace_outputs
with marked as (
    update files set output_state = 'replaced' where session_id = $1 and id = any($2::text[]) and output_state = 'current'
), gone as (
    delete from files where session_id = $1 and id = any($2::text[]) and output_state = 'staged' returning id, organisation
)
insert into file_removals (file_id, organisation, due) select id, organisation, now() from gone

-- name: add_outputs
-- A file whose deletion record is due, or almost due, is not added, because its bytes are being removed. A repeated call
-- changes nothing.
with taken as (
    delete from file_removals
    where file_id = any(:ids::text[]) and organisation = :organisation and due > now() + interval '1 minute'
    returning file_id
)
insert into files (id, organisation, filename, mime_type, size_bytes, sha256, session_id, output_state, owner, visible_to)
select f.id, :organisation, f.filename, f.mime_type, f.size_bytes, f.sha256, s.id, 'staged', coalesce(s.owner, s.principal),
       'owner'
from unnest(:ids::text[], :filenames::text[], :mime_types::text[], :sizes::bigint[], :hashes::text[])
    as f (id, filename, mime_type, size_bytes, sha256)
join taken on taken.file_id = f.id
join sessions s on s.id = :session_id

-- name: count_outputs
select count(*) from files where session_id = $1 and id = any($2::text[])

-- name: publish_outputs
with gone as (
    delete from files where session_id = $1 and output_state = 'replaced' returning id, organisation
), listed as (
    update files set output_state = 'current' where session_id = $1 and output_state = 'staged'
)
insert into file_removals (file_id, organisation, due) select id, organisation, now() from gone

-- name: note_outputs
-- Records that the session has outputs, and which files are omitted (null: as before).
update sessions set outputs = jsonb_build_object('omitted', coalesce($2::jsonb, outputs -> 'omitted', '[]'::jsonb))
where id = $1 and (outputs is null or outputs -> 'omitted' <> $2::jsonb)

-- name: owner_of_session
select coalesce(owner, principal) from sessions where id = $1

-- name: lock_resources
select resources, archived_at, ended_at from sessions where id = $1 and organisation = $2 for update

-- name: update_resources
update sessions set resources = $2, updated_at = now() where id = $1
