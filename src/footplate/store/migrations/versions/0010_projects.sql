-- A repository: at a path below the operator's projects root, or behind a URL.
create table projects (
    id           text primary key,
    organisation text not null,
    name         text not null,
    path         text,
    url          text,
    branch       text,
    -- nothing, instructions, all: how far its own files may direct a harness
    trust        text not null,
    metadata     jsonb not null,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    archived_at  timestamptz,
    check ((path is null) <> (url is null))
);
create index projects_listed on projects (organisation, created_at, id);
create unique index projects_named on projects (organisation, name) where archived_at is null;
create unique index projects_placed on projects (organisation, path) where archived_at is null;

create table workspaces (
    id           text primary key,
    organisation text not null,
    name         text not null,
    project_ids  text[] not null,
    metadata     jsonb not null,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    archived_at  timestamptz
);
create index workspaces_listed on workspaces (organisation, created_at, id);
create unique index workspaces_named on workspaces (organisation, name) where archived_at is null;

-- In their order: the first is the working directory. `bases` has by project what its tree began with (commit, branch), once
-- a turn has begun; it never changes after.
alter table sessions
    add column project_ids text[] not null default '{}',
    add column workspace_id text,
    add column bases jsonb not null default '{}';
