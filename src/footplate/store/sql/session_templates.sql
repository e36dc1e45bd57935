-- Templates for new sessions, and pinned sessions.

-- name: session_template
select * from session_templates where id = $1 and organisation = $2

-- name: lock_session_template
select * from session_templates where id = $1 and organisation = $2 for update

-- name: count_session_templates
select count(*) from session_templates where organisation = $1 and archived_at is null

-- name: insert_session_template
insert into session_templates (id, organisation, name, description, session, principal)
values (:id, :organisation, :name, :description, :session, :principal)
returning *

-- name: update_session_template
update session_templates set name = $2, description = $3, session = $4, updated_at = now() where id = $1 returning *

-- name: archive_session_template
update session_templates set archived_at = now(), updated_at = now() where id = $1 returning *

-- name: pin_session
-- The head's row excludes a concurrent deletion.
with head as (
    select session_id, organisation from session_heads where session_id = $2 and organisation = $3 for key share
)
insert into session_pins (principal, session_id, organisation) select $1, session_id, organisation from head
on conflict do nothing
returning session_id

-- name: unpin_session
delete from session_pins where principal = $1 and session_id = $2 returning session_id

-- name: pinned_sessions
select session_id from session_pins where principal = $1 and session_id = any($2::text[])
