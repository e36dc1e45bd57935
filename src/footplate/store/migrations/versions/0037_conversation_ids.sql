lock table sessions in access exclusive mode;

-- The harness's own id of the conversation, which its worker learns from the harness's events: for Claude Code, its session id.
alter table sessions add column conversation_id text;

-- A harness reports the id as a conversation entry of the kind `<harness>.session`. The trigger adds no statement to a turn, and
-- runs only when the id or the harness's version is new. The append holds the lock of the session's head.
create function set_conversation_id() returns trigger language plpgsql as $$
begin
    update sessions set conversation_id = new.body ->> 'session_id'
    where id = new.session_id and conversation_id is distinct from new.body ->> 'session_id';
    return null;
end $$;
create trigger set_conversation_id after insert on entries for each row
    when (new.kind like '%.session') execute function set_conversation_id();
