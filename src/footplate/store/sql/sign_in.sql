-- Browser sessions, one-time codes and failed attempts to sign in.

-- name: browser_session_principal
-- The member of a browser session that is valid, and whose API key is. Records its use at most once a minute.
with found as (
    select s.id as session_id, s.secret_hash, s.last_used_at, coalesce(k.roles, p.roles) as key_roles,
           p.organisation, p.id, p.name, p.roles, k.project_ids,
           array(select t.team from team_members t where t.member = p.id order by 1) as team_ids
    from browser_sessions s join principals p on p.id = s.principal left join api_keys k on k.id = s.api_key
    where s.secret_hash = $1 and s.ended_at is null and s.expires_at > now() and s.last_used_at > now() - $2::interval
      and p.disabled_at is null
      and (s.api_key is null or (k.revoked_at is null and k.secret_hash = s.key_hash
                                 and (k.expires_at is null or k.expires_at > now())))
), used as (
    update browser_sessions s set last_used_at = now() from found
    where s.id = found.session_id and found.last_used_at < now() - interval '1 minute'
)
select * from found

-- name: insert_browser_session
insert into browser_sessions (id, organisation, principal, secret_hash, method, api_key, key_hash, user_agent, address, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + $10::interval)

-- name: remove_old_browser_sessions
delete from browser_sessions where expires_at < now() - interval '30 days'

-- name: key_by_secret
-- A key by the hash of its secret, valid or not.
select k.id, k.organisation, k.principal,
       k.revoked_at is null and (k.expires_at is null or k.expires_at > now()) and p.disabled_at is null as is_valid
from api_keys k join principals p on p.id = k.principal
where k.secret_hash = $1

-- name: insert_one_time_code
with removed as (
    delete from one_time_codes where expires_at < now()
)
insert into one_time_codes (code_hash, api_key, key_hash, expires_at)
select $1, k.id, k.secret_hash, now() + $3::interval from api_keys k
where k.secret_hash = $2 and k.revoked_at is null

-- name: redeem_one_time_code
-- Deletes a code, so that it works once. Returns the key that created it.
with redeemed as (
    delete from one_time_codes where code_hash = $1 returning *
)
select k.id, k.organisation, k.principal, k.secret_hash,
       c.expires_at > now() and c.key_hash = k.secret_hash and k.revoked_at is null
       and (k.expires_at is null or k.expires_at > now()) and p.disabled_at is null as is_valid
from redeemed c join api_keys k on k.id = c.api_key join principals p on p.id = k.principal

-- name: browser_sessions_of
select s.*, least(s.expires_at, s.last_used_at + $3::interval, k.expires_at) as valid_until
from browser_sessions s left join api_keys k on k.id = s.api_key
where s.principal = $1 and s.organisation = $2 and s.ended_at is null and s.expires_at > now()
  and s.last_used_at > now() - $3::interval
  and (s.api_key is null or (k.revoked_at is null and k.secret_hash = s.key_hash
                             and (k.expires_at is null or k.expires_at > now())))
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
-- Until when an API key or a browser session is valid, and the session's id.
select s.id, least(s.expires_at, s.last_used_at + $2::interval, k.expires_at) as valid_until
from browser_sessions s left join api_keys k on k.id = s.api_key where s.secret_hash = $1
union all
select k.id, k.expires_at from api_keys k where k.secret_hash = $1

-- name: principal_profile
select p.kind, array(select t.id from principals t where t.id = any($3::text[]) order by t.name) as team_ids,
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
