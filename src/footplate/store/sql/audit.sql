-- The audit trail.

-- name: add_audit
-- A decision of a person names the call, not its tool.
insert into audit (id, organisation, kind, session, turn, event, principal, outcome, tool, layer, input_hash, content, content_hash)
values (:id, :organisation, :kind, :session, :turn, :event, :principal, :outcome, coalesce(:tool::text, (
    select nullif(concat_ws('/', e.body ->> 'mcp_server_name', e.body ->> 'name'), '') from events e
    where e.session_id = :session and e.event_id = :event and e.ref_seq is null)), :layer, :input_hash, :content, :content_hash)

-- name: audit_unsealed
-- Organisations with the oldest unsealed entries first, so that one with many entries does not delay the others.
select organisation from audit where batch is null group by organisation order by min(number) limit $1

-- name: lock_audit
-- Allows one process at a time to seal an organisation's entries.
select pg_advisory_xact_lock(hashtext('audit'), hashtext($1))

-- name: audit_to_seal
select * from audit where organisation = $1 and batch is null order by number limit $2

-- name: last_batch
select number, hash from audit_batches where organisation = $1 order by number desc limit 1

-- name: add_batch
insert into audit_batches (organisation, number, entries, previous, hash) values ($1, $2, $3, $4, $5)

-- name: seal_audit
update audit set batch = $2 where id = any($1::text[])

-- name: audit_batches
select * from audit_batches where organisation = $1 and number >= $2 order by number limit $3

-- name: audit_of_batch
select * from audit where organisation = $1 and batch = $2 order by number

-- name: audit_strays
-- Entries that belong to no existing batch.
select
    count(*) filter (where a.batch is null) as unsealed,
    count(*) filter (where a.batch is not null) as lost,
    count(*) filter (where a.batch is null and a.created_at < now() - $2::interval) as overdue,
    min(a.created_at) filter (where a.batch is null) as oldest
from audit a left join audit_batches b on b.organisation = a.organisation and b.number = a.batch
where a.organisation = $1 and b.number is null
