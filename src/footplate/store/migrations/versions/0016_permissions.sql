-- Rules as they were written: lists of texts by `deny`, `ask` and `allow`. An agent's are in its definition.
create table policies (
    organisation text primary key,
    permissions  jsonb not null,
    -- Who may answer an ask, and what becomes of one that nobody answers.
    approvals    jsonb not null default '{}',
    principal    text not null,
    updated_at   timestamptz not null default now()
);
alter table projects add column permissions jsonb not null default '{}';
alter table sessions add column permissions jsonb not null default '{}';

-- Calls that wait, or waited, for a person's word: beside the log, so that they are found across sessions.
create table approvals (
    organisation text not null,
    session_id   text not null,
    event_id     text not null,
    seq          bigint not null,
    turn_id      text not null,
    created_at   timestamptz not null default now(),
    expires_at   timestamptz,
    closed_at    timestamptz,
    outcome      text,        -- 'allow' or 'deny'; null once closed: its turn ended without a word
    principal    text,        -- whose word; null where nobody's
    primary key (session_id, event_id)
);
create index approvals_by_id on approvals (organisation, event_id);
create index approvals_waiting on approvals (organisation, created_at, event_id) where closed_at is null;
create index approvals_due on approvals (expires_at) where closed_at is null;
