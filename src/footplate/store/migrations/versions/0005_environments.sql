-- What the session's environment said when the session was created: it holds also when the environment is gone.
-- Empty for older ones, whose environments could say nothing.
alter table sessions add column environment jsonb not null default '{}';

-- Whose the directories on workers' hosts are.
create table cell (
    id    text not null default gen_random_uuid()::text,
    alone boolean primary key default true check (alone)
);
insert into cell default values;
