-- A turn updates its session's head six times and its step twice. An update that changes no indexed column stays on its page
-- and writes to no index (HOT). So none of the columns that turns change is in an index any more.

-- Steps are taken in their order, so the queued ones come after the last that was taken. Existing sessions begin at 0: their
-- next claim reads all their steps once.
alter table session_heads add column taken_position bigint not null default 0;
drop index steps_queued;

-- The sessions that the sweep looks at: those that wait for a wake or run a turn. The sweep removes idle ones later. Rows are
-- inserted and removed under the head's lock.
create table active_sessions (
    session_id text primary key,
    since      timestamptz not null default now()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
insert into active_sessions (session_id) select session_id from session_heads where wake or status <> 'idle';
drop index session_heads_to_wake;
drop index session_heads_busy;

-- Room for updates on the page, and a vacuum by what has changed, not by a fifth of a table that is mostly history.
alter table session_heads set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
do $$
begin
    for n in 0..31 loop
        execute format('alter table steps_%s set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)', n);
        execute format('alter table turns_%s set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02)', n);
        execute format('alter table events_%s set (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02)', n);
        execute format('alter table entries_%s set (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02)', n);
    end loop;
end $$;
