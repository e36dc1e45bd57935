-- The command that prepares each session's tree, and the ignored directories that are cached. Null: the defaults.
alter table projects
    add column setup text,
    add column cached_directories text[];

-- Caches of ignored directories. The bytes are in the object store, and are used only if they have the hash of the row.
create table project_caches (
    organisation text not null,
    project_id   text not null,
    -- of everything that the content depends on: lock files, setup, platform
    digest       text not null,
    sha256       text not null,
    size         bigint not null,
    created_at   timestamptz not null default now(),
    used_at      timestamptz not null default now(),
    primary key (organisation, project_id, digest)
);
