-- In the order in which the API locks them, so that the two do not wait for each other.
lock table session_heads, sessions, stretches in access exclusive mode;

-- A session that has ended accepts nothing more. It can be read and forked. `ends_when_done`: it ends by itself when its queue
-- is empty. A member of a group is the child of a session, or a job of a batch.
alter table sessions
    add column ends_when_done boolean not null default false,
    add column ended_at       timestamptz,
    add column end_outcome    text check (end_outcome in ('completed', 'failed', 'cancelled', 'expired')),
    add column end_reason     text,
    add column ended_by       text,
    add column group_id       text,
    add column group_index    integer,
    -- The name of the member in its group: the `custom_id` of a job, or the name of a child.
    add column group_name     text,
    -- How many members had ended when this one did, including it. Assigned under the lock of the group's row, so the results of a
    -- group can be read in this order, and none appears before one that was read.
    add column group_end      integer;
create unique index sessions_of_group on sessions (group_id, group_index) where group_id is not null;

-- Why a step ended that did not run. The turn has the result of a step that ran.
alter table steps add column error_message text;

-- How the session ends when its running turn has ended. A client asked for it while the turn was running.
alter table session_heads
    add column end_request json,
    -- The engine's priority of the session's turns: 1 is the highest, 5 the lowest. Null: 3, the engine's default.
    add column priority    smallint;

-- Sessions that were started together and are waited for together: the children of a session, or a batch.
create table session_groups (
    id                text primary key,
    organisation      text not null,
    kind              text not null check (kind in ('children', 'batch')),
    name              text,
    principal         text not null,
    -- Who can see a batch. Its sessions have their own columns. An owner that is null is the principal.
    owner             text,
    visible_to        text not null default 'organisation',
    -- The session and the turn that started the children. Null for a batch.
    parent_session_id text,
    parent_turn_id    text,
    -- The root session, which is no child itself: an ancestor of the parent, or the parent.
    root_session_id   text,
    -- The call of the parent that started the children. A repeated call finds its group.
    started_by        text,
    -- The call of the parent whose result the group is. Null: no call waits for it.
    waited_for_by     text,
    -- 1 for the children of a session that is no child itself.
    depth             integer not null default 0,
    -- How many members may run at once. Null: no limit.
    max_running       integer,
    definition        json not null default '{}',
    total             integer not null,
    -- The numbers of members that have started and ended, so that the end of a member costs the same in every group.
    started           integer not null default 0,
    completed         integer not null default 0,
    failed            integer not null default 0,
    cancelled         integer not null default 0,
    created_at        timestamptz not null default now(),
    cancelled_at      timestamptz,
    ended_at          timestamptz
) with (fillfactor = 50);
create unique index groups_by_call on session_groups (parent_session_id, started_by) where started_by is not null;
create index batches on session_groups (organisation, created_at, id) where kind = 'batch';

-- The members of groups and their states.
create view group_members as
select s.group_id, s.group_index, s.group_name, s.group_end, s.id as session_id, s.organisation,
       coalesce(s.owner, s.principal) as owner, s.visible_to, s.end_reason, s.created_at, s.ended_at,
       case when s.ended_at is not null then s.end_outcome
            when h.status <> 'idle' then 'running'
            -- A parked turn, an author who is disabled, or a session that a client has paused.
            when h.turn_id is not null and not h.wake or h.waits_for is not null then 'waiting'
            when not h.playing and h.next_steps = 0 and h.pause_reason <> 'group' then 'waiting'
            when h.epoch = 0 or h.deferred is not null then 'pending'
            else 'running' end as state,
       h.input_tokens, h.output_tokens, h.cache_read, h.cache_write, h.requests, h.cost_microusd, h.active_seconds
from sessions s join session_heads h on h.session_id = s.id
where s.group_id is not null;
create index groups_of_parent on session_groups (parent_session_id) where parent_session_id is not null;
create index unsettled_groups on session_groups (root_session_id) where completed + failed + cancelled < total;

-- A child starts with the files of its parent, but not with its log. It needs the packs of its parent's snapshots. An ancestor may
-- have a shorter log than a descendant, so its last position does not identify it.
alter table stretches
    add column files_only boolean not null default false,
    drop constraint stretches_pkey,
    add primary key (session_id, owner);
