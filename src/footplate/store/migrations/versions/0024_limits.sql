-- In the order in which the API locks them, so that the two do not wait for each other.
lock table session_heads, sessions in access exclusive mode;

-- Limits that the operator has set for an organisation, and those of its administrators. `scope` is `organisation`,
-- `each_member`, or the id of one member.
create table limits (
    organisation text not null references organisations (id),
    name         text not null,
    scope        text not null,
    by_operator  boolean not null,
    value        bigint not null check (value >= 0),
    primary key (organisation, name, scope, by_operator)
);

-- The scope of the limit on concurrent turns for which the session's next turn waits. Turns that do not wait leave it null, so
-- the index does not prevent updates in place.
alter table session_heads add column deferred text;
create index session_heads_deferred on session_heads (organisation) where deferred is not null;

-- Running turns and queued steps of an organisation are counted in its active sessions.
alter table active_sessions add column organisation text;
update active_sessions a set organisation = h.organisation from session_heads h where h.session_id = a.session_id;
create index active_sessions_by_organisation on active_sessions (organisation);

create index sessions_open on sessions (organisation, coalesce(owner, principal)) where archived_at is null;
