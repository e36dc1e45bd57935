-- In the order in which the API locks them, so that the two do not wait for each other.
lock table session_heads, sessions in access exclusive mode;

-- Files of a session's output directory. `current`: in the directory, and clients see it. `staged`: in the directory, and
-- clients see it when the turn ends. `replaced`: no longer in the directory, and clients see it until the turn ends. Null in
-- all of these columns: a client uploaded the file.
alter table files
    add column session_id   text,
    add column output_state text check (output_state in ('current', 'staged', 'replaced')),
    add column sha256       text;
create unique index files_in_outputs on files (session_id, filename) where output_state in ('current', 'staged');
create index files_of_session on files (session_id, created_at, id) where session_id is not null;

-- Null: the session never had an output. Otherwise which files are not stored, and why.
alter table sessions add column outputs jsonb;

-- The files that clients see. The session decides who can see its outputs.
create view listed_files as
select f.id, f.organisation, f.filename, f.mime_type, f.size_bytes, f.created_at, f.expires_at, f.archived_at, f.session_id,
       case when f.session_id is null then f.owner else coalesce(s.owner, s.principal) end as owner,
       coalesce(s.visible_to, f.visible_to) as visible_to, s.project_ids
from files f left join sessions s on s.id = f.session_id
where (f.expires_at is null or f.expires_at > now()) and f.output_state is distinct from 'staged';
