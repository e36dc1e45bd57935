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
    set seq = seq + cardinality(:event_ids::text[]),
        wake = wake or :wake,
        wake_at = case when :wake and not wake then now() else wake_at end,
        control_seq = case when :control then seq + cardinality(:event_ids::text[]) else control_seq end
    where session_id = :session_id
    returning seq, entries
), active as (
    insert into active_sessions (session_id, organisation)
    select :session_id, :organisation where :wake or cardinality(array_remove(:when_busy::text[], null)) > 0
    on conflict do nothing
), batch as (
    select head.seq - cardinality(:event_ids::text[]) + n as seq, head.entries, b.*
    from head,
    unnest(:event_ids::text[], :event_types::text[], :bodies::text[], :processed::boolean[], :when_busy::text[],
           :overrides::text[], :contexts::text[]) with ordinality
        as b (event_id, type, body, processed, when_busy, overrides, context, n)
), new_steps as (
    insert into steps (session_id, position, sort_key, organisation, kind, event_id, when_busy, overrides, context, traceparent)
    select :session_id, seq, seq, :organisation, 'prompt', event_id, when_busy, overrides::json, context::json,
           :traceparent::text
    from batch where when_busy is not null
)
insert into events (session_id, seq, organisation, event_id, type, principal, processed_at, body, object_key, entries)
select :session_id, seq, :organisation, event_id, type, :principal, case when processed then now() end, body::json,
       objects.key, entries
from batch left join unnest(:large_event_ids::text[], :object_keys::text[]) as objects (id, key) on objects.id = batch.event_id
returning seq, event_id, created_at, processed_at

