-- Rules as they were written: lists of texts by `deny`, `ask` and `allow`. An agent's are in its definition.
create table policies (
    organisation text primary key,
    permissions  jsonb not null,
    principal    text not null,
    updated_at   timestamptz not null default now()
);
alter table projects add column permissions jsonb not null default '{}';
alter table sessions add column permissions jsonb not null default '{}';
