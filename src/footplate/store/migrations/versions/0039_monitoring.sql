-- Usage is totalled when a turn ends: by day, by hour, and by tool and day. Open turns are read one by one.

-- The input parameters of a turn, as text with a fixed order of names. It is part of an index, so its size is limited.
create function turn_parameters(config json) returns text language sql immutable parallel safe as $$
    select case when octet_length((given || limits)::text) > 1000
                then limits || '{"model_parameters": "not shown"}' else given || limits end::text
    from (
        select case when json_typeof(config -> 'model_parameters') = 'object'
                    then (config -> 'model_parameters')::jsonb else '{}' end as given,
               jsonb_strip_nulls(jsonb_build_object(
                   'max_iterations', config -> 'max_iterations', 'timeout_seconds', config -> 'timeout_seconds',
                   'max_retries', config -> 'max_retries', 'mode', config -> 'mode')) as limits
    ) stored
$$;

alter table turns
    add column project    text generated always as (config -> 'projects' -> 0 ->> 'id') stored,
    add column parameters text generated always as (turn_parameters(config)) stored,
    add column tools      jsonb, -- by tool: [calls, failed calls, microseconds]
    add column last_interaction_at timestamptz;
alter table session_heads add column last_interaction_at timestamptz;

drop trigger count_usage on turns;
drop function count_usage;
drop view turn_usage;
drop table usage_by_day;

