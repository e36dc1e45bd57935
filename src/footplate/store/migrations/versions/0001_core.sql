-- The log and what stands around it. Sized for one cell: a million sessions, a billion events.
-- Every row has its organisation. Text ids are opaque and time-ordered (domain/ids.py).

create table organisations (
    id          text primary key,
    name        text not null,
    created_at  timestamptz not null default now()
);

create table api_keys (
    id           text primary key,
    organisation text not null references organisations (id),
    name         text not null,
    secret_hash  bytea not null unique,
    roles        text[] not null,
    created_at   timestamptz not null default now(),
    revoked_at   timestamptz
);

create table agents (
    id           text primary key,
    organisation text not null,
    version      integer not null,
    name         text not null,
    definition   jsonb not null,
    metadata     jsonb not null,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    archived_at  timestamptz
);
create index agents_listed on agents (organisation, created_at, id);

create table agent_versions (
    agent_id     text not null,
    version      integer not null,
    organisation text not null,
    name         text not null,
    definition   jsonb not null,
    metadata     jsonb not null,
    updated_at   timestamptz not null default now(),
    primary key (agent_id, version)
);

create table environments (
    id           text primary key,
    organisation text not null,
    name         text not null,
    description  text,
    config       jsonb not null,
    metadata     jsonb not null,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    archived_at  timestamptz
);
create index environments_listed on environments (organisation, created_at, id);
create unique index environments_named on environments (organisation, name) where archived_at is null;

create table sessions (
    id             text primary key,
    organisation   text not null,
    agent_id       text not null,
    agent_version  integer not null,
    agent          jsonb not null,
    environment_id text not null,
    title          text,
    metadata       jsonb not null,
    context        jsonb not null,
    -- who pays: the principal that created it, and what it says of itself
    principal      text not null,
    user_id        text,
    team_id        text,
    project_id     text,
    created_at     timestamptz not null default now(),
    updated_at     timestamptz not null default now(),
    archived_at    timestamptz
);
create index sessions_listed on sessions (organisation, created_at, id);
create index sessions_by_agent on sessions (organisation, agent_id, created_at, id);

-- The head is narrow and has room on its page, so that the update that every append makes stays in place (HOT).
create table session_heads (
    session_id     text primary key,
    organisation   text not null,
    status         text not null default 'idle',
    seq            bigint not null default 0,
    epoch          bigint not null default 0,
    entries        integer not null default 0,
    turn_id        text,
    wake           boolean not null default false,
    wake_at        timestamptz,
    control_seq    bigint not null default 0,
    holder         text,
    claimed_at     timestamptz,
    input_tokens   bigint not null default 0,
    output_tokens  bigint not null default 0,
    cache_read     bigint not null default 0,
    cache_write    bigint not null default 0,
    requests       bigint not null default 0,
    cost_microusd  bigint,
    active_seconds double precision not null default 0
) with (fillfactor = 70);
create index session_heads_to_wake on session_heads (wake_at) where wake;
create index session_heads_busy on session_heads (organisation, status, claimed_at) where status <> 'idle';

-- A row is a position. `ref_seq` is set on the second position of a queued input: it says when that was taken up.
-- Rows are never updated.
create table events (
    session_id   text not null,
    seq          bigint not null,
    organisation text not null,
    event_id     text not null,
    ref_seq      bigint,
    type         text not null,
    version      smallint not null default 1,
    turn_id      text,
    principal    text,
    created_at   timestamptz not null default now(),
    processed_at timestamptz,
    body         json,
    object_key   text,
    primary key (session_id, seq)
) partition by hash (session_id);

-- What the harness needs to go on. Rows are never updated.
create table entries (
    session_id   text not null,
    idx          integer not null,
    organisation text not null,
    turn_id      text not null,
    kind         text not null,
    created_at   timestamptz not null default now(),
    body         json,
    object_key   text,
    primary key (session_id, idx)
) partition by hash (session_id);

create table steps (
    session_id   text not null,
    position     bigint not null,
    organisation text not null,
    kind         text not null,
    state        text not null default 'queued',
    event_id     text not null,
    when_busy    text not null,
    turn_id      text,
    overrides    json not null,
    context      json not null,
    created_at   timestamptz not null default now(),
    primary key (session_id, position)
) partition by hash (session_id);

create table turns (
    session_id     text not null,
    id             text not null,
    organisation   text not null,
    position       bigint not null,
    input_event_id text not null,
    status         text not null,
    attempt        integer not null default 1,
    failures       integer not null default 0,
    first_seq      bigint not null,
    controls_seq   bigint not null,
    config         json not null,
    context        json not null,
    result         json not null default '{}',
    input_tokens   bigint not null default 0,
    output_tokens  bigint not null default 0,
    cache_read     bigint not null default 0,
    cache_write    bigint not null default 0,
    requests       bigint not null default 0,
    cost_microusd  bigint,
    created_at     timestamptz not null default now(),
    started_at     timestamptz,
    ended_at       timestamptz,
    primary key (session_id, id)
) partition by hash (session_id);

do $$
begin
    for n in 0..31 loop
        execute format('create table events_%s partition of events for values with (modulus 32, remainder %s)', n, n);
        execute format('create table entries_%s partition of entries for values with (modulus 32, remainder %s)', n, n);
        execute format('create table steps_%s partition of steps for values with (modulus 32, remainder %s)', n, n);
        execute format('create table turns_%s partition of turns for values with (modulus 32, remainder %s)', n, n);
    end loop;
end $$;

-- An append is idempotent by event id; an input is taken up once.
create unique index events_by_id on events (session_id, event_id) where ref_seq is null;
create unique index events_taken_up on events (session_id, ref_seq) where ref_seq is not null;
create index steps_queued on steps (session_id, position) where state = 'queued';

-- A worker's lease covers all of its turns: one statement per worker and beat, however many turns it runs.
create table workers (
    id          text primary key,
    host        text not null,
    started_at  timestamptz not null default now(),
    lease_until timestamptz not null
);

-- Answers already given, for requests that are tried again.
create table answers (
    id           bigint generated always as identity primary key,
    organisation text not null,
    fingerprint  bytea not null,
    body_hash    bytea not null,
    served       bigint not null,
    status       smallint not null,
    body         json not null,
    created_at   timestamptz not null default now()
);
create index answers_found on answers (fingerprint, id);
create index answers_old on answers (created_at);
