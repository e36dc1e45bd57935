-- The accounts of identity providers with which members sign in.
create table external_identities (
    issuer         text not null,
    subject        text not null,
    organisation   text not null references organisations (id),
    principal      text not null references principals (id),
    email          text,
    is_first_admin boolean not null default false,
    created_at     timestamptz not null default now(),
    signed_in_at   timestamptz not null default now(),
    primary key (issuer, subject)
);
create index external_identities_by_principal on external_identities (principal);

-- Sign-ins that wait for the browser to come back from the identity provider.
create table oidc_sign_ins (
    state_hash   bytea primary key,
    browser_hash bytea not null,             -- hash of the secret in the browser's cookie
    return_to    text not null,
    expires_at   timestamptz not null
);
create index oidc_sign_ins_by_expiry on oidc_sign_ins (expires_at);

-- Programs that wait for a person to let them sign in. The key is created when the program fetches it.
create table device_authorizations (
    device_hash    bytea primary key,
    user_code_hash bytea not null unique,
    client_name    text not null,
    address        text not null,
    created_at     timestamptz not null default now(),
    expires_at     timestamptz not null,
    polled_at      timestamptz,
    status         text not null default 'pending' check (status in ('pending', 'approved', 'denied')),
    organisation   text references organisations (id),
    principal      text references principals (id),
    roles          text[],
    project_ids    text[],
    api_key        text references api_keys (id),
    key_hash       bytea
);
create index device_authorizations_by_expiry on device_authorizations (expires_at);

-- A key that was created by `footplate login` in a browser that was signed in with another key ends with that key.
alter table api_keys
    add column is_login    boolean not null default false,
    add column parent      text references api_keys (id),
    add column parent_hash bytea;

create view valid_api_keys as
select k.*
from api_keys k left join api_keys parent on parent.id = k.parent
where k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
  and (k.parent is null or (parent.revoked_at is null and parent.secret_hash = k.parent_hash
                            and (parent.expires_at is null or parent.expires_at > now())));
