-- The log: the two append statements, and the reads of positions.

-- name: lock_head
-- The head's lock orders all changes to a session.
select h.*, s.archived_at, s.ended_at, s.ends_when_done
from session_heads h join sessions s on s.id = h.session_id
where h.session_id = $1 and h.organisation = $2
for update of h

-- name: append_input
-- The API's append: inputs and control events only, without an epoch. The caller holds the head's lock. An input with a
-- `when_busy` value creates a step.
with head as (
    update session_heads
    set seq = seq + cardinality($3::text[]),
        wake = wake or $7,
        wake_at = case when $7 and not wake then now() else wake_at end,
        control_seq = case when $8 then seq + cardinality($3::text[]) else control_seq end
    where session_id = $1
    returning seq, entries
), active as (
    insert into active_sessions (session_id, organisation)
    select $1, $2 where $7 or cardinality(array_remove($12::text[], null)) > 0 on conflict do nothing
), batch as (
    select head.seq - cardinality($3::text[]) + n as seq, head.entries, b.*
    from head,
    unnest($3::text[], $4::text[], $5::text[], $6::boolean[], $12::text[], $13::text[], $14::text[]) with ordinality
        as b (event_id, type, body, processed, when_busy, overrides, context, n)
), new_steps as (
    insert into steps (session_id, position, sort_key, organisation, kind, event_id, when_busy, overrides, context, traceparent)
    select $1, seq, seq, $2, 'prompt', event_id, when_busy, overrides::json, context::json, $15::text
    from batch where when_busy is not null
)
insert into events (session_id, seq, organisation, event_id, type, principal, processed_at, body, object_key, entries)
select $1, seq, $2, event_id, type, $9, case when processed then now() end, body::json, objects.key, entries
from batch left join unnest($10::text[], $11::text[]) as objects (id, key) on objects.id = batch.event_id
returning seq, event_id, created_at, processed_at

