-- Projects and workspaces.

-- name: insert_project
insert into projects (id, organisation, name, path, url, branch, trust, metadata, permissions, place)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning *

-- name: lock_place
-- Serialises the creation of projects at a location and changes to its rules.
select pg_advisory_xact_lock(hashtext('places'), hashtext($1::text || ' ' || $2::text))

-- name: rules_of_place
select permissions from projects where organisation = $1 and place = $2 order by created_at desc limit 1

-- name: set_rules_of_place
update projects set permissions = $3 where organisation = $1 and place = $2

-- name: project
select * from projects where id = $1 and organisation = $2

-- name: lock_project
select * from projects where id = $1 and organisation = $2 for update

-- name: update_project
update projects set name = $2, branch = $3, trust = $4, metadata = $5, updated_at = now() where id = $1 returning *

-- name: archive_project
update projects set archived_at = coalesce(archived_at, now()), updated_at = now()
where id = $1 and organisation = $2 returning *

-- name: projects_of
-- The projects of the list that belong to the organisation.
select * from projects where id = any($1::text[]) and organisation = $2

-- name: insert_workspace
insert into workspaces (id, organisation, name, project_ids, metadata) values ($1, $2, $3, $4, $5) returning *

-- name: workspace
select * from workspaces where id = $1 and organisation = $2

-- name: lock_workspace
select * from workspaces where id = $1 and organisation = $2 for update

-- name: update_workspace
update workspaces set name = $2, project_ids = $3, metadata = $4, updated_at = now() where id = $1 returning *

-- name: archive_workspace
update workspaces set archived_at = coalesce(archived_at, now()), updated_at = now()
where id = $1 and organisation = $2 returning *

-- name: decide_base
-- Decides the base once per session and project, by the worker that has claimed the session. Later calls return the first
-- decision. Waits while garbage collection checks and removes bases of the project (`lock_bases`).
with held as materialized (select pg_advisory_xact_lock_shared(hashtext('bases'), hashtext($3::text)))
update sessions s
set bases = case when s.bases ? $3::text then s.bases else s.bases || jsonb_build_object($3::text, $4::jsonb) end
from session_heads h, held
where s.id = $1 and h.session_id = s.id and h.epoch = $2
returning s.bases -> $3::text as base
