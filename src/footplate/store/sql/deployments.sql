-- Deployments, their runs, and the state of their schedules in Temporal.

-- name: insert_deployment
insert into deployments (id, organisation, name, description, agent_id, agent_version, environment_id, definition, metadata,
                         expression, timezone, overlap_policy, catch_up_seconds, principal, owner, visible_to, applied_revision)
values (:id, :organisation, :name, :description, :agent_id, :agent_version, :environment_id, :definition, :metadata,
        :expression, :timezone, :overlap_policy, :catch_up_seconds, :principal, :principal, :visible_to,
        case when :expression::text is null then 1 else 0 end)
returning *

-- name: count_schedules
-- The others of the organisation that have a schedule.
select count(*) from deployments where organisation = $1 and id <> $2 and expression is not null and archived_at is null

-- name: deployment
-- Lists of deployments use the same columns and tables (store/page_query.py).
select s.* from deployments s
where s.id = $1 and s.organisation = $2
  and ($3::text[] is null or s.owner = any($3) or s.visible_to = any($3))

-- name: lock_deployment
-- With the member in whose name it runs, or the one who took over the work of that member. Null: disabled.
select d.*, a.id as acting_id, a.name as acting_name, a.roles as acting_roles, p.name as principal_name,
       array(select t.team from team_members t where t.member = a.id order by 1) as acting_teams
from deployments d
left join principals a on a.id = acting_principal(d.principal) and a.disabled_at is null
left join principals p on p.id = d.principal
where d.id = $1 and d.organisation = $2
for update of d

-- name: update_deployment
-- The deployment runs in the name of the member who changes it (`principal`). A buffered run of the old definition is dropped.
update deployments
set name = :name, description = :description, agent_id = :agent_id, agent_version = :agent_version,
    environment_id = :environment_id, definition = :definition, metadata = :metadata, expression = :expression,
    timezone = :timezone, overlap_policy = :overlap_policy, catch_up_seconds = :catch_up_seconds, principal = :principal,
    visible_to = :visible_to,
    buffered_at = null, revision = revision + 1, updated_at = now()
where id = :id
returning *

-- name: pause_deployment
update deployments set paused_reason = $2, buffered_at = null, revision = revision + 1, updated_at = now()
where id = $1 returning *

-- name: unpause_deployment
update deployments set paused_reason = null, principal = $2, revision = revision + 1, updated_at = now()
where id = $1 returning *

-- name: archive_deployment
update deployments
set archived_at = now(), updated_at = now(), buffered_at = null, revision = revision + 1
where id = $1 returning *

-- name: insert_run
-- Returns no row if the time of the schedule already has a run.
insert into deployment_runs (id, deployment_id, organisation, agent_id, agent_version, scheduled_at, principal, session_id, error,
                             skipped)
values (:id, :deployment_id, :organisation, :agent_id, :agent_version, :scheduled_at, :principal, :session_id, :error, :skipped)
on conflict (deployment_id, scheduled_at) where scheduled_at is not null do nothing
returning *

-- name: run_at
select * from deployment_runs where deployment_id = $1 and scheduled_at = $2

-- name: expire_runs
-- At most 1,000 of each deployment, found by the index on their times. The next sweep continues.
delete from deployment_runs where id in (
    select r.id from deployments d cross join lateral (
        select id from deployment_runs where deployment_id = d.id and created_at < now() - $1::interval
        order by created_at limit 1000) r)

-- name: deployment_run
select s.* from (select r.*, d.owner, d.visible_to, null::timestamptz as archived_at
                 from deployment_runs r join deployments d on d.id = r.deployment_id) s
where s.id = $1 and s.organisation = $2
  and ($3::text[] is null or s.owner = any($3) or s.visible_to = any($3))

-- name: record_scheduled_run
update deployments
set last_run_at = case when $3 then now() else last_run_at end,
    buffered_at = case when buffered_at = $2 then null else buffered_at end
where id = $1

-- name: buffer_run
update deployments set buffered_at = $2 where id = $1

-- name: busy_sessions
select session_id, is_ending from busy_deployment_sessions where deployment_id = $1

-- name: buffered_runs
-- Those that can start, because the earlier sessions have finished.
select d.organisation, d.id, d.buffered_at from deployments d
where d.buffered_at is not null and not exists (select from busy_deployment_sessions b where b.deployment_id = d.id)
limit 100

-- name: schedule_state
select id, organisation, revision, applied_revision, expression, timezone, catch_up_seconds, paused_reason, archived_at
from deployments where id = $1

-- name: schedules_to_apply
select id from deployments where revision <> applied_revision order by id limit $1

-- name: schedules_to_check
-- Those that were not compared with Temporal for the longest time.
with chosen as (
    select id from deployments where expression is not null and archived_at is null
    order by checked_at limit $1 for update skip locked
)
update deployments d set checked_at = now() from chosen where d.id = chosen.id
returning d.id

-- name: mark_schedule_applied
-- Nothing if the deployment has changed since.
update deployments set applied_revision = $2, checked_at = now() where id = $1 and revision = $2

-- name: add_deployment_to_feed
insert into feed_pending (organisation, session_id, seq, type, event_id, owner, visible_to, project_ids, body)
select organisation, id, 0, $2, $3, owner, visible_to, '{}', $4 from deployments where id = $1

-- name: hand_over_deployments
update deployments set owner = $3 where organisation = $2 and owner = $1
