-- Notifications by web push. A subscription is a webhook endpoint with the format `push`.

-- name: notification_settings
select * from notification_settings where principal = $1 and organisation = $2

-- name: lock_notification_settings
-- Creates the row if it is missing, so that it can be locked.
insert into notification_settings (principal, organisation, is_enabled) values ($1, $2, $3)
on conflict (principal) do update set updated_at = now() returning *

-- name: save_notification_settings
update notification_settings
set is_enabled = :is_enabled, quiet_start = :quiet_start, quiet_end = :quiet_end, timezone = :timezone
where principal = :principal and organisation = :organisation

-- name: resume_postponed_pushes
-- After a change of the quiet hours, what was postponed is due. The sender postpones it again if it has to.
update webhook_deliveries d set next_attempt_at = now()
from webhook_endpoints e
where e.principal = $1 and e.organisation = $2 and e.format = 'push' and d.endpoint_id = e.id and d.status = 'pending' and d.attempts = 0

-- name: push_subscriptions
select e.*, s.user_agent, s.last_success_at, push_credential_is_valid(s) as is_valid,
       case when e.failing_since is not null then (
           select d.last_error from webhook_deliveries d where d.endpoint_id = e.id and d.last_error is not null
           order by d.last_attempt_at desc limit 1) end as problem
from webhook_endpoints e join push_subscriptions s on s.endpoint_id = e.id
where e.principal = $1 and e.organisation = $2 and ($3::text is null or e.id = $3)
order by e.created_at desc, e.id desc

-- name: remove_push_subscription_of_others
-- A browser belongs to the member who subscribed last. Pending deliveries to the one before are deleted with the row.
delete from webhook_endpoints where url = $1 and format = 'push' and (principal <> $2 or organisation <> $3)

-- name: save_push_endpoint
insert into webhook_endpoints as e (id, organisation, url, format, ordered, secret, principal, roles, position)
values ($1, $2, $3, 'push', false, '', $4, $5, 0)
on conflict (url) where format = 'push' do update
set roles = excluded.roles, failing_since = null, disabled_at = null, disabled_reason = null
where e.principal = excluded.principal and e.organisation = excluded.organisation
returning id

-- name: save_push_subscription
insert into push_subscriptions as s (endpoint_id, p256dh, auth, user_agent, api_key, browser_session)
values (:endpoint_id, :p256dh, :auth, :user_agent, :api_key, :browser_session)
on conflict (endpoint_id) do update
set p256dh = excluded.p256dh, auth = excluded.auth, user_agent = excluded.user_agent, api_key = excluded.api_key,
    browser_session = excluded.browser_session

-- name: delete_push_subscription
delete from webhook_endpoints where id = $1 and organisation = $2 and principal = $3 and format = 'push' returning id

-- name: load_push_target
-- Clears the wake flag before the inbox is read: an item that is added later sets it again. Also returns the member, unless it is
-- disabled or the credential of the browser is no longer valid.
with cleared as (
    update webhook_endpoints set wake = false where id = $1 and organisation = $2 and wake
), read as (
    update push_subscriptions set read_at = now() where endpoint_id = $1
)
select e.*, s.p256dh, s.auth, p.id as acting_id, p.name as acting_name, p.roles as acting_roles,
       array(select t.team from team_members t where t.member = p.id order by 1) as team_ids,
       coalesce(n.is_enabled, true) as is_enabled, n.quiet_start, n.quiet_end, n.timezone
from webhook_endpoints e
join push_subscriptions s on s.endpoint_id = e.id
left join principals p on p.id = e.principal and p.organisation = e.organisation and p.disabled_at is null and push_credential_is_valid(s)
left join notification_settings n on n.principal = e.principal and n.organisation = e.organisation
where e.id = $1 and e.organisation = $2 and e.format = 'push'

-- name: create_item_deliveries
-- A delivery for each item that the member (`audiences`: see `visible_sessions`) can see and that needs the member, if it
-- came after the subscription and is not older than `max_age`. An item that was assigned counts from the assignment.
insert into webhook_deliveries (id, endpoint_id, organisation, session_id, type, payload, item_id, retry_until)
select 'whdl_' || replace(gen_random_uuid()::text, '-', ''), e.id, e.organisation, i.session_id, :type,
       json_build_object('item_id', i.id), i.id, now() + :retry_period::interval
from webhook_endpoints e
join open_inbox_items i on i.organisation = e.organisation
join sessions s on s.id = i.session_id
left join inbox_states st on st.session_id = i.session_id and st.item_id = i.id
left join principals p on p.id = st.assignee and p.disabled_at is null and can_see_session(p, s.visible_to, coalesce(s.owner, s.principal))
where e.id = :endpoint_id and e.organisation = :organisation and s.archived_at is null
  and (:audiences::text[] is null or coalesce(s.owner, s.principal) = any(:audiences) or s.visible_to = any(:audiences))
  and coalesce(st.snoozed_until, now()) <= now() and (p.id is null or p.id = e.principal)
  and greatest(i.created_at, case when p.id = e.principal then st.updated_at end)
      > greatest(e.created_at, now() - :max_age::interval)
order by i.created_at
limit 1000
on conflict do nothing

-- name: postpone_push
-- Only if the quiet hours are still those that the sender has read: a change of them has made the delivery due. The lock waits
-- for a change that is not committed yet.
with settings as materialized (
    select quiet_start, quiet_end, timezone from notification_settings
    where principal = :principal and organisation = :organisation for share
)
update webhook_deliveries
set next_attempt_at = :until, retry_until = greatest(retry_until, :until::timestamptz + interval '1 hour')
where id = :id and status = 'pending'
  and exists (select from settings where quiet_start = :quiet_start and quiet_end = :quiet_end and timezone = :timezone)

-- name: drop_push
delete from webhook_deliveries where id = $1 and status = 'pending'

-- name: drop_pending_pushes
delete from webhook_deliveries where endpoint_id = $1 and status = 'pending'

-- name: record_push_success
update push_subscriptions set last_success_at = now() where endpoint_id = $1

-- name: remove_push_subscription
delete from webhook_endpoints where id = $1 and format = 'push'

-- name: push_key
-- The stored key, or the one that is passed if there is none.
with created as (
    insert into push_keys (private_key) values ($1) on conflict do nothing returning private_key
)
select private_key from created union all select private_key from push_keys limit 1

-- name: remove_unused_push_subscriptions
-- Browsers whose session expired long ago, or whose key is revoked.
delete from webhook_endpoints e using push_subscriptions s
where s.endpoint_id = e.id and e.format = 'push'
  and case when s.browser_session is null
      then exists (select from api_keys k where k.id = s.api_key and k.revoked_at < now() - interval '30 days')
      else not exists (select from browser_sessions b where b.id = s.browser_session) end
