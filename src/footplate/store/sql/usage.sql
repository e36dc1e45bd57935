-- What was used, added up.

-- name: usage
-- The flags choose what a line stands for: what is not asked for is null on every line, and so in one group.
-- The key is that of the input, which its first position has, or the turn once that is archived; no other grouping looks
-- there.
select
    case when $4 then (t.created_at at time zone 'utc')::date::text end as day,
    case when $5 then t.config ->> 'agent_id' end as agent,
    case when $6 then t.config ->> 'model' end as model,
    case when $7 then t.session_id end as session,
    case when $8 then t.config ->> 'harness' end as harness,
    case when $9 then coalesce(t.principal, e.principal) end as key,
    count(*) as turns,
    count(*) filter (where t.status = 'pending') as pending,
    count(*) filter (where t.status = 'running') as running,
    count(*) filter (where t.status = 'awaiting_tool_results') as awaiting_tool_results,
    count(*) filter (where t.status = 'completed') as completed,
    count(*) filter (where t.status = 'failed') as failed,
    count(*) filter (where t.status = 'interrupted') as interrupted,
    count(*) filter (where t.status = 'limit_reached') as limit_reached,
    count(*) filter (where t.status = 'timed_out') as timed_out,
    coalesce(sum(extract(epoch from t.ended_at - t.started_at)), 0)::double precision as seconds,
    sum(t.input_tokens)::bigint as input_tokens,
    sum(t.output_tokens)::bigint as output_tokens,
    sum(t.cache_read)::bigint as cache_read,
    sum(t.cache_write)::bigint as cache_write,
    sum(t.requests)::bigint as requests,
    sum(t.cost_microusd)::bigint as cost_microusd,
    count(*) filter (where t.requests > 0 and t.cost_microusd is null) as unpriced_turns
from turns t
left join events e on $9 and e.session_id = t.session_id and e.seq = t.position
where t.organisation = $1 and t.created_at >= $2 and t.created_at < $3
group by 1, 2, 3, 4, 5, 6
order by 1, 2, 3, 4, 5, 6
limit $10
