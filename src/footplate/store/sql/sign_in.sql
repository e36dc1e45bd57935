-- Browser sessions, one-time codes and failed attempts to sign in.

-- name: browser_session_principal
-- The member of a browser session that is valid, and whose API key is. Records its use at most once a minute.
with found as (
    select s.id as session_id, s.secret_hash, s.last_used_at, coalesce(k.roles, p.roles) as key_roles,
           p.organisation, p.id, p.name, p.roles, k.project_ids,
           array(select t.team from team_members t where t.member = p.id order by 1) as team_ids
    from browser_sessions s join principals p on p.id = s.principal
    left join valid_api_keys k on k.id = s.api_key and k.secret_hash = s.key_hash
    where s.secret_hash = $1 and s.ended_at is null and s.expires_at > now() and s.last_used_at > now() - $2::interval
      and p.disabled_at is null and (s.api_key is null or k.id is not null)
), used as (
    update browser_sessions s set last_used_at = now() from found
    where s.id = found.session_id and found.last_used_at < now() - interval '1 minute'
)
select * from found

-- name: insert_browser_session
insert into browser_sessions (id, organisation, principal, secret_hash, method, api_key, key_hash, user_agent, address, expires_at)
values (:id, :organisation, :principal, :secret_hash, :method, :api_key, :key_hash, :user_agent, :address,
        now() + :lifetime::interval)

-- name: remove_old_browser_sessions
delete from browser_sessions where expires_at < now() - interval '30 days'

-- name: key_by_secret
-- A key by the hash of its secret, valid or not.
select k.id, k.organisation, k.principal,
       v.id is not null and p.disabled_at is null as is_valid
from api_keys k join principals p on p.id = k.principal left join valid_api_keys v on v.id = k.id
where k.secret_hash = $1

-- name: insert_one_time_code
with removed as (
    delete from one_time_codes where expires_at < now()
)
insert into one_time_codes (code_hash, api_key, key_hash, expires_at)
select $1, k.id, k.secret_hash, now() + $3::interval from valid_api_keys k
where k.secret_hash = $2

-- name: redeem_one_time_code
-- Deletes a code, so that it works once. Returns the key that created it.
with redeemed as (
    delete from one_time_codes where code_hash = $1 returning *
)
select k.id, k.organisation, k.principal, k.secret_hash,
       c.expires_at > now() and c.key_hash = k.secret_hash and v.id is not null and p.disabled_at is null as is_valid
from redeemed c join api_keys k on k.id = c.api_key join principals p on p.id = k.principal
left join valid_api_keys v on v.id = k.id

-- name: browser_sessions_of
select s.*, least(s.expires_at, s.last_used_at + $3::interval, k.expires_at) as valid_until
from browser_sessions s left join valid_api_keys k on k.id = s.api_key and k.secret_hash = s.key_hash
where s.principal = $1 and s.organisation = $2 and s.ended_at is null and s.expires_at > now()
  and s.last_used_at > now() - $3::interval and (s.api_key is null or k.id is not null)
order by s.created_at desc, s.id desc
limit 100

-- name: end_browser_session
update browser_sessions set ended_at = now()
where id = $1 and principal = $2 and organisation = $3 and ended_at is null
returning id

-- name: end_browser_session_by_secret
update browser_sessions set ended_at = now() where secret_hash = $1 and ended_at is null
returning id, organisation, principal

-- name: credential
-- Until when an API key or a browser session is valid, the session's id, and the key that started the session.
select s.id, s.method, s.api_key as key_id, least(s.expires_at, s.last_used_at + $2::interval, k.expires_at) as valid_until
from browser_sessions s left join api_keys k on k.id = s.api_key where s.secret_hash = $1
union all
select k.id, 'key', k.id, k.expires_at from api_keys k where k.secret_hash = $1

-- name: principal_profile
select p.kind, (select max(i.email) from external_identities i where i.principal = p.id) as email,
       array(select t.id from principals t where t.id = any($3::text[]) order by t.name) as team_ids,
       array(select t.name from principals t where t.id = any($3::text[]) order by t.name) as team_names
from principals p where p.id = $1 and p.organisation = $2

-- name: count_sign_in_failure
with removed as (
    delete from sign_in_failures where minute < $2 - 10
)
insert into sign_in_failures (address, minute, failures) values ($1, $2, 1)
on conflict (address, minute) do update set failures = sign_in_failures.failures + 1

