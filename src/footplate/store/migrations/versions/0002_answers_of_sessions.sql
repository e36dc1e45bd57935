-- An answer repeats what was sent: it must not outlive its session.
alter table answers add column session_id text;
create index answers_of_session on answers (session_id) where session_id is not null;
