-- URLs that receive the changes of an organisation's sessions, or of one session. The secrets sign requests, so they cannot be
-- stored as hashes.
create table webhook_endpoints (
    id                    text primary key,
    organisation          text not null,
    -- Null: all sessions that the principal can see.
    session_id            text,
    url                   text not null,
    description           text,
    -- Empty: all types.
    types                 text[] not null default '{}',
    format                text not null check (format in ('standard', 'slack')),
    -- Whether a delivery waits for the earlier deliveries of its session.
    ordered               boolean not null,
    secret                text not null,
    -- The secret before the last rotation, which signs too until it expires.
    old_secret            text,
    old_secret_expires_at timestamptz,
    -- Who created the endpoint, and the roles of the API key. The endpoint receives what this principal can see.
    principal             text not null,
    roles                 text[] not null,
    -- The position in the feed up to which deliveries were created.
    position              bigint not null,
    -- Set while a wake signal is on its way to the workflow, so that many changes send one signal.
    wake                  boolean not null default false,
    wake_at               timestamptz,
    -- The time of the first failed attempt since the last successful one.
    failing_since         timestamptz,
    disabled_at           timestamptz,
    disabled_reason       text,
    created_at            timestamptz not null default now()
) with (fillfactor = 50);
create index webhook_endpoints_of_organisation on webhook_endpoints (organisation, created_at, id);
-- A repeated request to create an endpoint is refused: its response contains the secret, so it is not stored for retries.
create unique index webhook_endpoint_urls on webhook_endpoints (organisation, coalesce(session_id, ''), url);

-- One event for one endpoint. A repeated read of the feed finds the rows of the first one.
create table webhook_deliveries (
    id               text primary key,
    endpoint_id      text not null references webhook_endpoints (id) on delete cascade,
    organisation     text not null,
    -- The position in the feed. Null for a test.
    position         bigint,
    session_id       text,
    type             text not null,
    payload          json not null,
    status           text not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
    attempts         integer not null default 0,
    -- Null unless the delivery is pending.
    next_attempt_at  timestamptz default now(),
    retry_until      timestamptz not null,
    last_attempt_at  timestamptz,
    last_status_code integer,
    last_error       text,
    created_at       timestamptz not null default now(),
    unique (endpoint_id, position, type)
) with (fillfactor = 70);
create index webhook_deliveries_of_endpoint on webhook_deliveries (endpoint_id, created_at, id);
create index webhook_deliveries_of_session on webhook_deliveries (session_id) where session_id is not null;
create index pending_webhook_deliveries on webhook_deliveries (endpoint_id, next_attempt_at) where status = 'pending';

-- Of a deleted session, only its deletion is still delivered.
create function delete_webhook_deliveries() returns trigger language plpgsql as $$
begin
    delete from webhook_deliveries where session_id = old.id and type <> 'session.deleted';
    return null;
end $$;
create trigger delete_webhook_deliveries after delete on sessions for each row execute function delete_webhook_deliveries();
