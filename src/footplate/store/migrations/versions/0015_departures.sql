-- A session's files left as they were at a snapshot, as a commit with this message: what leaves later goes on from that one.
-- The snapshot is at `seq`, and a fork's may be one of those that it begins in; so a session's own word stands here, and not
-- with the snapshot.
create table departures (
    session_id   text not null,
    tree         text not null,
    seq          bigint not null,
    -- the files and the commits: a snapshot that is written again with others has not left
    what         text not null,
    organisation text not null,
    message      text not null,
    -- in which order: greater than all that were there before
    number       bigint not null generated always as identity,
    primary key (session_id, tree, seq, what)
);
create index departures_in_order on departures (session_id, number);

insert into departures (session_id, tree, seq, what, organisation, message)
select session_id, tree, seq, files || ' ' || md5(commits::text), organisation, departed from snapshots where departed is not null;

-- The last departure of the owner that the fork goes on from: what left later changes none of its commits. The forks of
-- before went on from all of them.
alter table stretches add column departures bigint not null default 0;
update stretches set departures = (select coalesce(max(number), 0) from departures);
alter table snapshots drop column departed;
