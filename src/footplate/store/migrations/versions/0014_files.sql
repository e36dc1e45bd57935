-- Uploaded by clients, to be named in inputs. The bytes are in the object store, below the organisation's `files/` and the id.
create table files (
    id           text primary key,
    organisation text not null,
    filename     text not null,
    mime_type    text not null,
    size_bytes   bigint not null,
    created_at   timestamptz not null default now(),
    expires_at   timestamptz,
    archived_at  timestamptz
);
create index files_listed on files (organisation, created_at, id);
create index files_expiring on files (expires_at) where expires_at is not null;

-- Bytes that have to go once `due` has come. An upload writes its note before its bytes and takes it away with the commit of
-- its row; a deletion writes one with the removal of the row.
create table file_removals (
    file_id      text primary key,
    organisation text not null,
    due          timestamptz not null
);
create index file_removals_due on file_removals (due);

-- Which files lie in the session's tree from its next turn on, as the api tells them.
alter table sessions add column resources jsonb not null default '[]';