-- name: recent_sign_in_failures
select coalesce(sum(failures), 0)::int as failures from sign_in_failures where address = $1 and minute >= $2 - 1

-- name: insert_oidc_sign_in
with removed as (
    delete from oidc_sign_ins where expires_at < now()
)
insert into oidc_sign_ins (state_hash, browser_hash, return_to, expires_at) values ($1, $2, $3, now() + $4::interval)

-- name: redeem_oidc_sign_in
-- Deletes a sign-in, so that its state works once.
delete from oidc_sign_ins where state_hash = $1
returning browser_hash, return_to, expires_at > now() as is_valid

-- name: lock_identity
select pg_advisory_xact_lock(hashtextextended($1, 57))

-- name: identity
-- Locks the member, so that a sign-in and the change that disables the member see each other.
select i.principal as id, i.is_first_admin, p.name, p.roles, p.disabled_at is not null as is_disabled
from external_identities i join principals p on p.id = i.principal
where i.organisation = $1 and i.issuer = $2 and i.subject = $3
for no key update of p

-- name: save_identity
insert into external_identities (issuer, subject, organisation, principal, email, is_first_admin)
values (:issuer, :subject, :organisation, :principal, :email, :is_first_admin)
on conflict (organisation, issuer, subject) do update
set email = excluded.email, is_first_admin = excluded.is_first_admin, signed_in_at = now()

-- name: has_administrator
select exists (select from principals
               where organisation = $1 and kind = 'person' and disabled_at is null and 'admin' = any(roles))

-- name: is_name_used
select exists (select from principals
               where organisation = $1 and name = $2 and kind <> 'service' and disabled_at is null)

-- name: set_roles
update principals set roles = $3 where id = $1 and organisation = $2

-- name: teams_by_name
select id, name, exists (select from team_members m where m.team = t.id and m.member = $3) as is_member
from principals t where organisation = $1 and name = any($2::text[]) and kind = 'team' and disabled_at is null

-- name: insert_device_authorization
-- Inserts nothing if too many wait already.
with removed as (
    delete from device_authorizations where expires_at < now() - interval '1 hour'
)
insert into device_authorizations (device_hash, user_code_hash, client_name, address, expires_at)
select :device_hash, :user_code_hash, :client_name, :address, now() + :lifetime::interval
where (select count(*) from device_authorizations where status = 'pending' and expires_at > now()) < :max_pending
on conflict do nothing
returning device_hash

-- name: device_authorization
select client_name, address, created_at, expires_at, case when expires_at > now() then status else 'expired' end as status
from device_authorizations where user_code_hash = $1

-- name: session_of_secret
-- The browser session that approves a device, with its API key.
select s.id, s.api_key, s.key_hash, k.is_login
from browser_sessions s left join api_keys k on k.id = s.api_key
where s.secret_hash = $1 and s.ended_at is null

-- name: decide_device_authorization
update device_authorizations
set status = :status, organisation = :organisation, principal = :principal, roles = :roles, project_ids = :project_ids,
    api_key = :api_key, key_hash = :key_hash
where user_code_hash = :user_code_hash and status = 'pending' and expires_at > now()
returning client_name, address, created_at, expires_at, status

-- name: poll_device_authorization
-- Records the poll, and returns the state before it.
with found as (
    select d.*, d.expires_at > now() as is_valid,
           d.polled_at is not null and d.polled_at > now() - $2::interval as is_too_fast
    from device_authorizations d where d.device_hash = $1 for update
), polled as (
    update device_authorizations d set polled_at = now() from found where d.device_hash = found.device_hash
)
select * from found

-- name: redeem_device_authorization
-- Deletes an approved authorization, so that it gives one key. Returns nothing if the member or the key has ended.
with redeemed as (
    delete from device_authorizations where device_hash = $1 and status = 'approved' returning *
)
select d.*, p.name as member_name, k.expires_at as parent_expires_at
from redeemed d join principals p on p.id = d.principal and p.disabled_at is null
left join valid_api_keys k on k.id = d.api_key and k.secret_hash = d.key_hash
where d.api_key is null or k.id is not null

-- name: withdraw_device_authorizations
-- Programs that a member has approved, and that have not fetched their keys.
update device_authorizations set status = 'denied' where principal = $1 and status = 'approved'

-- name: mark_login_key
update api_keys set is_login = true, parent = $2, parent_hash = $3 where id = $1
