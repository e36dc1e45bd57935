-- Browsers that are signed in. The cookie has the secret; only its hash is stored.
create table browser_sessions (
    id           text primary key,
    organisation text not null references organisations (id),
    principal    text not null references principals (id),
    secret_hash  bytea not null unique,
    method       text not null,
    api_key      text references api_keys (id),
    key_hash     bytea,                      -- hash of the key's secret at that time: the session ends when the secret is replaced
    user_agent   text not null,
    address      text not null,
    created_at   timestamptz not null default now(),
    last_used_at timestamptz not null default now(),
    expires_at   timestamptz not null,
    ended_at     timestamptz,
    check ((api_key is null) = (key_hash is null))
);
create index browser_sessions_by_principal on browser_sessions (principal, created_at, id);
create index browser_sessions_by_expiry on browser_sessions (expires_at);

-- Codes with which one browser can sign in once, as the owner of the API key that created the code.
create table one_time_codes (
    code_hash  bytea primary key,
    api_key    text not null references api_keys (id),
    key_hash   bytea not null,
    expires_at timestamptz not null
);

-- Failed attempts to sign in, by client address and minute.
create table sign_in_failures (
    address  text not null,
    minute   bigint not null,
    failures integer not null,
    primary key (address, minute)
);