-- Columns that may be null in a turn are '' here. A period is divided into slots by session, so that turns that end at the
-- same time seldom wait for each other.
create table usage_by_hour (
    organisation      text not null,
    hour              timestamptz not null,
    agent             text not null,
    model             text not null,
    harness           text not null,
    key               text not null,
    project           text not null,
    parameters        text not null,
    status            text not null,
    slot              smallint not null,
    turns             bigint not null,
    microseconds      bigint not null,
    input_tokens      bigint not null,
    output_tokens     bigint not null,
    cache_read        bigint not null,
    cache_write       bigint not null,
    requests          bigint not null,
    cost_microusd     bigint not null,
    priced_turns      bigint not null,
    unpriced_turns    bigint not null,
    primary key (organisation, hour, agent, model, harness, key, project, parameters, status, slot)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

create table usage_by_day (
    organisation      text not null,
    day               date not null,
    agent             text not null,
    model             text not null,
    harness           text not null,
    key               text not null,
    project           text not null,
    parameters        text not null,
    status            text not null,
    slot              smallint not null,
    turns             bigint not null,
    microseconds      bigint not null,
    input_tokens      bigint not null,
    output_tokens     bigint not null,
    cache_read        bigint not null,
    cache_write       bigint not null,
    requests          bigint not null,
    cost_microusd     bigint not null,
    priced_turns      bigint not null,
    unpriced_turns    bigint not null,
    primary key (organisation, day, agent, model, harness, key, project, parameters, status, slot)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- The turns that called a tool, and their calls. A turn that called two tools is in two rows.
create table tool_usage_by_day (
    organisation      text not null,
    day               date not null,
    tool              text not null,
    agent             text not null,
    model             text not null,
    harness           text not null,
    key               text not null,
    project           text not null,
    parameters        text not null,
    status            text not null,
    turns             bigint not null,
    microseconds      bigint not null,
    input_tokens      bigint not null,
    output_tokens     bigint not null,
    cache_read        bigint not null,
    cache_write       bigint not null,
    requests          bigint not null,
    cost_microusd     bigint not null,
    priced_turns      bigint not null,
    unpriced_turns    bigint not null,
    calls             bigint not null,
    failed_calls      bigint not null,
    call_microseconds bigint not null,
    primary key (organisation, day, tool, agent, model, harness, key, project, parameters, status)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- Turns that have not ended. An index on turns would have to change with each turn that ends.
create table open_turns (
    organisation text not null,
    session_id   text not null,
    turn_id      text not null,
    primary key (session_id, turn_id)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index open_turns_by_organisation on open_turns (organisation);

-- What one turn counts for.
create function usage_of(turn turns) returns setof usage_by_hour language sql stable parallel safe rows 1 as $$
    select turn.organisation, date_trunc('hour', turn.created_at, 'UTC'), coalesce(turn.agent_id, ''), coalesce(turn.model, ''),
           coalesce(turn.harness, ''), coalesce(turn.principal, ''), coalesce(turn.project, ''),
           turn.parameters, turn.status, (hashtext(turn.session_id) & 3)::smallint, 1::bigint,
           coalesce(extract(epoch from turn.ended_at - turn.started_at) * 1000000, 0)::bigint,
           turn.input_tokens, turn.output_tokens, turn.cache_read, turn.cache_write, turn.requests,
           coalesce(turn.cost_microusd, 0), (turn.cost_microusd is not null)::int::bigint,
           (turn.requests > 0 and turn.cost_microusd is null)::int::bigint
$$;

create function tool_usage_of(turn turns) returns table (
    tool text, organisation text, hour timestamptz, agent text, model text, harness text, key text, project text,
    parameters text, status text, turns bigint, microseconds bigint, input_tokens bigint, output_tokens bigint,
    cache_read bigint, cache_write bigint, requests bigint, cost_microusd bigint, priced_turns bigint, unpriced_turns bigint,
    calls bigint, failed_calls bigint, call_microseconds bigint)
language sql stable parallel safe as $$
    select c.key, u.organisation, u.hour, u.agent, u.model, u.harness, u.key, u.project, u.parameters, u.status, u.turns,
           u.microseconds, u.input_tokens, u.output_tokens, u.cache_read, u.cache_write, u.requests, u.cost_microusd,
           u.priced_turns, u.unpriced_turns,
           (c.value ->> 0)::bigint, (c.value ->> 1)::bigint, (c.value ->> 2)::bigint
    from jsonb_each(turn.tools) c cross join usage_of(turn) u
$$;

-- Each turn with what it counts for.
create view turn_usage as
select t.session_id, t.id, t.created_at, t.ended_at, (u.hour at time zone 'utc')::date as day, u.*
from turns t cross join lateral usage_of(t) u;

create view turn_tool_usage as
select t.session_id, t.id, t.created_at, t.ended_at, (u.hour at time zone 'utc')::date as day, u.*
from turns t cross join lateral tool_usage_of(t) u
where t.tools is not null;

-- The calls of a turn by tool, from the log between two positions: their number, how many of them failed, and how long they
-- ran. A call that waited for a person runs from the decision on. A call without a result has failed.
create function tools_of_turn(session text, turn text, first_position bigint, end_position bigint) returns jsonb
language plpgsql stable as $$
begin
    return (
        with log as (
            select e.event_id, e.type, e.created_at, e.body from events e
            where e.session_id = session and e.seq >= first_position and e.seq < end_position and e.ref_seq is null
              and (e.type in ('agent.tool_use', 'agent.mcp_tool_use', 'agent.custom_tool_use') and e.turn_id = turn
                   or e.type in ('agent.tool_result', 'agent.mcp_tool_result', 'user.custom_tool_result', 'user.tool_confirmation'))
        ), results as (
            select coalesce(body ->> 'tool_use_id', body ->> 'mcp_tool_use_id', body ->> 'custom_tool_use_id') as call_id,
                   min(created_at) filter (where type <> 'user.tool_confirmation') as ended_at,
                   max(created_at) filter (where type = 'user.tool_confirmation') as decided_at,
                   bool_and(coalesce((body ->> 'is_error')::boolean, false) is false)
                       filter (where type <> 'user.tool_confirmation') as succeeded
            from log where type not in ('agent.tool_use', 'agent.mcp_tool_use', 'agent.custom_tool_use')
            group by 1
        ), calls as (
            select left(case when log.type = 'agent.mcp_tool_use' then concat('mcp__', body ->> 'mcp_server_name', '__') else '' end
                        || coalesce(body ->> 'name', ''), 200) as tool,
                   succeeded, ended_at - coalesce(decided_at, created_at) as duration
            from log left join results on results.call_id = log.event_id
            where type in ('agent.tool_use', 'agent.mcp_tool_use', 'agent.custom_tool_use')
        )
        select jsonb_object_agg(tool, counts) from (
            select tool, jsonb_build_array(count(*), count(*) filter (where succeeded is not true),
                                           coalesce(sum(extract(epoch from duration) * 1000000), 0)::bigint) as counts
            from calls group by tool
        ) by_tool);
end $$;

update turns t
set tools = tools_of_turn(t.session_id, t.id, n.first_seq, n.next_seq), last_interaction_at = case when t.requests > 0 then t.ended_at end
from (
    select session_id, id, first_seq, lead(first_seq, 1, 9223372036854775807) over (partition by session_id order by first_seq) as next_seq
    from turns
) n
where n.session_id = t.session_id and n.id = t.id and t.ended_at is not null;

update session_heads h set last_interaction_at = t.last
from (select session_id, max(last_interaction_at) as last from turns group by session_id) t
where t.session_id = h.session_id and t.last is not null;

insert into open_turns (organisation, session_id, turn_id)
select organisation, session_id, id from turns where ended_at is null;

insert into usage_by_hour
select organisation, hour, agent, model, harness, key, project, parameters, status, slot, sum(turns), sum(microseconds), sum(input_tokens), sum(output_tokens), sum(cache_read), sum(cache_write), sum(requests),
       sum(cost_microusd), sum(priced_turns), sum(unpriced_turns)
from turn_usage where ended_at is not null
group by organisation, hour, agent, model, harness, key, project, parameters, status, slot;

insert into usage_by_day
select organisation, (hour at time zone 'utc')::date, agent, model, harness, key, project, parameters, status, slot, sum(turns), sum(microseconds), sum(input_tokens), sum(output_tokens), sum(cache_read), sum(cache_write), sum(requests),
       sum(cost_microusd), sum(priced_turns), sum(unpriced_turns)
from usage_by_hour
group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10;

insert into tool_usage_by_day
select organisation, day, tool, agent, model, harness, key, project, parameters, status, sum(turns), sum(microseconds), sum(input_tokens), sum(output_tokens), sum(cache_read), sum(cache_write), sum(requests),
       sum(cost_microusd), sum(priced_turns), sum(unpriced_turns), sum(calls), sum(failed_calls), sum(call_microseconds)
from turn_tool_usage
group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10;

-- Adds a turn to the totals, or subtracts it. The rows are locked in the order of `lock_usage`.
create function add_usage(turn turns, sign integer) returns void language plpgsql as $$
begin
    insert into usage_by_day as u (organisation, day, agent, model, harness, key, project, parameters, status, slot, turns, microseconds, input_tokens,
        output_tokens, cache_read, cache_write, requests, cost_microusd, priced_turns, unpriced_turns)
    select m.organisation, (m.hour at time zone 'utc')::date, m.agent, m.model, m.harness, m.key, m.project, m.parameters,
           m.status, m.slot,
           sign * m.turns, sign * m.microseconds, sign * m.input_tokens, sign * m.output_tokens, sign * m.cache_read, sign *
           m.cache_write, sign * m.requests, sign * m.cost_microusd, sign * m.priced_turns, sign * m.unpriced_turns
    from usage_of(turn) m
    on conflict (organisation, day, agent, model, harness, key, project, parameters, status, slot) do update
    set (turns, microseconds, input_tokens, output_tokens, cache_read, cache_write, requests, cost_microusd, priced_turns,
         unpriced_turns)
        = (u.turns + excluded.turns, u.microseconds + excluded.microseconds, u.input_tokens + excluded.input_tokens,
           u.output_tokens + excluded.output_tokens, u.cache_read + excluded.cache_read, u.cache_write + excluded.cache_write,
           u.requests + excluded.requests, u.cost_microusd + excluded.cost_microusd, u.priced_turns + excluded.priced_turns,
           u.unpriced_turns + excluded.unpriced_turns);
    insert into usage_by_hour as u (organisation, hour, agent, model, harness, key, project, parameters, status, slot, turns, microseconds, input_tokens,
        output_tokens, cache_read, cache_write, requests, cost_microusd, priced_turns, unpriced_turns)
    select m.organisation, m.hour, m.agent, m.model, m.harness, m.key, m.project, m.parameters, m.status, m.slot,
           sign * m.turns, sign * m.microseconds, sign * m.input_tokens, sign * m.output_tokens, sign * m.cache_read, sign *
           m.cache_write, sign * m.requests, sign * m.cost_microusd, sign * m.priced_turns, sign * m.unpriced_turns
    from usage_of(turn) m
    on conflict (organisation, hour, agent, model, harness, key, project, parameters, status, slot) do update
    set (turns, microseconds, input_tokens, output_tokens, cache_read, cache_write, requests, cost_microusd, priced_turns,
         unpriced_turns)
        = (u.turns + excluded.turns, u.microseconds + excluded.microseconds, u.input_tokens + excluded.input_tokens,
           u.output_tokens + excluded.output_tokens, u.cache_read + excluded.cache_read, u.cache_write + excluded.cache_write,
           u.requests + excluded.requests, u.cost_microusd + excluded.cost_microusd, u.priced_turns + excluded.priced_turns,
           u.unpriced_turns + excluded.unpriced_turns);
    if turn.tools is not null then
    insert into tool_usage_by_day as u (organisation, day, tool, agent, model, harness, key, project, parameters, status, turns, microseconds, input_tokens,
        output_tokens, cache_read, cache_write, requests, cost_microusd, priced_turns, unpriced_turns, calls, failed_calls,
        call_microseconds)
    select m.organisation, (m.hour at time zone 'utc')::date, m.tool, m.agent, m.model, m.harness, m.key, m.project,
           m.parameters, m.status,
           sign * m.turns, sign * m.microseconds, sign * m.input_tokens, sign * m.output_tokens, sign * m.cache_read, sign *
           m.cache_write, sign * m.requests, sign * m.cost_microusd, sign * m.priced_turns, sign * m.unpriced_turns, sign *
           m.calls, sign * m.failed_calls, sign * m.call_microseconds
    from tool_usage_of(turn) m order by m.tool
    on conflict (organisation, day, tool, agent, model, harness, key, project, parameters, status) do update
    set (turns, microseconds, input_tokens, output_tokens, cache_read, cache_write, requests, cost_microusd, priced_turns,
         unpriced_turns, calls, failed_calls, call_microseconds)
        = (u.turns + excluded.turns, u.microseconds + excluded.microseconds, u.input_tokens + excluded.input_tokens,
           u.output_tokens + excluded.output_tokens, u.cache_read + excluded.cache_read, u.cache_write + excluded.cache_write,
           u.requests + excluded.requests, u.cost_microusd + excluded.cost_microusd, u.priced_turns + excluded.priced_turns,
           u.unpriced_turns + excluded.unpriced_turns, u.calls + excluded.calls, u.failed_calls + excluded.failed_calls,
           u.call_microseconds + excluded.call_microseconds);
    end if;
    if sign < 0 then
        delete from usage_by_day d using usage_of(turn) m
        where (d.organisation, d.day, d.agent, d.model, d.harness, d.key, d.project, d.parameters, d.status, d.slot)
            = (m.organisation, (m.hour at time zone 'utc')::date, m.agent, m.model, m.harness, m.key, m.project, m.parameters,
               m.status, m.slot) and d.turns = 0;
        delete from usage_by_hour d using usage_of(turn) m
        where (d.organisation, d.hour, d.agent, d.model, d.harness, d.key, d.project, d.parameters, d.status, d.slot)
            = (m.organisation, m.hour, m.agent, m.model, m.harness, m.key, m.project, m.parameters, m.status, m.slot) and d.turns = 0;
        if turn.tools is not null then
            delete from tool_usage_by_day d using tool_usage_of(turn) m
            where (d.organisation, d.day, d.tool, d.agent, d.model, d.harness, d.key, d.project, d.parameters, d.status)
                = (m.organisation, (m.hour at time zone 'utc')::date, m.tool, m.agent, m.model, m.harness, m.key, m.project,
                   m.parameters, m.status) and d.turns = 0;
        end if;
    end if;
end $$;

-- Locks the totals of a session's turns in a fixed order, so that two deletions cannot deadlock.
create function lock_usage(session text) returns void language plpgsql as $$
begin
    perform from usage_by_day
    where (organisation, day, agent, model, harness, key, project, parameters, status, slot) in (
        select m.organisation, (m.hour at time zone 'utc')::date, m.agent, m.model, m.harness, m.key, m.project, m.parameters,
               m.status, m.slot
        from turns t cross join lateral usage_of(t) m where t.session_id = session and t.ended_at is not null)
    order by organisation, day, agent, model, harness, key, project, parameters, status, slot
    for update;
    perform from usage_by_hour
    where (organisation, hour, agent, model, harness, key, project, parameters, status, slot) in (
        select m.organisation, m.hour, m.agent, m.model, m.harness, m.key, m.project, m.parameters, m.status, m.slot
        from turns t cross join lateral usage_of(t) m where t.session_id = session and t.ended_at is not null)
    order by organisation, hour, agent, model, harness, key, project, parameters, status, slot
    for update;
    perform from tool_usage_by_day
    where (organisation, day, tool, agent, model, harness, key, project, parameters, status) in (
        select m.organisation, (m.hour at time zone 'utc')::date, m.tool, m.agent, m.model, m.harness, m.key, m.project,
               m.parameters, m.status
        from turns t cross join lateral tool_usage_of(t) m where t.session_id = session and t.ended_at is not null)
    order by organisation, day, tool, agent, model, harness, key, project, parameters, status
    for update;
end $$;

create function collect_tools() returns trigger language plpgsql as $$
begin
    new.tools := tools_of_turn(new.session_id, new.id, new.first_seq, 9223372036854775807);
    return new;
end $$;
create trigger collect_tools before update of ended_at on turns
    for each row when (old.ended_at is null and new.ended_at is not null) execute function collect_tools();

-- A turn began, ended, changed after its end, or was deleted.
create function count_usage() returns trigger language plpgsql as $$
declare
    before turns := old;
    after turns := new;
begin
    if tg_op <> 'INSERT' then
        if before.ended_at is null then
            delete from open_turns o where o.session_id = before.session_id and o.turn_id = before.id;
        else
            perform add_usage(before, -1);
        end if;
    end if;
    if tg_op <> 'DELETE' then
        if after.ended_at is null then
            insert into open_turns values (after.organisation, after.session_id, after.id);
        else
            perform add_usage(after, 1);
        end if;
    end if;
    return null;
end $$;
create trigger count_usage after insert or delete on turns for each row execute function count_usage();
create trigger count_ended_usage
    after update of status, ended_at, input_tokens, output_tokens, cache_read, cache_write, requests, cost_microusd, tools
    on turns for each row when (old.ended_at is not null or new.ended_at is not null) execute function count_usage();
