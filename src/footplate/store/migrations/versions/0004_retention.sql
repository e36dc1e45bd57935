-- Where the rows of a session went that has rested for long. What is at or below `last_seq`, and the first `entries`
-- entries, are read from the object alone, whether their rows are deleted already or not.
create table archives (
    session_id   text primary key,
    organisation text not null,
    object_key   text not null,
    last_seq     bigint not null,
    entries      integer not null,
    -- where in the object its index begins, and the object's size
    index_at     bigint not null,
    size         bigint not null,
    -- of the index, which has that of every block
    sha256       bytea not null,
    -- the object that this one took the place of, while it may still be there
    replaced     text,
    -- no row and no replaced object is left
    pruned       boolean not null default false,
    created_at   timestamptz not null default now()
);
create index archives_to_prune on archives (created_at) where not pruned;

-- Sessions that were deleted, while something of them may be left outside the database. Ids, no content.
create table deletions (
    session_id   text primary key,
    organisation text not null,
    deleted_at   timestamptz not null default now(),
    purged_at    timestamptz
);
create index deletions_by_age on deletions (deleted_at);

-- How far the sweep has walked, so that whichever worker runs the next one goes on from there.
create table walks (
    name  text primary key,
    place text not null
);

-- Whose key an archived turn's input came with: usage by key outlives the event that says so.
alter table turns add column principal text;
