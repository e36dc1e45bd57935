-- Webhook endpoints and the deliveries to them.

-- name: webhook_endpoint
-- An endpoint of a session is found by those who can see the session ($3), and any other by administrators (null) only.
select s.* from webhook_endpoints s
where s.id = $1 and s.organisation = $2 and s.format <> 'push' and ($3::text[] is null or exists (
    select from sessions v
    where v.id = s.session_id and (coalesce(v.owner, v.principal) = any($3) or v.visible_to = any($3))))

-- name: count_webhook_endpoints
select count(*) from webhook_endpoints where organisation = $1 and format <> 'push'

-- name: insert_webhook_endpoint
-- It receives the changes from now on.
insert into webhook_endpoints (id, organisation, session_id, url, description, types, format, ordered, secret, principal, roles,
                               position)
values (:id, :organisation, :session_id, :url, :description, :types, :format, :ordered, :secret, :principal, :roles,
        number_feed(:organisation))
returning *

-- name: update_webhook_endpoint
update webhook_endpoints
set url = :url, description = :description, types = :types, format = :format, ordered = :ordered,
    disabled_at = case when :is_disabled then coalesce(disabled_at, now()) end,
    disabled_reason = case when :is_disabled then disabled_reason end,
    failing_since = case when :is_disabled then failing_since end
where id = :id and organisation = :organisation
returning *

-- name: delete_webhook_endpoint
delete from webhook_endpoints where id = $1 and organisation = $2

-- name: replace_webhook_secret
update webhook_endpoints
set old_secret = case when $4 > interval '0' then secret end,
    old_secret_expires_at = case when $4 > interval '0' then now() + $4 end,
    secret = $3
where id = $1 and organisation = $2
returning *

-- name: webhook_delivery
select * from webhook_deliveries where id = $1 and endpoint_id = $2 and organisation = $3

-- name: insert_webhook_test
insert into webhook_deliveries (id, endpoint_id, organisation, type, payload, retry_until)
values (:id, :endpoint_id, :organisation, :type, :payload, now() + :retry_period::interval)
returning *

-- name: replay_webhook_delivery
update webhook_deliveries
set status = 'pending', attempts = 0, next_attempt_at = now(), retry_until = now() + $3::interval
where id = $1 and endpoint_id = $2
returning *

-- name: load_webhook_endpoint
-- Clears the wake flag before the feed is read: a change that commits later sets it again. Also returns the principal in whose
-- name the endpoint receives, unless it was disabled and has no successor.
with cleared as (
    update webhook_endpoints set wake = false where id = $1 and organisation = $2 and wake
)
select e.*, p.id as acting_id, p.name as acting_name, p.roles as acting_roles,
       array(select t.team from team_members t where t.member = p.id order by 1) as team_ids,
       (select count(*) from webhook_deliveries d where d.endpoint_id = e.id and d.status = 'pending') as pending
from webhook_endpoints e
left join principals p on p.id = acting_principal(e.principal) and p.disabled_at is null
where e.id = $1 and e.organisation = $2

-- name: create_webhook_deliveries
-- Only if no other process has moved the endpoint's position (`old_position`) in the meantime.
with moved as (
    update webhook_endpoints set position = :new_position where id = :endpoint_id and position = :old_position
    returning id, organisation
)
insert into webhook_deliveries (id, endpoint_id, organisation, position, session_id, type, payload, retry_until)
select d.id, m.id, m.organisation, d.position, d.session_id, d.type, d.payload::json, now() + :retry_period::interval
from moved m
cross join unnest(:ids::text[], :positions::bigint[], :session_ids::text[], :types::text[], :payloads::text[])
    as d (id, position, session_id, type, payload)
on conflict do nothing

-- name: next_webhook_deliveries
-- The pending deliveries that wait for no other one, the next one first. In an ordered endpoint ($2), a delivery waits for the
-- earlier ones of its session.
select d.*, greatest(extract(epoch from d.next_attempt_at - now()), 0)::float8 as seconds, s.title,
       coalesce(s.owner, s.principal) as owner, s.visible_to, s.project_ids
from webhook_deliveries d left join sessions s on s.id = d.session_id
where d.endpoint_id = $1 and d.status = 'pending' and (not $2 or not exists (
    select from webhook_deliveries e
    where e.endpoint_id = $1 and e.session_id = d.session_id and e.status = 'pending'
      and (e.position, e.type) < (d.position, d.type)))
