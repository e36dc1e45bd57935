-- Usage reports. The report's own query is assembled in store/resources/usage_report.py.

-- name: hides_sessions
-- Whether the organisation has sessions that a viewer with these audiences cannot see.
select exists (
    select from sessions
    where organisation = $1 and visible_to <> 'organisation'
      and not (coalesce(owner, principal) = any($2) or visible_to = any($2))) as hides
