-- The working directory and exported variables of a session's persistent shell, after the last command whose result is in the log.
create table shell_states (
    session_id   text primary key,
    organisation text not null,
    state        jsonb not null
);
