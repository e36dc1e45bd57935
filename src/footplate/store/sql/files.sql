-- Files of organisations, and the deletion records for their bytes.

-- name: file
select * from files where id = $1 and organisation = $2 and (expires_at is null or expires_at > now())

-- name: files_of
-- The files of the list that belong to the organisation.
select * from files where id = any($1::text[]) and organisation = $2 and (expires_at is null or expires_at > now())
order by created_at desc, id desc

-- name: note_upload
insert into file_removals (file_id, organisation, due) values ($1, $2, now() + $3::interval)
on conflict (file_id) do nothing

-- name: take_note_away
-- Returns no row if the deletion record is due or almost due, because the bytes are then being removed.
delete from file_removals where file_id = $1 and organisation = $2 and due > now() + interval '1 minute'
returning file_id

-- name: insert_file
insert into files (id, organisation, filename, mime_type, size_bytes, expires_at, created_by)
values ($1, $2, $3, $4, $5, now() + make_interval(secs => $6::int), $7) returning *

-- name: delete_file
with gone as (delete from files where id = $1 and organisation = $2 returning id, organisation)
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

-- name: lock_resources
select resources, archived_at from sessions where id = $1 and organisation = $2 for update

-- name: update_resources
update sessions set resources = $2, updated_at = now() where id = $1
