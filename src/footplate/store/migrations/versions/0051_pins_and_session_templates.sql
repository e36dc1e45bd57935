-- The sessions that a member has pinned.
create table session_pins (
    principal    text not null,
    session_id   text not null,
    organisation text not null,
    created_at   timestamptz not null default now(),
    primary key (principal, session_id)
);
create index pins_of_session on session_pins (session_id);

-- What a new session is created with. `session` is the body of the request that creates it, as a client sent it.
create table session_templates (
    id           text primary key,
    organisation text not null,
    name         text not null,
    description  text,
    session      jsonb not null,
    principal    text not null,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    archived_at  timestamptz
);
create index session_templates_listed on session_templates (organisation, created_at, id);
create unique index session_templates_named on session_templates (organisation, name) where archived_at is null;