-- name: append_turn
-- A worker's append: succeeds only while its epoch is the session's. One statement writes events, entries and usage, all
-- or nothing.
with head as (
    update session_heads
    set seq = seq + cardinality($5::text[]),
        entries = entries + cardinality($9::text[]),
        input_tokens = input_tokens + $13, output_tokens = output_tokens + $14,
        cache_read = cache_read + $15, cache_write = cache_write + $16, requests = requests + $17,
        cost_microusd = case when $18::bigint is null then cost_microusd else coalesce(cost_microusd, 0) + $18 end,
        last_interaction_at = case when $17 > 0 then now() else last_interaction_at end
    where session_id = $1 and organisation = $2 and epoch = $3
    returning seq, entries
), new_events as (
    insert into events (session_id, seq, organisation, turn_id, event_id, type, body, ref_seq, object_key, processed_at, entries)
    select $1, head.seq - cardinality($5::text[]) + n, $2, $4, event_id, type, body::json, nullif(ref, 0),
           nullif(object_key, ''), now(), head.entries
    from head, unnest($5::text[], $6::text[], $7::text[], $8::bigint[], $12::text[])
        with ordinality as b (event_id, type, body, ref, object_key, n)
), new_entries as (
    insert into entries (session_id, idx, organisation, turn_id, kind, body, object_key)
    select $1, head.entries - cardinality($9::text[]) + n - 1, $2, $4, kind, body::json, nullif(object_key, '')
    from head, unnest($9::text[], $10::text[], $11::text[]) with ordinality as b (kind, body, object_key, n)
), new_usage as (
    update turns
    set input_tokens = input_tokens + $13, output_tokens = output_tokens + $14,
        cache_read = cache_read + $15, cache_write = cache_write + $16, requests = requests + $17,
        cost_microusd = case when $18::bigint is null then cost_microusd else coalesce(cost_microusd, 0) + $18 end,
        last_interaction_at = now()
    from head
    where $17 > 0 and session_id = $1 and id = $4
), new_files as (
    -- A snapshot counts from the first event of its append on; without events, from the session's last event on.
    insert into snapshots (session_id, tree, seq, organisation, turn_id, begins, number, files, apart, base, left_out,
                           commits, bundles)
    select $1, tree, head.seq - greatest(cardinality($5::text[]), 1) + 1, $2, $4, begins, number, files, nullif(apart, ''),
           nullif(base, ''), array(select json_array_elements_text(left_out::json)), commits::jsonb,
           nullif(bundles, '')
    from head, unnest($19::text[], $20::boolean[], $21::integer[], $22::text[], $23::text[], $24::text[], $25::text[],
                      $26::text[], $27::text[])
        as b (tree, begins, number, files, apart, base, left_out, commits, bundles)
    on conflict (session_id, tree, seq) do update
    set number = excluded.number, files = excluded.files, apart = excluded.apart, left_out = excluded.left_out,
        commits = excluded.commits, bundles = excluded.bundles
), new_shell as (
    insert into shell_states (session_id, organisation, state) select $1, $2, $29::text::jsonb from head where $29::text is not null
    on conflict (session_id) do update set state = excluded.state
), new_asks as (
    insert into approvals (organisation, session_id, event_id, seq, turn_id, question, expires_at)
    select $2, $1, b.event_id, head.seq - cardinality($5::text[]) + n, $4, b.type = 'agent.custom_tool_use',
           now() + coalesce(b.body::json #>> '{input,deadline_seconds}', p.approvals ->> 'expires_after_seconds')::float8
               * interval '1 second'
    from head
    cross join unnest($5::text[], $6::text[], $7::text[], $8::bigint[]) with ordinality as b (event_id, type, body, ref, n)
    left join policies p on p.organisation = $2
    where case when b.type in ('agent.tool_use', 'agent.mcp_tool_use') and b.ref = 0
               then b.body::json ->> 'evaluated_permission' = 'ask'
               when b.type = 'agent.custom_tool_use' then b.body::json ->> 'question' = 'true' end
), new_audit as (
    insert into audit (id, organisation, kind, session, turn, event, principal, outcome, tool, layer, input_hash, content,
                       content_hash)
    select a.id, $2, 'decision', $1, $4, a.event, a.principal, a.outcome, a.tool, a.layer, a.input_hash, a.content, a.content_hash
    from head, json_to_recordset($28::text::json)
        as a (id text, event text, principal text, outcome text, tool text, layer text, input_hash text, content jsonb,
              content_hash text)
)
select seq, entries, now() as created_at from head

-- name: lock_entries
-- The number of entries, if the epoch is the session's.
select entries from session_heads where session_id = $1 and organisation = $2 and epoch = $3 for update

-- name: appended
-- Finds out after a lost acknowledgement whether the append took effect.
select event_id, seq, created_at from events where session_id = $1 and event_id = any($2::text[]) and ref_seq is null

-- name: positions
-- A second position has the body of the first. A queued input has no `processed_at` at its first position.
select e.seq, e.event_id, e.type, e.turn_id, e.created_at, e.processed_at, coalesce(o.body, e.body) as body
from events e
left join events o on e.ref_seq is not null and o.session_id = e.session_id and o.seq = e.ref_seq
where e.session_id = $1 and e.organisation = $2 and e.seq > $3 and ($5::bigint is null or e.seq <= $5)
order by e.seq
limit $4

-- name: turn_positions
select e.seq, e.event_id, e.type, e.turn_id, e.created_at, e.processed_at, e.body, e.object_key
from events e
where e.session_id = $1 and e.seq >= $2 and e.ref_seq is null
order by e.seq

-- name: heads
select session_id, seq from session_heads where session_id = any($1::text[])

-- name: head_seq
-- Positions up to `archived` or `inherited` are not read from the session's own rows.
select h.seq, a.last_seq as archived, h.inherited_seq as inherited
from session_heads h left join archives a on a.session_id = h.session_id
where h.session_id = $1 and h.organisation = $2

-- name: events_ascending
-- Times are processing times, as in the reference API, so an input that is still queued is in no time range. For a fork,
-- events after $10 do not belong to its history. $11 is a subagent's thread. Without it the query reads the primary thread:
-- all events that are not a subagent's own, events about threads, calls that wait for the client, responses and interrupts. Reading bodies for that triples
-- the time of a page, so it is skipped for sessions without threads. $12: with types that the reference API does not have.
select e.seq, e.event_id, e.type, e.turn_id, e.created_at, coalesce(t.processed_at, e.processed_at) as processed_at, e.body
from events e
left join events t on t.session_id = e.session_id and t.ref_seq = e.seq and ($10::bigint is null or t.seq <= $10)
where e.session_id = $1 and e.organisation = $2 and e.ref_seq is null and e.seq > coalesce($3, 0)
  and ($5::text[] is null or e.type = any($5)) and ($10::bigint is null or e.seq <= $10)
  and ($12::boolean or not (starts_with(e.type, 'step.') or starts_with(e.type, 'question.') or starts_with(e.type, 'batch.')
                              or starts_with(e.type, 'project.')))
  and case when $11::text is not null then e.body ->> 'session_thread_id' = $11 and e.type <> 'session.thread_created'
           when (select s.fork is null and s.agent ->> 'multiagent' is null from sessions s where s.id = $1) then true
           else e.body ->> 'session_thread_id' is null or starts_with(e.type, 'session.thread_')
                or e.type in ('user.tool_confirmation', 'agent.custom_tool_use', 'user.custom_tool_result', 'user.interrupt')
                or e.type in ('agent.tool_use', 'agent.mcp_tool_use') and e.body ->> 'evaluated_permission' = 'ask' end
  and ($6::timestamptz is null or coalesce(t.processed_at, e.processed_at) > $6)
  and ($7::timestamptz is null or coalesce(t.processed_at, e.processed_at) >= $7)
  and ($8::timestamptz is null or coalesce(t.processed_at, e.processed_at) < $8)
  and ($9::timestamptz is null or coalesce(t.processed_at, e.processed_at) <= $9)
order by e.seq
limit $4

-- name: events_descending
select e.seq, e.event_id, e.type, e.turn_id, e.created_at, coalesce(t.processed_at, e.processed_at) as processed_at, e.body
from events e
left join events t on t.session_id = e.session_id and t.ref_seq = e.seq and ($10::bigint is null or t.seq <= $10)
where e.session_id = $1 and e.organisation = $2 and e.ref_seq is null and ($3::bigint is null or e.seq < $3)
  and ($5::text[] is null or e.type = any($5)) and ($10::bigint is null or e.seq <= $10)
  and ($12::boolean or not (starts_with(e.type, 'step.') or starts_with(e.type, 'question.') or starts_with(e.type, 'batch.')
                              or starts_with(e.type, 'project.')))
  and case when $11::text is not null then e.body ->> 'session_thread_id' = $11 and e.type <> 'session.thread_created'
           when (select s.fork is null and s.agent ->> 'multiagent' is null from sessions s where s.id = $1) then true
           else e.body ->> 'session_thread_id' is null or starts_with(e.type, 'session.thread_')
                or e.type in ('user.tool_confirmation', 'agent.custom_tool_use', 'user.custom_tool_result', 'user.interrupt')
                or e.type in ('agent.tool_use', 'agent.mcp_tool_use') and e.body ->> 'evaluated_permission' = 'ask' end
  and ($6::timestamptz is null or coalesce(t.processed_at, e.processed_at) > $6)
  and ($7::timestamptz is null or coalesce(t.processed_at, e.processed_at) >= $7)
  and ($8::timestamptz is null or coalesce(t.processed_at, e.processed_at) < $8)
  and ($9::timestamptz is null or coalesce(t.processed_at, e.processed_at) <= $9)
order by e.seq desc
limit $4

-- name: entries
select idx, kind, body, object_key from entries
where session_id = $1 and idx >= $2 and ($3::integer is null or idx < $3)
order by idx
