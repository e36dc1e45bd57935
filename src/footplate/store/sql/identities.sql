-- Members and API keys.

-- name: insert_organisation
insert into organisations (id, name) values ($1, $2) on conflict (id) do nothing

-- name: key_principal
-- The owner of a valid key. Records the use of the key at most once a minute.
with found as (
    select k.id as key_id, k.secret_hash, k.roles as key_roles, k.expires_at, k.last_used_at,
           p.organisation, p.id, p.name, p.roles, k.project_ids,
           array(select t.team from team_members t where t.member = p.id order by 1) as team_ids
    from valid_api_keys k join principals p on p.id = k.principal
    where k.secret_hash = $1 and p.disabled_at is null
), used as (
    update api_keys k set last_used_at = now() from found
    where k.id = found.key_id and (found.last_used_at is null or found.last_used_at < now() - interval '1 minute')
)
select * from found

-- name: insert_member
-- It can sign in with nothing yet.
with inserted as (
    insert into principals (id, organisation, kind, name, roles) values ($1, $2, $3, $4, $5) returning *
)
select *, null::text as email, false as has_identity, false as has_key from inserted

-- name: member
-- A member with its email at the identity provider, and with what it can sign in.
select s.* from (
    select p.*, p.disabled_at as archived_at,
           (select max(i.email) from external_identities i where i.principal = p.id) as email,
           exists (select from external_identities i where i.principal = p.id) as has_identity,
           exists (select from valid_api_keys k where k.principal = p.id) as has_key
    from principals p where p.kind <> 'team'
) s
where s.id = $1 and s.organisation = $2

-- name: member_names
select id, name from principals where id = any($1::text[]) and organisation = $2

-- name: update_member
update principals
set roles = coalesce($3::text[], roles),
    disabled_at = case when $4::boolean is null then disabled_at when $4 then coalesce(disabled_at, now()) end,
    successor = case when $4::boolean is null then successor when $4 then coalesce($5, successor) end
where id = $1 and organisation = $2
returning kind

-- name: revoke_keys_of_member
-- Also ends the browser sessions, so that they do not work again when the member is enabled.
with ended as (
    update browser_sessions set ended_at = now() where principal = $1 and ended_at is null
)
update api_keys set revoked_at = now() where principal = $1 and revoked_at is null

-- name: hand_over_sessions
-- Gives the sessions and files of member $1 to member $3, who also follows $1 as successor of earlier members.
with files as (
    update files set owner = $3 where organisation = $2 and owner = $1
), earlier as (
    update principals set successor = $3 where organisation = $2 and successor = $1 and id <> $3
)
update sessions set owner = $3 where organisation = $2 and coalesce(owner, principal) = $1
returning id

-- name: hand_over_batches
update session_groups set owner = $3 where organisation = $2 and kind = 'batch' and coalesce(owner, principal) = $1

-- name: wake_waiting_sessions
-- Wakes the sessions that waited for their author, who is enabled again or has a successor now.
with found as (
    select session_id, organisation from session_heads
    where waits_for is not null and acting_principal(waits_for) <> ''
    for update
), active as (
    insert into active_sessions (session_id, organisation) select session_id, organisation from found on conflict do nothing
)
update session_heads h set waits_for = null, wake = true, wake_at = now() from found where h.session_id = found.session_id

-- name: release_turns_of_member
-- Turns that waited for a slot of the member. The next claim checks the limits of the member in whose name they run now.
update session_heads set deferred = null where organisation = $2 and deferred = $1

-- name: add_team_members
insert into team_members (team, member) select $1, unnest($2::text[]) on conflict do nothing

-- name: remove_team_members
delete from team_members where team = $1 and member = any($2::text[])

-- name: members_of
-- The members of the list that exist in the organisation, are not disabled and are not teams.
select id from principals where id = any($1::text[]) and organisation = $2 and disabled_at is null and kind <> 'team'

-- name: team
select p.*, array(select t.member from team_members t where t.team = p.id order by 1) as member_ids
from principals p where p.id = $1 and p.organisation = $2 and p.kind = 'team' and p.disabled_at is null

-- name: insert_key
insert into api_keys (id, organisation, principal, name, secret_hash, roles, expires_at, created_by, project_ids)
values (:id, :organisation, :principal, :name, :secret_hash, :roles, :expires_at, :created_by, :project_ids)

-- name: api_key
select k.*, p.name as member_name from api_keys k join principals p on p.id = k.principal
where k.id = $1 and k.organisation = $2

-- name: revoke_key
update api_keys set revoked_at = coalesce(revoked_at, now()) where id = $1 and organisation = $2

-- name: replace_secret
update api_keys set secret_hash = $3 where id = $1 and organisation = $2 and revoked_at is null
returning id
