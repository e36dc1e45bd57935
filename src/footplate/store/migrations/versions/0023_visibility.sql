-- Who can see what, and who continues the work of a member who has left.

-- In the order in which the API locks them, so that the two do not wait for each other.
lock table session_heads, sessions in access exclusive mode;

create table team_members (
    team   text not null references principals (id),
    member text not null references principals (id),
    primary key (team, member)
);
create index team_members_by_member on team_members (member);

-- Null: all projects.
alter table api_keys add column project_ids text[];

-- `visible_to` is 'organisation', the id of a team, or 'owner'. An owner that is null is the principal that created the row.
alter table sessions
    add column owner      text,
    add column visible_to text not null default 'organisation';
create index sessions_hidden on sessions (organisation) where visible_to <> 'organisation';
alter table files
    add column owner      text,
    add column visible_to text not null default 'organisation';

-- A member who cannot see the session of an earlier import of the same transcript gets another one.
alter table imports drop constraint imports_pkey, add primary key (organisation, digest, session_id);

-- Deleted sessions that not all members could see: their audit entries stay hidden.
create table hidden_deletions (session_id text primary key);

-- Messages of a disabled member run in the name of its successor. Without one they wait, and the head names the member.
alter table principals add column successor text references principals (id);
alter table session_heads add column waits_for text;
create index session_heads_by_wait on session_heads (waits_for) where waits_for is not null;

-- In whose name a message of this author runs. Empty: it cannot run, because the author is disabled and has no successor.
create function acting_principal(author text) returns text language sql stable as $$
    select coalesce((
        select case when p.disabled_at is null then p.id
                    else coalesce((select q.id from principals q where q.id = p.successor and q.disabled_at is null), '') end
        from principals p where p.id = author), author)
$$;
