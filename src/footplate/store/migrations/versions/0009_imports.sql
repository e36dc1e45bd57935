-- Transcripts that became sessions, by what was in them: the same one again is the session that there is.
create table imports (
    organisation text not null,
    digest       bytea not null,
    session_id   text not null,
    primary key (organisation, digest)
);
create index imports_of_session on imports (session_id);
