-- Permission rules.

-- name: policy
select * from policies where organisation = $1

-- name: set_policy
-- Null parameters leave their column unchanged. If the fifth parameter is true, a row is written only if the stored one was
-- written at the time of the sixth; null: if there is none.
insert into policies (organisation, permissions, approvals, principal)
select $1, coalesce($2::jsonb, '{}'), coalesce($3::jsonb, '{}'), $4
where not $5::boolean or $6::timestamptz is null or exists (select from policies where organisation = $1)
on conflict (organisation) do update
set permissions = coalesce($2::jsonb, policies.permissions), approvals = coalesce($3::jsonb, policies.approvals), principal = $4, updated_at = now()
where not $5::boolean or policies.updated_at is not distinct from $6::timestamptz
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
where a.organisation = $1 and a.kind = 'decision' and a.outcome in ('allow', 'ask', 'deny')
  and ($2::text is null or a.session = $2)
  and ($3::text is null or exists (select 1 from sessions s where s.id = a.session and $3 = any(s.project_ids)))
  and ($4::timestamptz is null or a.created_at >= $4)
  and ($5::timestamptz is null or a.created_at <= $5)
  and ($6::timestamptz is null or (a.created_at, a.id) < ($6, $7::text))
  and ($9::text[] is null or coalesce((
      select coalesce(s.owner, s.principal) = any($9) or s.visible_to = any($9) from sessions s where s.id = a.session),
      not exists (select from hidden_deletions d where d.session_id = a.session)))
  and ($10::text[] is null or exists (
      select from sessions s where s.id = a.session and s.project_ids <> '{}' and s.project_ids <@ $10))
order by a.created_at desc, a.id desc
limit $8

-- name: rules_of_sessions
-- The same as `rules` for many sessions, with their agents.
select s.id, s.agent, s.permissions as session, o.permissions as organisation,
       project_rules($2, s.project_ids, null) as projects
from sessions s left join policies o on o.organisation = s.organisation
where s.id = any($1::text[]) and s.organisation = $2