order by d.next_attempt_at, d.position
limit $3

-- name: record_webhook_success
with delivered as (
    update webhook_deliveries
    set status = 'delivered', attempts = attempts + 1, next_attempt_at = null, last_attempt_at = now(), last_status_code = $2,
        last_error = null
    where id = $1 and status = 'pending'
    returning endpoint_id
)
update webhook_endpoints e set failing_since = null from delivered d where e.id = d.endpoint_id and e.failing_since is not null

-- name: record_webhook_failure
-- `wait`: the time until the next attempt. Null: there is none. `disabled_after`: how long an endpoint may fail before it is
-- disabled.
with failed as (
    update webhook_deliveries
    set attempts = attempts + 1, last_attempt_at = now(), last_status_code = :status_code, last_error = :error,
        status = case when now() + :wait::interval <= retry_until then 'pending' else 'failed' end,
        next_attempt_at = case when now() + :wait::interval <= retry_until then now() + :wait::interval end
    where id = :id and status = 'pending'
    returning endpoint_id, status
)
update webhook_endpoints e
set failing_since = coalesce(e.failing_since, now()),
    disabled_at = case when f.status = 'failed' and e.failing_since < now() - :disabled_after::interval then now()
                       else e.disabled_at end,
    disabled_reason = case when f.status = 'failed' and e.failing_since < now() - :disabled_after::interval then :reason
                           else e.disabled_reason end
from failed f where e.id = f.endpoint_id

-- name: disable_webhook_endpoint
update webhook_endpoints set disabled_at = coalesce(disabled_at, now()), disabled_reason = $2 where id = $1

-- name: webhook_organisations
select distinct organisation from webhook_endpoints where disabled_at is null

-- name: mark_webhooks_for_wake
-- Those of browsers only if the inbox has something that is newer than when it was last read for them.
update webhook_endpoints e set wake = true, wake_at = now()
where e.organisation = any($1::text[]) and e.disabled_at is null and not e.wake and (e.format <> 'push' or push_is_due(e.id))
returning e.organisation, e.id

-- name: webhooks_to_wake
-- Endpoints whose wake signal was lost: those that are behind the feed, although they have fewer pending deliveries than
-- allowed ($1), or have an overdue delivery that waits for no other one.
with found as (
    select e.id
    from webhook_endpoints e left join feed_heads h on h.organisation = e.organisation
    where e.disabled_at is null and case
        when e.wake then e.wake_at < now() - interval '5 seconds'
        when e.format = 'push' then push_is_due(e.id)
        else (e.position < h.position or exists (select from feed_pending p where p.organisation = e.organisation))
             and (select count(*) from webhook_deliveries d where d.endpoint_id = e.id and d.status = 'pending') < $1
            or exists (
                select from webhook_deliveries d
                where d.endpoint_id = e.id and d.status = 'pending' and d.next_attempt_at < now() - interval '30 seconds'
                  and (not e.ordered or not exists (
                      select from webhook_deliveries o
                      where o.endpoint_id = e.id and o.session_id = d.session_id and o.status = 'pending'
                        and (o.position, o.type) < (d.position, d.type)))) end
    order by e.id
    limit 1000
)
update webhook_endpoints e set wake = true, wake_at = now() from found where e.id = found.id
returning e.organisation, e.id

-- name: delete_old_webhook_secrets
update webhook_endpoints set old_secret = null, old_secret_expires_at = null where old_secret_expires_at < now()

-- name: expire_webhooks
-- Old deliveries, found by the index on their times, and the endpoints of deleted sessions that have received everything.
with expired as (
    delete from webhook_deliveries where id in (
        select d.id from webhook_endpoints e cross join lateral (
            select id from webhook_deliveries
            where endpoint_id = e.id and status <> 'pending'
              and created_at < now() - case when e.format = 'push' then greatest($1, interval '2 days') else $1::interval end
            order by created_at limit 1000) d)
)
delete from webhook_endpoints e
where e.session_id is not null
  and not exists (select from sessions s where s.id = e.session_id)
  and not exists (select from webhook_deliveries d where d.endpoint_id = e.id and d.status = 'pending')
  and not exists (select from feed f where f.organisation = e.organisation and f.position > e.position)
  and not exists (select from feed_pending p where p.organisation = e.organisation)
