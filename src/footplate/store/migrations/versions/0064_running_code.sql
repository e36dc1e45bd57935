-- The newest revision of the schema that the code of a process knows. Null: its code is older than this column.
alter table workers add column schema_revision text;

-- The API processes that run. One that stops in order removes its row.
create table api_processes (
    id              text primary key,
    host            text not null,
    version         text not null,
    schema_revision text not null,
    started_at      timestamptz not null default clock_timestamp(),
    last_seen_at    timestamptz not null
) with (fillfactor = 50);

-- The migrations that older code cannot run with, and the oldest code that can, as the newest revision that it knows.
create table schema_requirements (
    revision   text primary key,
    needs_code text not null
);
