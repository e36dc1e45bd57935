-- Other systems start sessions, or add steps to one, by signed requests. The secrets verify signatures, so they cannot be stored
-- as hashes.
create table triggers (
    id                    text primary key,
    organisation          text not null,
    name                  text not null,
    description           text,
    -- The session that gets the steps. Null: each delivery creates a session.
    session_id            text,
    environment_id        text,
    title                 text,
    -- The agent as sessions store it, the steps, and everything else that a session is created with.
    definition            jsonb not null,
    metadata              jsonb not null default '{}',
    condition             text,
    max_per_minute        integer not null,
    secret                text not null,
    -- The secret before the last rotation, which is valid too until it expires.
    old_secret            text,
    old_secret_expires_at timestamptz,
    -- In whose name deliveries act: the member who created or changed it last, and the roles of the API key.
    principal             text not null,
    roles                 text[] not null,
    owner                 text not null,
    visible_to            text not null default 'organisation',
    paused                boolean not null default false,
    created_at            timestamptz not null default now(),
    updated_at            timestamptz not null default now(),
    archived_at           timestamptz,
    check ((session_id is null) <> (environment_id is null))
);
create index triggers_of_organisation on triggers (organisation, created_at, id);
-- A repeated request to create a trigger is refused: its response contains the secret, so it is not stored for retries.
create unique index trigger_names on triggers (organisation, name) where archived_at is null;

-- One row for each delivery, inserted in the transaction that creates the session. A delivery that arrives again finds it. The
-- payload is not stored.
create table trigger_deliveries (
    id           text primary key,
    trigger_id   text not null references triggers (id),
    organisation text not null,
    -- The id that the sender gave it.
    delivery_id  text not null,
    body_hash    bytea not null,
    outcome      text not null check (outcome in ('session_created', 'steps_added', 'ignored', 'failed')),
    session_id   text,
    error        jsonb,
    attempts     integer not null default 1,
    attempted_at timestamptz not null default now(),
    created_at   timestamptz not null default now(),
    unique (trigger_id, delivery_id),
    check ((outcome = 'failed') = (error is not null)),
    check ((outcome in ('session_created', 'steps_added')) = (session_id is not null))
) with (fillfactor = 90);
create index deliveries_of_trigger on trigger_deliveries (trigger_id, created_at, id);
create index trigger_attempts on trigger_deliveries (trigger_id, attempted_at);
create index trigger_deliveries_by_age on trigger_deliveries (attempted_at);
