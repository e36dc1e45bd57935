-- Permission rules.

-- name: policy
select * from policies where organisation = $1

-- name: set_policy
-- What is null stays as it is.
insert into policies (organisation, permissions, approvals, principal)
values ($1, coalesce($2::jsonb, '{}'), coalesce($3::jsonb, '{}'), $4)
on conflict (organisation) do update
set permissions = coalesce($2::jsonb, policies.permissions), approvals = coalesce($3::jsonb, policies.approvals), principal = $4, updated_at = now()
returning *

-- name: rules
-- What is in force for a session, but for its agent's.
select s.permissions as session, o.permissions as organisation,
       (select coalesce(jsonb_agg(p.permissions order by p.id), '[]') from projects p
        where p.id = any(s.project_ids) and p.organisation = $2) as projects
from sessions s left join policies o on o.organisation = s.organisation
where s.id = $1 and s.organisation = $2
