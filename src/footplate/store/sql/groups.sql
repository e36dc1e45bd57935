-- Groups of sessions: the children of a session, and batches. Locks are taken in this order: a member's head, its group, the
-- parent's head. A transaction that holds a parent's head never waits for a group or a child that exists.

-- name: group_parent
-- The session whose turn starts a group, if the worker still has the turn. Its position in the tree of sessions. Its row is
-- locked too, so that the children have its new owner and visibility if these change (`share_descendants`).
select s.*, h.seq, h.priority as head_priority, t.principal as turn_principal, t.context as turn_context, st.overrides as turn_overrides,
       p.name as principal_name, coalesce(g.root_session_id, s.id) as root_id, coalesce(g.depth, 0) + 1 as child_depth
from session_heads h
join sessions s on s.id = h.session_id
join turns t on t.session_id = h.session_id and t.id = $3
join steps st on st.session_id = t.session_id and st.position = t.position
left join principals p on p.id = t.principal
left join session_groups g on g.id = s.group_id
where h.session_id = $1 and h.epoch = $2 and h.turn_id = $3
for update of h for share of s

-- name: waits_for_group
-- Whether a turn waits for groups that have not ended, and for nothing else. $3: the calls that it waits for, if it is not parked yet.
select coalesce(bool_or(g.ended_at is null), false) and bool_and(g.id is not null)
from unnest(coalesce($3::text[], array(
    select json_array_elements_text(result -> 'pending') from turns where session_id = $1 and id = $2))) as call (id)
left join session_groups g on g.parent_session_id = $1 and g.parent_turn_id = $2 and g.waited_for_by = call.id

-- name: group_by_call
select g.id, array(select s.id from sessions s where s.group_id = g.id order by s.group_index) as session_ids,
       array(select s.group_name from sessions s where s.group_id = g.id order by s.group_index) as names
from session_groups g where g.parent_session_id = $1 and g.started_by = $2

-- name: lock_descendants
-- Prevents that two descendants of a root session each use the last place.
select pg_advisory_xact_lock(hashtext('descendants'), hashtext($1))

-- name: living_descendants
select coalesce(sum(total - completed - failed - cancelled), 0)::integer from session_groups
where root_session_id = $1 and parent_session_id is not null and completed + failed + cancelled < total

-- name: lock_descendant_rows
-- Before the head of the session itself: the end of a descendant changes its row, and then waits for the head of its parent.
with recursive below as (
    select s.id from session_groups g join sessions s on s.group_id = g.id where g.parent_session_id = $1
    union
    select s.id from below b join session_groups g on g.parent_session_id = b.id join sessions s on s.group_id = g.id
)
select from sessions where id in (select id from below) order by id for no key update

-- name: share_descendants
-- The descendants have the owner and the visibility of the session, so that neither shows what it hides.
with recursive below as (
    select s.id from session_groups g join sessions s on s.group_id = g.id where g.parent_session_id = $1
    union
    select s.id from below b join session_groups g on g.parent_session_id = b.id join sessions s on s.group_id = g.id
)
update sessions set owner = coalesce($2, owner), visible_to = coalesce($3, visible_to), updated_at = now()
where id in (select id from below)

-- name: total_usage
-- The usage of a session and of all sessions below it.
with recursive tree as (
    select id from sessions where id = $1 and organisation = $2
    union
    select s.id from tree t join session_groups g on g.parent_session_id = t.id join sessions s on s.group_id = g.id
)
select count(*) as sessions, sum(h.input_tokens)::bigint as input_tokens, sum(h.output_tokens)::bigint as output_tokens,
       sum(h.cache_read)::bigint as cache_read, sum(h.cache_write)::bigint as cache_write, sum(h.requests)::bigint as requests,
       sum(h.cost_microusd)::bigint as cost_microusd
from tree t join session_heads h on h.session_id = t.id

-- name: lock_group_of_session
select g.id from sessions s join session_groups g on g.id = s.group_id where s.id = $1 for update of g

-- name: delete_unused_groups
-- After the deletion of session $1, which was a member of group $2 or the parent of groups: those that have no members and no
-- parent. No member can wait for the head of the parent while it has the lock of such a group.
delete from session_groups g
where (g.id = $2 or g.parent_session_id = $1) and not exists (select from sessions s where s.group_id = g.id)
  and not exists (select from sessions s where s.id = g.parent_session_id)

