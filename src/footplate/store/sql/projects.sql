-- Projects and workspaces.

-- name: insert_project
insert into projects (id, organisation, name, path, url, branch, trust, metadata, permissions, place, setup, cached_directories)
values (:id, :organisation, :name, :path, :url, :branch, :trust, :metadata, :permissions, :place, :setup,
        :cached_directories)
returning *

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
update projects
set name = :name, branch = :branch, trust = :trust, metadata = :metadata, setup = :setup,
    cached_directories = :cached_directories, updated_at = now()
where id = :id returning *

-- name: archive_project
update projects set archived_at = coalesce(archived_at, now()), updated_at = now()
where id = $1 and organisation = $2 returning *

-- name: projects_of
-- The projects of the list that belong to the organisation.
select * from projects where id = any($1::text[]) and organisation = $2

-- name: find_cache
-- Notes the use, which keeps the cache from being removed.
update project_caches set used_at = now() where organisation = $1 and project_id = $2 and digest = $3
returning sha256, size

-- name: add_cache
-- The first cache of a key stays: a later session cannot replace it.
insert into project_caches (organisation, project_id, digest, sha256, size)
select p.organisation, p.id, $3, $4, $5 from projects p
where p.id = $2 and p.organisation = $1 and p.archived_at is null for share
on conflict (organisation, project_id, digest) do nothing

-- name: evict_caches
-- Removes the caches that were not used for the longest time, until those of the project are within the limit.
delete from project_caches c using (
    select digest, sum(size) over (order by used_at desc, digest) as total
    from project_caches where organisation = $1 and project_id = $2
) s
where c.organisation = $1 and c.project_id = $2 and c.digest = s.digest and s.total > $3
returning c.digest, c.sha256, c.size

-- name: remove_cache
delete from project_caches where organisation = $1 and project_id = $2 and digest = $3 and sha256 = $4

-- name: remove_caches_of_project
delete from project_caches where project_id = $1

-- name: remove_unused_caches
delete from project_caches where organisation = $1 and project_id = $2 and used_at < now() - $3::interval

-- name: caches_of_project
select digest, sha256 from project_caches where organisation = $1 and project_id = $2

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
