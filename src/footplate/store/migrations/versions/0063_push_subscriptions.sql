-- Browsers that receive notifications. Each is also a webhook endpoint, which has its address, its member and its deliveries.
alter table webhook_endpoints drop constraint webhook_endpoints_format_check;
alter table webhook_endpoints add constraint webhook_endpoints_format_check check (format in ('standard', 'slack', 'push'));
create table push_subscriptions (
    endpoint_id     text primary key references webhook_endpoints (id) on delete cascade,
    -- The keys of the browser, with which messages to it are encrypted.
    p256dh          text not null,
    auth            text not null,
    user_agent      text not null,
    -- The credential with which the browser subscribed. It receives nothing after the credential was revoked or signed out.
    api_key         text,
    browser_session text,
    -- When the inbox was last read for it. Only newer items wake it.
    read_at         timestamptz not null default now(),
    last_success_at timestamptz,
    check ((api_key is null) <> (browser_session is null))
) with (fillfactor = 50);
-- An address belongs to one browser, and so to one member of one organisation.
drop index webhook_endpoint_urls;
create unique index webhook_endpoint_urls on webhook_endpoints (organisation, coalesce(session_id, ''), url) where format <> 'push';
create unique index push_subscription_urls on webhook_endpoints (url) where format = 'push';

-- The inbox item of a notification. Each browser receives one for an item.
alter table webhook_deliveries add column item_id text;
create unique index push_deliveries_by_item on webhook_deliveries (endpoint_id, item_id) where item_id is not null;

-- What a member has chosen. Without a row: notifications at any time.
create table notification_settings (
    principal    text primary key,
    organisation text not null,
    is_enabled   boolean not null,
    quiet_start  time,
    quiet_end    time,
    timezone     text,
    updated_at   timestamptz not null default now(),
    check ((quiet_start is null) = (quiet_end is null) and (quiet_start is null) = (timezone is null))
);

-- The key pair with which the server signs its messages to push services. One row.
create table push_keys (
    id          boolean primary key default true check (id),
    private_key text not null,
    created_at  timestamptz not null default now()
);

-- Whether the credential of a subscription is valid: the API key, or a browser session that was not ended, and its key. A session
-- that has expired by time is valid here, because notifications bring people back. The server removes it after 30 days.
create function push_credential_is_valid(subscription push_subscriptions) returns boolean language sql stable as $$
    select case when subscription.browser_session is null
        then exists (select from valid_api_keys k where k.id = subscription.api_key)
        else exists (
            select from browser_sessions b left join valid_api_keys k on k.id = b.api_key and k.secret_hash = b.key_hash
            where b.id = subscription.browser_session and b.ended_at is null and (b.api_key is null or k.id is not null)) end
$$;

-- Whether a subscription has something to do: the inbox has an item, or an assignment to its member, that is newer than when it was
-- last read for it, or a delivery is due. The minute covers items whose transactions committed late.
create function push_is_due(subscription text) returns boolean language sql stable as $$
    select exists (
        select from webhook_endpoints e join push_subscriptions s on s.endpoint_id = e.id
        where e.id = subscription and (
            exists (select from open_inbox_items i where i.organisation = e.organisation and i.created_at > s.read_at - interval '1 minute')
            or exists (
                select from inbox_states st
                where st.organisation = e.organisation and st.assignee = e.principal and st.updated_at > s.read_at - interval '1 minute')
            or exists (
                select from webhook_deliveries d
                where d.endpoint_id = e.id and d.status = 'pending' and d.next_attempt_at < now())))
$$;
create index inbox_states_of_assignee on inbox_states (assignee, updated_at) where assignee is not null;
