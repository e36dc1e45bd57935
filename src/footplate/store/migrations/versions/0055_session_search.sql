-- The words of the sessions. The row with `seq` 0 has those of the title, the others those of the events up to `seq` that the row
-- before does not have. The sweep writes them after the commits that they describe (store/resources/session_search.py).
create table search_documents (
    session_id text not null references sessions (id) on delete cascade,
    seq        bigint not null,
    document   tsvector not null,
    primary key (session_id, seq)
);
create index search_words on search_documents using gin (document);

-- Up to which position of its feed the changes of an organisation are indexed.
create table search_progress (
    organisation text primary key,
    position     bigint not null
);