-- name: append_turn
-- A worker's append: succeeds only while its epoch is the session's. One statement writes events, entries and usage, all
-- or nothing.
with head as (
    update session_heads
    set seq = seq + cardinality(:event_ids::text[]),
        entries = entries + cardinality(:entry_kinds::text[]),
        input_tokens = input_tokens + :input_tokens, output_tokens = output_tokens + :output_tokens,
        cache_read = cache_read + :cache_read, cache_write = cache_write + :cache_write, requests = requests + :requests,
        cost_microusd = case when :cost_microusd::bigint is null then cost_microusd
                             else coalesce(cost_microusd, 0) + :cost_microusd end,
        last_interaction_at = case when :requests > 0 then now() else last_interaction_at end
    where session_id = :session_id and organisation = :organisation and epoch = :epoch
    returning seq, entries
), batch as (
    select b.*, head.seq - cardinality(:event_ids::text[]) + n as seq, head.entries
    from head, unnest(:event_ids::text[], :event_types::text[], :event_bodies::text[], :event_refs::bigint[],
                      :event_object_keys::text[])
        with ordinality as b (event_id, type, body, ref, object_key, n)
), new_events as (
    insert into events (session_id, seq, organisation, turn_id, event_id, type, body, ref_seq, object_key, processed_at, entries)
    select :session_id, seq, :organisation, :turn_id, event_id, type, body::json, nullif(ref, 0), nullif(object_key, ''), now(),
           entries
    from batch
), new_entries as (
    insert into entries (session_id, idx, organisation, turn_id, kind, body, object_key)
    select :session_id, head.entries - cardinality(:entry_kinds::text[]) + n - 1, :organisation, :turn_id, kind, body::json,
           nullif(object_key, '')
    from head, unnest(:entry_kinds::text[], :entry_bodies::text[], :entry_object_keys::text[])
        with ordinality as b (kind, body, object_key, n)
), new_usage as (
    update turns
    set input_tokens = input_tokens + :input_tokens, output_tokens = output_tokens + :output_tokens,
        cache_read = cache_read + :cache_read, cache_write = cache_write + :cache_write, requests = requests + :requests,
        cost_microusd = case when :cost_microusd::bigint is null then cost_microusd
                             else coalesce(cost_microusd, 0) + :cost_microusd end,
        last_interaction_at = now()
    from head
    where :requests > 0 and session_id = :session_id and id = :turn_id
), new_files as (
    -- A snapshot counts from the first event of its append on; without events, from the session's last event on.
    insert into snapshots (session_id, tree, seq, organisation, turn_id, begins, number, files, apart, base, left_out,
                           commits, bundles)
    select :session_id, tree, head.seq - greatest(cardinality(:event_ids::text[]), 1) + 1, :organisation, :turn_id, begins,
           number, files, apart, base, array(select json_array_elements_text(left_out)), commits, bundles
    from head, json_to_recordset(:snapshots::text::json)
        as b (tree text, begins boolean, number integer, files text, apart text, base text, left_out json, commits jsonb,
              bundles text)
    on conflict (session_id, tree, seq) do update
    set number = excluded.number, files = excluded.files, apart = excluded.apart, left_out = excluded.left_out,
        commits = excluded.commits, bundles = excluded.bundles
), new_shell as (
    insert into shell_states (session_id, organisation, state)
    select :session_id, :organisation, :shell_state::text::jsonb from head where :shell_state::text is not null
    on conflict (session_id) do update set state = excluded.state
), new_asks as (
    insert into approvals (organisation, session_id, event_id, seq, turn_id, question, expires_at)
    select :organisation, :session_id, b.event_id, b.seq, :turn_id, b.type = 'agent.custom_tool_use',
           now() + coalesce(b.body::json #>> '{input,deadline_seconds}', p.approvals ->> 'expires_after_seconds')::float8
               * interval '1 second'
    from batch b
    left join policies p on p.organisation = :organisation
    where case when b.type in ('agent.tool_use', 'agent.mcp_tool_use') and b.ref = 0
               then b.body::json ->> 'evaluated_permission' = 'ask'
               when b.type = 'agent.custom_tool_use' then b.body::json ->> 'question' = 'true' end
), new_audit as (
    insert into audit (id, organisation, kind, session, turn, event, principal, outcome, tool, layer, input_hash, content,
                       content_hash)
    select a.id, :organisation, 'decision', :session_id, :turn_id, a.event, a.principal, a.outcome, a.tool, a.layer,
           a.input_hash, a.content, a.content_hash
    from head, json_to_recordset(:decisions::text::json)
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
-- events after `last_seq` do not belong to its history. `thread_id` is a subagent's thread. Without it the query reads the
-- primary thread: all events that are not a subagent's own, events about threads, calls that wait for the client, responses
-- and interrupts. Reading bodies for that triples the time of a page, so it is skipped for sessions without threads.
-- `with_extensions`: with types that the reference API does not have.
select e.seq, e.event_id, e.type, e.turn_id, e.created_at, coalesce(t.processed_at, e.processed_at) as processed_at, e.body
from events e
left join events t on t.session_id = e.session_id and t.ref_seq = e.seq and (:last_seq::bigint is null or t.seq <= :last_seq)
where e.session_id = :session_id and e.organisation = :organisation and e.ref_seq is null and e.seq > coalesce(:after_seq, 0)
  and (:types::text[] is null or e.type = any(:types)) and (:last_seq::bigint is null or e.seq <= :last_seq)
  and (:with_extensions::boolean or not (starts_with(e.type, 'step.') or starts_with(e.type, 'question.')
                                or starts_with(e.type, 'batch.') or starts_with(e.type, 'project.')))
  and case when :thread_id::text is not null then e.body ->> 'session_thread_id' = :thread_id
                                                 and e.type <> 'session.thread_created'
           when (select s.fork is null and s.agent ->> 'multiagent' is null from sessions s where s.id = :session_id) then true
           else e.body ->> 'session_thread_id' is null or starts_with(e.type, 'session.thread_')
                or e.type in ('user.tool_confirmation', 'agent.custom_tool_use', 'user.custom_tool_result', 'user.interrupt')
                or e.type in ('agent.tool_use', 'agent.mcp_tool_use') and e.body ->> 'evaluated_permission' = 'ask' end
  and (:created_gt::timestamptz is null or coalesce(t.processed_at, e.processed_at) > :created_gt)
  and (:created_gte::timestamptz is null or coalesce(t.processed_at, e.processed_at) >= :created_gte)
  and (:created_lt::timestamptz is null or coalesce(t.processed_at, e.processed_at) < :created_lt)
  and (:created_lte::timestamptz is null or coalesce(t.processed_at, e.processed_at) <= :created_lte)
order by e.seq
limit :limit

-- name: events_descending
select e.seq, e.event_id, e.type, e.turn_id, e.created_at, coalesce(t.processed_at, e.processed_at) as processed_at, e.body
from events e
left join events t on t.session_id = e.session_id and t.ref_seq = e.seq and (:last_seq::bigint is null or t.seq <= :last_seq)
where e.session_id = :session_id and e.organisation = :organisation and e.ref_seq is null
  and (:after_seq::bigint is null or e.seq < :after_seq)
  and (:types::text[] is null or e.type = any(:types)) and (:last_seq::bigint is null or e.seq <= :last_seq)
  and (:with_extensions::boolean or not (starts_with(e.type, 'step.') or starts_with(e.type, 'question.')
                                or starts_with(e.type, 'batch.') or starts_with(e.type, 'project.')))
  and case when :thread_id::text is not null then e.body ->> 'session_thread_id' = :thread_id
                                                 and e.type <> 'session.thread_created'
           when (select s.fork is null and s.agent ->> 'multiagent' is null from sessions s where s.id = :session_id) then true
           else e.body ->> 'session_thread_id' is null or starts_with(e.type, 'session.thread_')
                or e.type in ('user.tool_confirmation', 'agent.custom_tool_use', 'user.custom_tool_result', 'user.interrupt')
                or e.type in ('agent.tool_use', 'agent.mcp_tool_use') and e.body ->> 'evaluated_permission' = 'ask' end
  and (:created_gt::timestamptz is null or coalesce(t.processed_at, e.processed_at) > :created_gt)
  and (:created_gte::timestamptz is null or coalesce(t.processed_at, e.processed_at) >= :created_gte)
  and (:created_lt::timestamptz is null or coalesce(t.processed_at, e.processed_at) < :created_lt)
  and (:created_lte::timestamptz is null or coalesce(t.processed_at, e.processed_at) <= :created_lte)
order by e.seq desc
limit :limit

-- name: entries
select idx, kind, body, object_key from entries
where session_id = $1 and idx >= $2 and ($3::integer is null or idx < $3)
order by idx
