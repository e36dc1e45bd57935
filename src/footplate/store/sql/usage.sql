-- Usage reports. The flags choose the grouping: a dimension that is not requested is null on every line, so it forms one group.

-- name: usage
-- For a viewer who cannot see all sessions, only turns are summed, because the days contain those of all sessions.
-- Sums whole days from $9 until before $10, and turns that started from $2 until before $3, or from $11 until before $12.
with used as (
    select day, agent, model, harness, key, turns, pending, running, awaiting_tool_results, completed, failed, interrupted,
           limit_reached, timed_out, seconds, input_tokens, output_tokens, cache_read, cache_write, requests, cost_microusd,
           priced_turns, unpriced_turns
    from usage_by_day
    where organisation = $1 and day >= $9 and day < $10
    union all
    select day, agent, model, harness, key, turns, pending, running, awaiting_tool_results, completed, failed, interrupted,
           limit_reached, timed_out, seconds, input_tokens, output_tokens, cache_read, cache_write, requests, cost_microusd,
           priced_turns, unpriced_turns
    from turn_usage u
    where organisation = $1 and (created_at >= $2 and created_at < $3 or created_at >= $11 and created_at < $12)
      and ($14::text[] is null and $15::text[] is null or exists (
          select from sessions s
          where s.id = u.session_id
            and ($14 is null or coalesce(s.owner, s.principal) = any($14) or s.visible_to = any($14))
            and ($15::text[] is null or s.project_ids <> '{}' and s.project_ids <@ $15)))
)
select
    case when $4 then day::text end as day,
    case when $5 then nullif(agent, '') end as agent,
    case when $6 then nullif(model, '') end as model,
    case when $7 then nullif(harness, '') end as harness,
    case when $8 then nullif(key, '') end as key,
    sum(turns)::bigint as turns,
    sum(pending)::bigint as pending,
    sum(running)::bigint as running,
    sum(awaiting_tool_results)::bigint as awaiting_tool_results,
    sum(completed)::bigint as completed,
    sum(failed)::bigint as failed,
    sum(interrupted)::bigint as interrupted,
    sum(limit_reached)::bigint as limit_reached,
    sum(timed_out)::bigint as timed_out,
    sum(seconds)::double precision as seconds,
    sum(input_tokens)::bigint as input_tokens,
    sum(output_tokens)::bigint as output_tokens,
    sum(cache_read)::bigint as cache_read,
    sum(cache_write)::bigint as cache_write,
    sum(requests)::bigint as requests,
    case when sum(priced_turns) > 0 then sum(cost_microusd)::bigint end as cost_microusd,
    sum(unpriced_turns)::bigint as unpriced_turns
from used
group by 1, 2, 3, 4, 5
having sum(turns) > 0
order by 1, 2, 3, 4, 5
limit $13

-- name: usage_by_session
-- Reads in the order of an index, so that no more sessions are read than the limit allows.
select
    session_id as session,
    case when $4 then day::text end as day,
    case when $5 then nullif(agent, '') end as agent,
    case when $6 then nullif(model, '') end as model,
    case when $7 then nullif(harness, '') end as harness,
    case when $8 then nullif(key, '') end as key,
    sum(turns)::bigint as turns,
    sum(pending)::bigint as pending,
    sum(running)::bigint as running,
    sum(awaiting_tool_results)::bigint as awaiting_tool_results,
    sum(completed)::bigint as completed,
    sum(failed)::bigint as failed,
    sum(interrupted)::bigint as interrupted,
    sum(limit_reached)::bigint as limit_reached,
    sum(timed_out)::bigint as timed_out,
    sum(seconds)::double precision as seconds,
    sum(input_tokens)::bigint as input_tokens,
    sum(output_tokens)::bigint as output_tokens,
    sum(cache_read)::bigint as cache_read,
    sum(cache_write)::bigint as cache_write,
    sum(requests)::bigint as requests,
    case when sum(priced_turns) > 0 then sum(cost_microusd)::bigint end as cost_microusd,
    sum(unpriced_turns)::bigint as unpriced_turns
from turn_usage u
where organisation = $1 and created_at >= $2 and created_at < $3
  and ($10::text[] is null and $11::text[] is null or exists (
      select from sessions s
      where s.id = u.session_id
        and ($10 is null or coalesce(s.owner, s.principal) = any($10) or s.visible_to = any($10))
        and ($11::text[] is null or s.project_ids <> '{}' and s.project_ids <@ $11)))
group by 1, 2, 3, 4, 5, 6
order by 1, 2, 3, 4, 5, 6
limit $9

-- name: hides_sessions
-- Whether the organisation has sessions that a viewer with these audiences cannot see.
select exists (
    select from sessions
    where organisation = $1 and visible_to <> 'organisation'
      and not (coalesce(owner, principal) = any($2) or visible_to = any($2))) as hides
