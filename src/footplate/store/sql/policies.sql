-- Permission rules.

-- name: policy
select * from policies where organisation = $1

-- name: set_policy
-- Null parameters leave their column unchanged. With `is_conditional`, a row is written only if the stored one was written at
-- `expected_time`; null: if there is none.
insert into policies (organisation, permissions, approvals, principal)
select :organisation, coalesce(:permissions::jsonb, '{}'), coalesce(:approvals::jsonb, '{}'), :principal
where not :is_conditional::boolean or :expected_time::timestamptz is null
    or exists (select from policies where organisation = :organisation)
on conflict (organisation) do update
set permissions = coalesce(:permissions::jsonb, policies.permissions),
    approvals = coalesce(:approvals::jsonb, policies.approvals), principal = :principal, updated_at = now()
where not :is_conditional::boolean or policies.updated_at is not distinct from :expected_time::timestamptz
returning *

-- name: rules
-- The rules that apply to a session, except its agent's. The last parameter is the location of a user-specified directory.
select s.permissions as session, o.permissions as organisation,
       project_rules($2, s.project_ids, $3) as projects
from sessions s left join policies o on o.organisation = s.organisation
where s.id = $1 and s.organisation = $2

-- name: rules_of_projects
select (select permissions from policies where organisation = $1) as organisation, project_rules($1, $2::text[], null) as projects

-- name: calls
-- The gate's decisions, newest first, with their calls if those still exist. Forks may need rows of a deleted session.
select a.id, a.created_at, a.session, a.turn, a.event, a.outcome, a.tool, e.type, e.body, e.object_key
from audit a
left join sessions o on o.id = a.session
left join events e on e.session_id = o.id and e.event_id = a.event and e.ref_seq is null
where a.organisation = :organisation and a.kind = 'decision' and a.outcome in ('allow', 'ask', 'deny')
  and (:session_id::text is null or a.session = :session_id)
  and (:project_id::text is null or exists (
      select 1 from sessions s where s.id = a.session and :project_id = any(s.project_ids)))
  and (:since::timestamptz is null or a.created_at >= :since)
  and (:until::timestamptz is null or a.created_at <= :until)
  and (:after_time::timestamptz is null or (a.created_at, a.id) < (:after_time, :after_id::text))
  and (:audiences::text[] is null or coalesce((
      select coalesce(s.owner, s.principal) = any(:audiences) or s.visible_to = any(:audiences)
      from sessions s where s.id = a.session),
      not exists (select from hidden_deletions d where d.session_id = a.session)))
  and (:project_ids::text[] is null or exists (
      select from sessions s where s.id = a.session and s.project_ids <> '{}' and s.project_ids <@ :project_ids))
order by a.created_at desc, a.id desc
limit :limit

-- name: rules_of_sessions
-- The same as `rules` for many sessions, with their agents.
select s.id, s.agent, s.permissions as session, o.permissions as organisation,
       project_rules($2, s.project_ids, null) as projects
from sessions s left join policies o on o.organisation = s.organisation
where s.id = any($1::text[]) and s.organisation = $2
