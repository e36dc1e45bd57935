-- Who may call the API. An API key belongs to a principal: a person or a service account. A team has members and no keys.

create table principals (
    id           text primary key,
    organisation text not null references organisations (id),
    kind         text not null check (kind in ('person', 'service', 'team')),
    name         text not null,
    roles        text[] not null,
    created_at   timestamptz not null default now(),
    disabled_at  timestamptz
);
create index principals_by_organisation on principals (organisation, created_at, id);
create unique index principals_by_name on principals (organisation, name) where kind <> 'service' and disabled_at is null;

-- Until now the log named the key that sent an input. Each key becomes a service account with the key's id, so old log entries
-- name a principal. Roles were not enforced: a key without one of the roles that are enforced now could do what `member` may.
insert into principals (id, organisation, kind, name, roles, created_at)
select id, organisation, 'service', name,
       case when roles && array['admin', 'member'] then roles else roles || array['member'] end, created_at
from api_keys;

alter table api_keys
    add column principal    text references principals (id),
    add column expires_at   timestamptz,
    add column last_used_at timestamptz,
    add column created_by   text;
update api_keys k set principal = k.id, roles = p.roles from principals p where p.id = k.id;
alter table api_keys alter column principal set not null;
create index api_keys_by_principal on api_keys (principal);
create index api_keys_by_organisation on api_keys (organisation, created_at, id);
create unique index api_keys_by_name on api_keys (principal, name) where revoked_at is null;
