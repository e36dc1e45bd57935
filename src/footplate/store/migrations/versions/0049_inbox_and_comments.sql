-- In the order in which the API locks them, so that the two do not wait for each other.
lock table session_heads, approvals in access exclusive mode;

-- Why the session needs a person since its last turn: `failure` or `merge_conflict`. The commit that ends the turn sets it, the
-- start of the next turn clears it. `problem` alone is cleared when a person dismisses it, so that a repeated dismissal finds it.
alter table session_heads
    add column problem      text,
    add column problem_turn text,
    add column problem_at   timestamptz;
create index session_heads_with_problem on session_heads (organisation, problem_at, problem_turn) where problem is not null;
create index session_heads_by_problem_turn on session_heads (problem_turn) where problem_turn is not null;

-- Merges that a client requested and that git could not make: the last one of each branch.
create table merge_conflicts (
    id           text primary key,
    organisation text not null,
    session_id   text not null,
    project_id   text not null,
    branch       text not null,
    message      text not null,
    files        json not null,
    created_at   timestamptz not null default now(),
    dismissed_at timestamptz,
    unique (session_id, project_id, branch)
);
create index merge_conflicts_waiting on merge_conflicts (organisation, created_at, id) where dismissed_at is null;

-- Who an item of the inbox is assigned to, and until when it is snoozed. The id is that of the event or the turn that the item is
-- about, or of the merge conflict. A row may remain after its item is done; it is deleted with the session.
create table inbox_states (
    session_id    text not null,
    item_id       text not null,
    organisation  text not null,
    assignee      text,
    snoozed_until timestamptz,
    updated_by    text not null,
    updated_at    timestamptz not null default now(),
    primary key (session_id, item_id)
);

-- Whether a member can see a session. The query `visible_sessions` decides the same for a caller.
create function can_see_session(member principals, visible_to text, owner text) returns boolean language sql stable as $$
    select member.id = owner or visible_to = 'organisation' or 'admin' = any(member.roles)
           or exists (select from team_members t where t.team = visible_to and t.member = member.id)
$$;

-- Everything that waits for a person. A merge conflict is over when the session has run again. Failed jobs are in the results of
-- their batch: it may have thousands.
create view open_inbox_items as
select organisation, event_id as id, case when question then 'question' else 'approval' end as kind, session_id, turn_id, created_at
from approvals where closed_at is null
union all
select h.organisation, h.problem_turn, h.problem, h.session_id, h.problem_turn, h.problem_at from session_heads h
where h.problem is not null and not exists (
    select from sessions s join session_groups g on g.id = s.group_id where s.id = h.session_id and g.kind = 'batch')
union all
select c.organisation, c.id, 'merge_conflict', c.session_id, null, c.created_at
from merge_conflicts c join session_heads h on h.session_id = c.session_id
where c.dismissed_at is null and (h.claimed_at is null or h.claimed_at < c.created_at);

-- Comments on lines of a session's diff. `code` is what the lines contained. `sent_seq` is the position of the message that a
-- comment was sent with; without it, the comment is a draft.
create table session_comments (
    id            text primary key,
    organisation  text not null,
    session_id    text not null,
    author        text not null,
    turn_id       text,
    tree          text not null,
    path          text not null,
    side          text not null check (side in ('old', 'new')),
    start_line    integer not null,
    end_line      integer not null,
    code          text not null,
    body          text not null,
    sent_event_id text,
    sent_seq      bigint,
    sent_at       timestamptz,
    created_at    timestamptz not null default now(),
    updated_at    timestamptz not null default now(),
    check ((sent_event_id is null) = (sent_seq is null) and start_line <= end_line)
);
create index comments_of_session on session_comments (session_id, created_at, id);

-- The reply to a question is no change of the feed, but it changes the inbox.
create function add_closed_question_to_feed() returns trigger language plpgsql as $$
begin
    insert into feed_pending (organisation, session_id, seq, type, event_id, body)
    select new.organisation, new.session_id, h.seq, 'inbox.changed', 'sevt_' || replace(gen_random_uuid()::text, '-', ''),
           json_build_object('item_id', new.event_id, 'kind', 'question', 'change', 'closed')
    from session_heads h where h.session_id = new.session_id;
    return null;
end $$;
create trigger add_closed_question_to_feed after update of closed_at on approvals for each row
    when (new.question and old.closed_at is null and new.closed_at is not null) execute function add_closed_question_to_feed();