-- name: insert_group
insert into session_groups (id, organisation, kind, principal, parent_session_id, parent_turn_id, root_session_id, started_by, depth,
                            max_running, definition, total, started)
values (:id, :organisation, 'children', :principal, :parent_session_id, :parent_turn_id, :root_session_id, :started_by,
        :depth, :max_running, :definition, :total, :started)

-- name: insert_children
-- Each child has the environment, mode, rules, priority and files of its parent, and the context of the parent's turn, but
-- nothing of its log. The first `started` play. A child with an agent of its own also has its own rules.
with parent as (
    select s.*, h.seq, h.priority from sessions s join session_heads h on h.session_id = s.id where s.id = :parent_id
), children as (
    insert into sessions (id, organisation, agent_id, agent_version, agent, environment_id, environment, title, metadata, context,
                          principal, owner, mode, project_ids, workspace_id, bases, resources, permissions, visible_to,
                          ends_when_done, group_id, group_index, group_name)
    select m.id, p.organisation, coalesce(m.agent ->> 'id', p.agent_id), coalesce((m.agent ->> 'version')::integer, p.agent_version),
           coalesce(m.agent::jsonb, p.agent), p.environment_id, p.environment, m.title, '{}', :context, :principal,
           coalesce(p.owner, p.principal), p.mode, p.project_ids, p.workspace_id, p.bases, p.resources,
           coalesce(m.permissions::jsonb, p.permissions), p.visible_to, true, :group_id, (m.number - 1)::integer, m.name
    from parent p, (
        select id, agent::json as agent, title, name, permissions, number
        from unnest(:ids::text[], :agents::text[], :titles::text[], :names::text[], :permissions::text[])
            with ordinality as m (id, agent, title, name, permissions, number)
    ) m
    returning id, organisation, group_index
), heads as (
    insert into session_heads (session_id, organisation, playing, pause_reason, priority)
    select c.id, c.organisation, c.group_index < :started, case when c.group_index >= :started then 'group' end, p.priority
    from children c, parent p
), packs as (
    -- The packs of the parent, and of everything that it started from.
    insert into stretches (session_id, organisation, owner, last_seq, entries, departures, files_only)
    select c.id, c.organisation, o.owner, o.last_seq, 0, 0, true
    from children c, (
        select :parent_id as owner, greatest(seq, 1) as last_seq from parent
        union all select owner, last_seq from stretches where session_id = :parent_id
    ) o
)
insert into snapshots (session_id, tree, seq, organisation, turn_id, begins, number, files, apart, base, left_out, commits, bundles)
select c.id, f.tree, 1, c.organisation, '', false, f.number, f.files, f.apart, f.base, f.left_out, f.commits, f.bundles
from children c, unnest(:trees::text[]) as t (tree)
cross join lateral (
    select f.* from (
        select :parent_id as owner, 9223372036854775807 as last_seq
        union all select owner, last_seq from stretches where session_id = :parent_id and not files_only
    ) o cross join lateral (
        select * from snapshots where session_id = o.owner and tree = t.tree and seq <= o.last_seq order by seq desc limit 1
    ) f
    order by f.seq desc limit 1
) f

-- name: wake_children
update session_heads set wake = true, wake_at = now() where session_id = any($1::text[])

-- name: account_member
-- Counts the end of a member, once. The caller holds the lock of the member's head; this takes the lock of the group.
with member as (
    select s.id, s.group_id, s.group_name, s.group_index, h.playing or h.pause_reason is distinct from 'group' as was_started
    from sessions s join session_heads h on h.session_id = s.id
    where s.id = $1 and s.group_id is not null and s.group_end is null
), counted as (
    update session_groups g
    set completed = completed + ($2 = 'completed')::integer, failed = failed + ($2 in ('failed', 'expired'))::integer,
        cancelled = cancelled + ($2 = 'cancelled')::integer, started = started + (not was_started)::integer
    from member where g.id = member.group_id
    returning g.*, member.was_started, member.group_name, member.group_index
), numbered as (
    update sessions s set group_end = c.completed + c.failed + c.cancelled from counted c where s.id = $1
)
select * from counted

