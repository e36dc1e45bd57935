-- Who may write where two would meet: into a project's branch, say. A row stays, because its token only ever grows: whoever
-- comes with an older one is refused.
create table write_leases (
    organisation text not null,
    place        text not null,
    token        bigint not null,
    -- of the queue: who asks twice for the same turn has it once
    ticket       bigint not null,
    -- in words, for whoever waits; null: it is free
    holder       text,
    since        timestamptz not null,
    until        timestamptz not null,
    primary key (organisation, place)
);

-- Who waits, in the order in which they came. One that has not asked for a while is gone.
create table write_queue (
    ticket       bigint generated always as identity primary key,
    organisation text not null,
    place        text not null,
    -- who made the ticket: a request that is sent again gets the same one
    asker        text not null unique,
    asked_at     timestamptz not null default clock_timestamp()
);
create index write_queue_order on write_queue (organisation, place, ticket);

-- The agent's branches that have commits of its own, and its HEAD: ids by name. `bundles` is git's id of a tree with what brought
-- them out of the environment.
alter table snapshots
    add column commits jsonb not null default '{}',
    add column bundles text,
    -- The files left the session as they were here, as a commit with this message: what leaves later goes on from that one.
    add column departed text;
