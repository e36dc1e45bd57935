-- Triggers, and the deliveries to them.

-- name: insert_trigger
insert into triggers (id, organisation, name, description, session_id, environment_id, title, definition, metadata, condition,
                      max_per_minute, visible_to, paused, principal, roles, owner, secret)
values (:id, :organisation, :name, :description, :session_id, :environment_id, :title, :definition, :metadata, :condition,
        :max_per_minute, :visible_to, :paused, :principal, :roles, :principal, :secret)
returning *

-- name: count_triggers
select count(*) from triggers where organisation = $1 and archived_at is null

-- name: trigger
-- Lists of triggers use the same columns and tables (store/page_query.py). A trigger that adds steps to a session is
-- found by those who can see the session too.
select s.* from triggers s
where s.id = $1 and s.organisation = $2
  and ($3::text[] is null or (s.owner = any($3) or s.visible_to = any($3)) and (s.session_id is null or exists (
      select from sessions v
      where v.id = s.session_id and (coalesce(v.owner, v.principal) = any($3) or v.visible_to = any($3)))))

-- name: lock_trigger
-- With the member in whose name deliveries act, or the one who took over the work of that member. Null: disabled.
select t.*, a.id as acting_id, a.name as acting_name, a.roles as acting_roles,
       array(select m.team from team_members m where m.member = a.id order by 1) as acting_teams
from triggers t
left join principals a on a.id = acting_principal(t.principal) and a.disabled_at is null
where t.id = $1 and t.organisation = $2
for update of t

-- name: trigger_keys
select t.organisation, t.secret, t.old_secret, t.old_secret_expires_at, t.roles,
       a.id as acting_id, a.name as acting_name, a.roles as acting_roles,
       array(select m.team from team_members m where m.member = a.id order by 1) as acting_teams
from triggers t
left join principals a on a.id = acting_principal(t.principal) and a.disabled_at is null
where t.id = $1 and t.archived_at is null

-- name: update_trigger
-- The member who changes what a trigger does is also the one in whose name it acts.
update triggers
set name = :name, description = :description, session_id = :session_id, environment_id = :environment_id, title = :title,
    definition = :definition, metadata = :metadata, condition = :condition, max_per_minute = :max_per_minute,
    visible_to = :visible_to, paused = :paused, principal = :principal, roles = :roles, updated_at = now()
where id = :id
returning *

-- name: archive_trigger
update triggers set archived_at = now(), updated_at = now(), old_secret = null, old_secret_expires_at = null
where id = $1 returning *

-- name: replace_trigger_secret
update triggers
set old_secret = case when $3 > interval '0' then secret end,
    old_secret_expires_at = case when $3 > interval '0' then now() + $3 end,
    secret = $2, updated_at = now()
where id = $1
returning *

-- name: trigger_delivery
select * from trigger_deliveries where trigger_id = $1 and delivery_id = $2

-- name: count_recent_deliveries
-- The attempts of the last minute, and the seconds until the oldest of them does not count any more.
select count(*) as number, coalesce(extract(epoch from min(attempted_at) + interval '1 minute' - now()), 0)::float8 as seconds
from trigger_deliveries where trigger_id = $1 and attempted_at > now() - interval '1 minute'

-- name: record_trigger_delivery
-- A delivery that failed may be sent again. Its row then has the result of the last attempt.
insert into trigger_deliveries (id, trigger_id, organisation, delivery_id, body_hash, outcome, session_id, error)
values (:id, :trigger_id, :organisation, :delivery_id, :body_hash, :outcome, :session_id, :error)
on conflict (trigger_id, delivery_id) do update
set body_hash = excluded.body_hash, outcome = excluded.outcome, session_id = excluded.session_id, error = excluded.error,
    attempts = trigger_deliveries.attempts + 1, attempted_at = now()
returning *

-- name: hand_over_triggers
update triggers set owner = $3 where organisation = $2 and owner = $1

-- name: delete_old_trigger_secrets
update triggers set old_secret = null, old_secret_expires_at = null where old_secret_expires_at < now()

-- name: archive_triggers_of_deleted_sessions
-- Only administrators see them, and their names are taken until they are archived.
update triggers t set archived_at = now(), updated_at = now(), old_secret = null, old_secret_expires_at = null
where t.session_id is not null and t.archived_at is null and not exists (select from sessions s where s.id = t.session_id)

-- name: expire_trigger_deliveries
delete from trigger_deliveries where attempted_at < now() - $1::interval