-- name: start_next_member
-- A member whose head another transaction has locked is passed over: the sweep starts it if there is room.
with next as (
    select h.session_id
    from sessions s join session_heads h on h.session_id = s.id
    where s.group_id = $1 and s.ended_at is null and h.pause_reason = 'group' and not h.playing
    order by s.group_index
    limit 1
    for update of h skip locked
), counted as (
    update session_groups set started = started + 1 where id = $1 and exists (select from next)
)
update session_heads h set playing = true, pause_reason = null, wake = true, wake_at = now() from next
where h.session_id = next.session_id
returning h.session_id, h.priority

-- name: count_started_member
-- A client has started a member before its place was free.
update session_groups g set started = started + 1 from sessions s where s.id = $1 and g.id = s.group_id

-- name: end_group
update session_groups
set ended_at = now(),
    cancelled_at = case when completed + failed + cancelled < total then coalesce(cancelled_at, now()) else cancelled_at end
where id = $1

-- name: group_members
-- The members with the result of the last turn of each before its check, the texts cut to $2 characters.
select s.id, s.group_index, s.group_name, s.end_outcome, left(s.end_reason, $2) as end_reason,
       left(t.result ->> 'text', $2) as text, left(t.result ->> 'error', $2) as error
from sessions s
left join lateral (
    select l.result from turns l
    where l.session_id = s.id and not exists (
        select from steps c where c.session_id = s.id and c.turn_id = l.id and c.definition ->> 'is_check' = 'true'
    )
    order by l.id desc limit 1
) t on true
where s.group_id = $1
order by s.group_index

-- name: wait_for_group
-- The call whose result the group is. The lock orders this with the end of the group. A group of an earlier turn is cancelled, so no
-- call waits for it.
update session_groups set waited_for_by = case when ended_at is null and parent_turn_id = $4 then $3 else waited_for_by end
where id = $1 and parent_session_id = $2
returning *

-- name: group
select * from session_groups where id = $1 and parent_session_id = $2

-- name: member_of_parent
select s.id from sessions s join session_groups g on g.id = s.group_id
where s.id = $1 and g.parent_session_id = $2 and g.organisation = $3

-- name: message_of_call
select exists (select from events where session_id = $1 and type = 'user.message' and body ->> 'sent_by_call' = $2)

-- name: cancel_group
update session_groups set cancelled_at = coalesce(cancelled_at, now()) where id = $1 and completed + failed + cancelled < total
returning id

-- name: unended_members
-- Those that have not started first, so that none of them starts when another one ends.
select s.id, s.organisation, s.principal from sessions s join session_heads h on h.session_id = s.id
where s.group_id = $1 and s.ended_at is null and s.archived_at is null
order by h.playing, s.group_index

-- name: abandoned_groups
-- Groups with members that have not ended although nothing waits for them: the group was cancelled or has its result, the
-- parent's turn has ended, or was interrupted while it waited, or the parent was archived. Members that end with their running
-- turn need nothing more.
select g.id from session_groups g
left join session_heads h on h.session_id = g.parent_session_id
left join sessions p on p.id = g.parent_session_id
left join turns t on t.session_id = g.parent_session_id and t.id = g.parent_turn_id
where g.completed + g.failed + g.cancelled < g.total
  and ($1::text is null or g.parent_session_id = $1)
  and (g.cancelled_at is not null or g.ended_at is not null or h.turn_id is distinct from g.parent_turn_id
       or p.archived_at is not null
       or t.status = 'awaiting_tool_results' and h.control_seq >= t.controls_seq and g.waited_for_by is not null)
  and exists (select from sessions s join session_heads m on m.session_id = s.id
              where s.group_id = g.id and s.ended_at is null and s.archived_at is null and m.end_request is null)
limit 100

-- name: groups_with_room
-- Groups in which fewer members run than may, because one that should have started was locked.
select g.id from session_groups g
where g.completed + g.failed + g.cancelled < g.total and g.cancelled_at is null and g.ended_at is null
  and g.started < g.total and g.started - g.completed - g.failed - g.cancelled < g.max_running
  and exists (select from sessions s join session_heads m on m.session_id = s.id
              where s.group_id = g.id and s.ended_at is null and m.pause_reason = 'group' and not m.playing)
limit 100

-- name: lock_group
select * from session_groups where id = $1 for update
