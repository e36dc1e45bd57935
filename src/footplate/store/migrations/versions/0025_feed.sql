-- In the order in which the API and the workers lock them, so that they do not wait for each other.
lock table session_heads, sessions, events in access exclusive mode;

-- One row for each change that the feed of an organisation reports. Bodies stay in `events`. `event_id` is set if there is no
-- row in `events`. A deleted session's row keeps who could see it.
create table feed (
    organisation text not null,
    position     bigint not null,
    session_id   text not null,
    seq          bigint not null,
    type         text not null,
    event_id     text,
    owner        text,
    visible_to   text,
    project_ids  text[],
    created_at   timestamptz not null,
    primary key (organisation, position)
) with (autovacuum_vacuum_scale_factor = 0.02);

-- Changes that have no position yet: a reader moves them to `feed` after their commit (`number_feed`). A number that was
-- assigned before the commit could become visible after a higher one, and a reader that resumes after the higher one would
-- miss it. The rows are moved and not updated, so that this table stays small, and `feed` is only added to.
create table feed_pending (
    organisation text not null,
    id           bigint generated always as identity,
    session_id   text not null,
    seq          bigint not null,
    type         text not null,
    event_id     text,
    owner        text,
    visible_to   text,
    project_ids  text[],
    created_at   timestamptz not null default now(),
    primary key (organisation, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The last position of each organisation.
create table feed_heads (
    organisation text primary key,
    position     bigint not null default 0
) with (fillfactor = 50);

-- Rows of a deleted session that are restored for its forks are no changes.
create function add_event_to_feed() returns trigger language plpgsql as $$
begin
    insert into feed_pending (organisation, session_id, seq, type)
    select new.organisation, new.session_id, new.seq, new.type from sessions where id = new.session_id;
    return null;
end $$;
create trigger add_event_to_feed after insert on events for each row
    when (new.ref_seq is null and (
        starts_with(new.type, 'session.status_')
        or new.type in ('session.updated', 'session.error', 'user.tool_confirmation', 'agent.custom_tool_use')
        or starts_with(new.type, 'step.') or starts_with(new.type, 'question.') or starts_with(new.type, 'batch.')
        or case when new.type in ('agent.tool_use', 'agent.mcp_tool_use') then new.body ->> 'evaluated_permission' = 'ask' end))
    execute function add_event_to_feed();

create function add_created_session_to_feed() returns trigger language plpgsql as $$
begin
    insert into feed_pending (organisation, session_id, seq, type, event_id)
    values (new.organisation, new.id, 0, 'session.created', 'sevt_' || replace(gen_random_uuid()::text, '-', ''));
    return null;
end $$;
create trigger add_created_session_to_feed after insert on sessions for each row
    execute function add_created_session_to_feed();

-- The events of the session are deleted by a later statement, so its last one can still be read. It is `session.deleted` if
-- a client deleted the session; an expired session has none.
create function add_deleted_session_to_feed() returns trigger language plpgsql as $$
declare
    last events;
begin
    select * into last from events where session_id = old.id order by seq desc limit 1;
    if last.type is distinct from 'session.deleted' then
        last.event_id := 'sevt_' || replace(gen_random_uuid()::text, '-', '');
        last.seq := coalesce(last.seq, 0) + 1;
    end if;
    insert into feed_pending (organisation, session_id, seq, type, event_id, owner, visible_to, project_ids)
    values (old.organisation, old.id, last.seq, 'session.deleted', last.event_id, coalesce(old.owner, old.principal),
            old.visible_to, old.project_ids);
    return null;
end $$;
create trigger add_deleted_session_to_feed after delete on sessions for each row
    execute function add_deleted_session_to_feed();

-- Numbers the committed rows of an organisation that have no position, and returns its last position. The lock of the head
-- orders concurrent callers; each statement of the function sees what was committed before it. The rows of a session are
-- numbered by `seq`, even if they were inserted in another order. At most 10,000 rows, so that a backlog needs no long
-- transaction.
create function number_feed(wanted text) returns bigint language plpgsql as $$
declare
    head     bigint;
    numbered bigint;
begin
    if not exists (select from feed_pending where organisation = wanted) then
        return coalesce((select position from feed_heads where organisation = wanted), 0);
    end if;
    insert into feed_heads (organisation) values (wanted) on conflict do nothing;
    select position into head from feed_heads where organisation = wanted for update;
    with chosen as (
        select id from feed_pending where organisation = wanted order by id limit 10000
    ), pending as (
        delete from feed_pending p using chosen where p.organisation = wanted and p.id = chosen.id returning p.*
    ), ordered as (
        select *, max(id) over (partition by session_id order by seq) as last_id from pending
    )
    insert into feed
    select organisation, head + row_number() over (order by last_id, seq), session_id, seq, type, event_id, owner, visible_to,
           project_ids, created_at
    from ordered;
    get diagnostics numbered = row_count;
    update feed_heads set position = head + numbered where organisation = wanted;
    return head + numbered;
end $$;
