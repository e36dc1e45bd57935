-- A fork is a pointer: its log and its conversation begin in rows of other sessions. Positions up to `inherited_seq` and
-- the first `inherited_entries` entries of a session are those of its stretches; its own rows follow.
alter table session_heads
    add column inherited_seq bigint not null default 0,
    add column inherited_entries integer not null default 0;

-- `owner`'s rows up to and including `last_seq`, and its entries below `entries`, from where the stretch before ends. An
-- owner that is deleted leaves these rows, and no others, until nobody needs them.
create table stretches (
    session_id   text not null,
    last_seq     bigint not null,
    entries      integer not null,
    owner        text not null,
    organisation text not null,
    primary key (session_id, last_seq)
);
create index stretches_of_owner on stretches (owner);

-- Of what and where: session_id, event_id, position; and which inputs had been taken up there, but not told to the model.
alter table sessions add column fork jsonb;

-- How many entries the conversation had once the event was in the log, those included that came with it.
alter table events add column entries integer;
