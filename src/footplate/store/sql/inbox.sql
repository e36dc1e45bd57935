-- The inbox: what waits for a person. `store/log/inbox.py` combines the first three.

-- name: inbox_page
-- A page of the items that the viewer can see (`audiences` and `project_ids`: see `visible_sessions`), the oldest first.
-- An assignment counts while the member is not disabled and can see the session. Otherwise no one would see the item.
with page as (
    select i.*, p.id as assignee_id, p.name as assignee_name, st.snoozed_until
    from open_inbox_items i
    join sessions s on s.id = i.session_id
    left join inbox_states st on st.session_id = i.session_id and st.item_id = i.id
    left join principals p on p.id = st.assignee and p.disabled_at is null and can_see_session(p, s.visible_to, coalesce(s.owner, s.principal))
    where i.organisation = :organisation and s.archived_at is null
      and (:audiences::text[] is null or coalesce(s.owner, s.principal) = any(:audiences) or s.visible_to = any(:audiences))
      and (:project_ids::text[] is null or s.project_ids <> '{}' and s.project_ids <@ :project_ids)
      and (:view = 'all' or (coalesce(st.snoozed_until, now()) > now()) = (:view = 'snoozed'))
      and (:view = 'all' or p.id = :principal or (:view <> 'mine' and p.id is null))
      and (:kind::text is null or i.kind = :kind) and (:project_id::text is null or :project_id = any(s.project_ids))
      and (:after_time::timestamptz is null or (i.created_at, i.id) > (:after_time, :after_id::text))
    order by i.created_at, i.id
    limit :limit
)

-- name: inbox_item
-- One item that the viewer can see.
with page as (
    select i.*, p.id as assignee_id, p.name as assignee_name, st.snoozed_until
    from open_inbox_items i
    join sessions s on s.id = i.session_id
    left join inbox_states st on st.session_id = i.session_id and st.item_id = i.id
    left join principals p on p.id = st.assignee and p.disabled_at is null and can_see_session(p, s.visible_to, coalesce(s.owner, s.principal))
    where i.organisation = $1 and i.id = $4 and s.archived_at is null
      and ($2::text[] is null or coalesce(s.owner, s.principal) = any($2) or s.visible_to = any($2))
      and ($3::text[] is null or s.project_ids <> '{}' and s.project_ids <@ $3)
)

-- name: inbox_details
-- What is shown of the items of `page`. Only these rows are read.
select i.*, s.title, s.project_ids, s.agent ->> 'name' as session_agent, coalesce(s.owner, s.principal) as owner,
       (select parent_session_id from session_groups where id = s.group_id) as parent_session_id,
       (select count(*) from turns t where t.session_id = i.session_id and t.id <= i.turn_id) as turn_number,
       a.expires_at, a.closed_at, a.outcome, a.principal, a.edited_input, a.edited_by, a.reply, e.body, e.object_key,
       case when a.event_id is null then t.status end as turn_status, case when a.event_id is null then t.result end as turn_result,
       c.branch, c.message as conflict_message, c.files as conflict_files
from page i
join sessions s on s.id = i.session_id
left join approvals a on a.session_id = i.session_id and a.event_id = i.id
left join lateral (select * from events where session_id = a.session_id and seq = a.seq limit 1) e on true
left join lateral (select * from turns where session_id = i.session_id and id = i.turn_id limit 1) t on true
left join merge_conflicts c on c.id = i.id
order by i.created_at, i.id

-- name: inbox_counts
-- The items that the viewer can see, by view. The conditions are those of `inbox_page`.
select count(*) filter (where not snoozed and (assignee is null or assignee = $4)) as needs_you,
       count(*) filter (where not snoozed and assignee = $4) as mine,
       count(*) filter (where snoozed and (assignee is null or assignee = $4)) as snoozed
