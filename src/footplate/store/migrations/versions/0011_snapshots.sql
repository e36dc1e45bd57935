-- What a session's files were like: from a position on, until the next row of the same tree. The files themselves are packs in
-- the object store, and were there before the row was. `tree` is a project's id, or `scratch`.
create table snapshots (
    session_id   text not null,
    tree         text not null,
    seq          bigint not null,
    organisation text not null,
    turn_id      text not null,
    -- taken before the turn's first call
    begins       boolean not null,
    -- its place in the chain of packs
    number       integer not null,
    -- git's ids of the files, and of what no tree of git's holds under its own name
    files        text not null,
    apart        text,
    -- what the tree began with; null: with nothing
    base         text,
    left_out     text[] not null,
    created_at   timestamptz not null default now(),
    primary key (session_id, tree, seq)
) partition by hash (session_id);

do $$
begin
    for n in 0..31 loop
        execute format('create table snapshots_%s partition of snapshots for values with (modulus 32, remainder %s)', n, n);
    end loop;
end $$;
