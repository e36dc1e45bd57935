-- Members and API keys.

-- name: insert_organisation
insert into organisations (id, name) values ($1, $2) on conflict (id) do nothing

-- name: key_principal
-- The owner of a valid key. Records the use of the key at most once a minute.
with found as (
    select k.id as key_id, k.secret_hash, k.roles as key_roles, k.expires_at, k.last_used_at,
           p.organisation, p.id, p.name, p.roles
    from api_keys k join principals p on p.id = k.principal
    where k.secret_hash = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
      and p.disabled_at is null
), used as (
    update api_keys k set last_used_at = now() from found
    where k.id = found.key_id and (found.last_used_at is null or found.last_used_at < now() - interval '1 minute')
)
select * from found

-- name: insert_member
insert into principals (id, organisation, kind, name, roles) values ($1, $2, $3, $4, $5)
returning *

-- name: member
select * from principals where id = $1 and organisation = $2

-- name: member_names
select id, name from principals where id = any($1::text[]) and organisation = $2

-- name: update_member
update principals
set roles = coalesce($3::text[], roles),
    disabled_at = case when $4::boolean is null then disabled_at when $4 then coalesce(disabled_at, now()) end
where id = $1 and organisation = $2
returning *

-- name: insert_key
insert into api_keys (id, organisation, principal, name, secret_hash, roles, expires_at, created_by)
values ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: api_key
select k.*, p.name as member_name from api_keys k join principals p on p.id = k.principal
where k.id = $1 and k.organisation = $2

-- name: revoke_key
update api_keys set revoked_at = coalesce(revoked_at, now()) where id = $1 and organisation = $2

-- name: replace_secret
update api_keys set secret_hash = $3 where id = $1 and organisation = $2 and revoked_at is null
returning id