from (
    select p.id as assignee, coalesce(st.snoozed_until, now()) > now() as snoozed
    from open_inbox_items i
    join sessions s on s.id = i.session_id
    left join inbox_states st on st.session_id = i.session_id and st.item_id = i.id
    left join principals p on p.id = st.assignee and p.disabled_at is null and can_see_session(p, s.visible_to, coalesce(s.owner, s.principal))
    where i.organisation = $1 and s.archived_at is null
      and ($2::text[] is null or coalesce(s.owner, s.principal) = any($2) or s.visible_to = any($2))
      and ($3::text[] is null or s.project_ids <> '{}' and s.project_ids <@ $3)
) items

-- name: keep_session
-- Excludes the deletion of the session until the transaction ends, so that no row is added to a deleted session.
select session_id from session_heads where session_id = $1 and organisation = $2 for key share

-- name: set_inbox_state
-- Changes the assignee or the end of the snooze. A concurrent change of the other one stays.
insert into inbox_states as st (session_id, item_id, organisation, assignee, snoozed_until, updated_by)
values (:session_id, :item_id, :organisation, :assignee, :snoozed_until, :updated_by)
on conflict (session_id, item_id) do update
set assignee = case when :changes_assignee then excluded.assignee else st.assignee end,
    snoozed_until = case when :changes_snooze then excluded.snoozed_until else st.snoozed_until end,
    updated_by = excluded.updated_by, updated_at = now()

-- name: find_problem
-- The session of a failed turn or of a merge conflict, also if it was dismissed before.
select session_id, problem is null as is_dismissed from session_heads where problem_turn = $1 and organisation = $2
union all
select session_id, dismissed_at is not null from merge_conflicts where id = $1 and organisation = $2

-- name: dismiss_problem
-- Returns what was dismissed, unless it was dismissed before or the session runs again.
with head as (
    update session_heads set problem = null where session_id = $1 and problem_turn = $2 and problem is not null returning session_id
), conflict as (
    update merge_conflicts set dismissed_at = now() where session_id = $1 and id = $2 and dismissed_at is null returning session_id
)
select session_id from head union all select session_id from conflict

-- name: record_merge_conflict
-- A repeated merge into the same branch updates the item. One that was dismissed, or is from before the last turn, becomes a new one.
insert into merge_conflicts as c (id, organisation, session_id, project_id, branch, message, files)
select :id, organisation, session_id, :project_id, :branch, :message, :files from session_heads where session_id = :session_id
on conflict (session_id, project_id, branch) do update
set (id, created_at, dismissed_at) = (
        select case when is_over then excluded.id else c.id end, case when is_over then now() else c.created_at end, null::timestamptz
        from (select c.dismissed_at is not null or coalesce(h.claimed_at >= c.created_at, false) as is_over
              from session_heads h where h.session_id = c.session_id) o),
    message = excluded.message, files = excluded.files
returning id

-- name: remove_merge_conflict
-- Also the conflict of a merge step, if it was the last turn. The head is locked first, as by the end of a session.
with of_step as (
    update session_heads h set problem = null
    from sessions s, turns t, steps st
    where h.session_id = $1 and h.problem = 'merge_conflict' and s.id = h.session_id
      and t.session_id = h.session_id and t.id = h.problem_turn and t.result -> 'data' ->> 'branch' = $3
      and st.session_id = t.session_id and st.position = t.position
      and coalesce(st.definition ->> 'project_id', s.project_ids[1]) = $2
    returning t.id
), requested as (
    delete from merge_conflicts where session_id = $1 and project_id = $2 and branch = $3 returning id
)
select id from of_step union all select id from requested

-- name: add_session_change_to_feed
-- A change of a session that is no event of its log.
insert into feed_pending (organisation, session_id, seq, type, event_id, body)
select organisation, session_id, seq, $2, $3, $4 from session_heads where session_id = $1

-- name: add_member_change_to_feed
-- A change that only a member and administrators see.
insert into feed_pending (organisation, session_id, seq, type, event_id, owner, visible_to, project_ids, body)
values ($1, $2, 0, $3, $4, $2, 'owner', '{}', $5)

-- name: add_organisation_change_to_feed
-- A change that all members see. $2 is the id of what has changed.
insert into feed_pending (organisation, session_id, seq, type, event_id, owner, visible_to, project_ids, body)
values ($1, $2, 0, $3, $4, '', 'organisation', '{}', $5)
