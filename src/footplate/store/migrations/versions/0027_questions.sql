-- A question that an agent asks a person waits as a call that needs approval does.
alter table approvals
    add column question boolean not null default false,
    add column reply jsonb;
