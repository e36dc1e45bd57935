lock table sessions in access exclusive mode;

-- The deployment whose run created the session.
alter table sessions add column deployment_id text;
create index sessions_of_deployment on sessions (deployment_id, created_at) where deployment_id is not null;

-- What starts a session: a schedule, a client, or both. The row is the truth; the engine's schedule is derived from it.
create table deployments (
    id               text primary key,
    organisation     text not null,
    name             text not null,
    description      text,
    agent_id         text not null,
    agent_version    integer not null,
    environment_id   text not null,
    -- The agent as sessions store it, the first messages and steps, and everything else that a session is created with.
    definition       jsonb not null,
    metadata         jsonb not null default '{}',
    -- A cron expression and an IANA time zone. Null: only clients start runs.
    expression       text,
    timezone         text,
    overlap_policy   text not null check (overlap_policy in ('allow_all', 'skip', 'buffer_one', 'cancel_other')),
    catch_up_seconds integer not null,
    -- In whose name runs of the schedule start: the member who created, changed or resumed it last.
    principal        text not null,
    owner            text not null,
    visible_to       text not null default 'organisation',
    -- Null: active.
    paused_reason    jsonb,
    -- The number of changes that the engine has to know, and the last one that it knows.
    revision         integer not null default 1,
    applied_revision integer not null default 0,
    -- When the engine's schedule was last compared with the row.
    checked_at       timestamptz not null default now(),
    -- The time of a run that starts when the previous one has finished.
    buffered_at      timestamptz,
    last_run_at      timestamptz,
    created_at       timestamptz not null default now(),
    updated_at       timestamptz not null default now(),
    archived_at      timestamptz,
    check ((expression is null) = (timezone is null))
) with (fillfactor = 70);
create index deployments_of_organisation on deployments (organisation, created_at, id);
create index deployments_to_apply on deployments (id) where revision <> applied_revision;
create index deployments_to_check on deployments (checked_at) where expression is not null and archived_at is null;
create index deployments_with_buffer on deployments (id) where buffered_at is not null;

-- One row for each run, successful or not. A schedule starts at most one run for each of its times, because the row is inserted
-- in the transaction that creates the session.
create table deployment_runs (
    id            text primary key,
    deployment_id text not null references deployments (id),
    organisation  text not null,
    agent_id      text not null,
    agent_version integer not null,
    -- The time of the schedule. Null: a client started the run.
    scheduled_at  timestamptz,
    principal     text not null,
    session_id    text,
    error         jsonb,
    -- Whether the run did not start because of the overlap policy.
    skipped       boolean not null default false,
    created_at    timestamptz not null default now(),
    check ((session_id is null) <> (error is null))
);
create unique index runs_by_time on deployment_runs (deployment_id, scheduled_at) where scheduled_at is not null;
create index runs_of_organisation on deployment_runs (organisation, created_at, id);
create index runs_of_deployment on deployment_runs (deployment_id, created_at, id);

-- The feed also reports changes of deployments. Such a row has the deployment's id instead of a session's, and its own body.
alter table feed add column body json;
alter table feed_pending add column body json;
create or replace function number_feed(wanted text) returns bigint language plpgsql as $$
declare
    head     bigint;
    numbered bigint;
begin
    if not exists (select from feed_pending where organisation = wanted) then
        return coalesce((select position from feed_heads where organisation = wanted), 0);
    end if;
    insert into feed_heads (organisation) values (wanted) on conflict do nothing;
    select position into head from feed_heads where organisation = wanted for update;
    with chosen as (
        select id from feed_pending where organisation = wanted order by id limit 10000
    ), pending as (
        delete from feed_pending p using chosen where p.organisation = wanted and p.id = chosen.id returning p.*
    ), ordered as (
        select *, max(id) over (partition by session_id order by seq) as last_id from pending
    )
    insert into feed (organisation, position, session_id, seq, type, event_id, owner, visible_to, project_ids, created_at, body)
    select organisation, head + row_number() over (order by last_id, seq, id), session_id, seq, type, event_id, owner, visible_to,
           project_ids, created_at, body
    from ordered;
    get diagnostics numbered = row_count;
    update feed_heads set position = head + numbered where organisation = wanted;
    return head + numbered;
end $$;

-- Sessions of deployments that work, or wait for a person or a client. A session that a failed step has paused has stopped.
create view busy_deployment_sessions as
select s.deployment_id, s.id as session_id, h.end_request is not null as is_ending
from sessions s join session_heads h on h.session_id = s.id
where s.deployment_id is not null and s.ended_at is null and s.archived_at is null
  and (h.status not in ('idle', 'terminated') or h.wake or h.turn_id is not null or h.waits_for is not null);
