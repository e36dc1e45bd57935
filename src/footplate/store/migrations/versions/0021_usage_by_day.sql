-- What was used on each day, kept up to date by every change of a turn: /v1/usage reads this and not the turns of a month.

-- Who sent the input of a turn is recorded with the turn, and no longer when its session is archived.
update turns t set principal = e.principal
from events e
where t.principal is null and e.session_id = t.session_id and e.seq = t.position;

-- Read often, and part of a large document.
alter table turns
    add column agent_id text generated always as (config ->> 'agent_id') stored,
    add column model    text generated always as (config ->> 'model') stored,
    add column harness  text generated always as (config ->> 'harness') stored;

create index turns_by_session on turns (organisation, session_id, created_at);

-- A day is divided into slots by session, so that turns that end at the same time seldom wait for each other.
create table usage_by_day (
    organisation          text not null,
    day                   date not null,
    agent                 text not null,
    model                 text not null,
    harness               text not null,
    key                   text not null,
    slot                  smallint not null,
    turns                 bigint not null,
    pending               bigint not null,
    running               bigint not null,
    awaiting_tool_results bigint not null,
    completed             bigint not null,
    failed                bigint not null,
    interrupted           bigint not null,
    limit_reached         bigint not null,
    timed_out             bigint not null,
    seconds               numeric not null,
    input_tokens          bigint not null,
    output_tokens         bigint not null,
    cache_read            bigint not null,
    cache_write           bigint not null,
    requests              bigint not null,
    cost_microusd         bigint not null,
    priced_turns          bigint not null,
    unpriced_turns        bigint not null,
    primary key (organisation, day, agent, model, harness, key, slot)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- What one turn counts for. A column that may be null is '' in the key.
create view turn_usage as
select organisation, session_id, id, created_at,
       (created_at at time zone 'utc')::date as day,
       coalesce(agent_id, '') as agent, coalesce(model, '') as model, coalesce(harness, '') as harness,
       coalesce(principal, '') as key, (hashtext(session_id) & 7)::smallint as slot,
       1::bigint as turns,
       (status = 'pending')::int::bigint as pending,
       (status = 'running')::int::bigint as running,
       (status = 'awaiting_tool_results')::int::bigint as awaiting_tool_results,
       (status = 'completed')::int::bigint as completed,
       (status = 'failed')::int::bigint as failed,
       (status = 'interrupted')::int::bigint as interrupted,
       (status = 'limit_reached')::int::bigint as limit_reached,
       (status = 'timed_out')::int::bigint as timed_out,
       coalesce(extract(epoch from ended_at - started_at), 0) as seconds,
       input_tokens, output_tokens, cache_read, cache_write, requests,
       coalesce(cost_microusd, 0) as cost_microusd,
       (cost_microusd is not null)::int::bigint as priced_turns,
       (requests > 0 and cost_microusd is null)::int::bigint as unpriced_turns
from turns;

insert into usage_by_day
select organisation, day, agent, model, harness, key, slot,
       sum(turns), sum(pending), sum(running), sum(awaiting_tool_results), sum(completed), sum(failed), sum(interrupted),
       sum(limit_reached), sum(timed_out), sum(seconds), sum(input_tokens), sum(output_tokens), sum(cache_read),
       sum(cache_write), sum(requests), sum(cost_microusd), sum(priced_turns), sum(unpriced_turns)
from turn_usage
group by organisation, day, agent, model, harness, key, slot;

-- A turn was begun, changed or deleted: the difference is added. Its day, agent, model, harness and key never change.
create function count_usage() returns trigger language plpgsql as $$
declare
    this turns := case when tg_op = 'DELETE' then old else new end;
begin
    insert into usage_by_day as u
    values (
        this.organisation, (this.created_at at time zone 'utc')::date, coalesce(this.agent_id, ''), coalesce(this.model, ''),
        coalesce(this.harness, ''), coalesce(this.principal, ''), hashtext(this.session_id) & 7,
        (tg_op = 'INSERT')::int - (tg_op = 'DELETE')::int,
        coalesce(new.status = 'pending', false)::int - coalesce(old.status = 'pending', false)::int,
        coalesce(new.status = 'running', false)::int - coalesce(old.status = 'running', false)::int,
        coalesce(new.status = 'awaiting_tool_results', false)::int
            - coalesce(old.status = 'awaiting_tool_results', false)::int,
        coalesce(new.status = 'completed', false)::int - coalesce(old.status = 'completed', false)::int,
        coalesce(new.status = 'failed', false)::int - coalesce(old.status = 'failed', false)::int,
        coalesce(new.status = 'interrupted', false)::int - coalesce(old.status = 'interrupted', false)::int,
        coalesce(new.status = 'limit_reached', false)::int - coalesce(old.status = 'limit_reached', false)::int,
        coalesce(new.status = 'timed_out', false)::int - coalesce(old.status = 'timed_out', false)::int,
        coalesce(extract(epoch from new.ended_at - new.started_at), 0)
            - coalesce(extract(epoch from old.ended_at - old.started_at), 0),
        coalesce(new.input_tokens, 0) - coalesce(old.input_tokens, 0),
        coalesce(new.output_tokens, 0) - coalesce(old.output_tokens, 0),
        coalesce(new.cache_read, 0) - coalesce(old.cache_read, 0),
        coalesce(new.cache_write, 0) - coalesce(old.cache_write, 0),
        coalesce(new.requests, 0) - coalesce(old.requests, 0),
        coalesce(new.cost_microusd, 0) - coalesce(old.cost_microusd, 0),
        (new.cost_microusd is not null)::int - (old.cost_microusd is not null)::int,
        coalesce(new.requests > 0 and new.cost_microusd is null, false)::int
            - coalesce(old.requests > 0 and old.cost_microusd is null, false)::int
    )
    on conflict (organisation, day, agent, model, harness, key, slot) do update
    set turns = u.turns + excluded.turns,
        pending = u.pending + excluded.pending,
        running = u.running + excluded.running,
        awaiting_tool_results = u.awaiting_tool_results + excluded.awaiting_tool_results,
        completed = u.completed + excluded.completed,
        failed = u.failed + excluded.failed,
        interrupted = u.interrupted + excluded.interrupted,
        limit_reached = u.limit_reached + excluded.limit_reached,
        timed_out = u.timed_out + excluded.timed_out,
        seconds = u.seconds + excluded.seconds,
        input_tokens = u.input_tokens + excluded.input_tokens,
        output_tokens = u.output_tokens + excluded.output_tokens,
        cache_read = u.cache_read + excluded.cache_read,
        cache_write = u.cache_write + excluded.cache_write,
        requests = u.requests + excluded.requests,
        cost_microusd = u.cost_microusd + excluded.cost_microusd,
        priced_turns = u.priced_turns + excluded.priced_turns,
        unpriced_turns = u.unpriced_turns + excluded.unpriced_turns;
    if tg_op = 'DELETE' then
        delete from usage_by_day u
        where (u.organisation, u.day, u.agent, u.model, u.harness, u.key, u.slot)
            = (this.organisation, (this.created_at at time zone 'utc')::date, coalesce(this.agent_id, ''),
               coalesce(this.model, ''), coalesce(this.harness, ''), coalesce(this.principal, ''), hashtext(this.session_id) & 7)
          and u.turns = 0;
    end if;
    return null;
end $$;
create trigger count_usage
    after insert or delete
       or update of status, ended_at, input_tokens, output_tokens, cache_read, cache_write, requests, cost_microusd
    on turns for each row execute function count_usage();
