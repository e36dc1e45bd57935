-- In the order in which the API locks them, so that the two do not wait for each other.
lock table session_heads, sessions, steps in access exclusive mode;

-- A queue that clients can reorder: steps run in the order of `sort_key`. A new step's key is its position. Reordering only
-- exchanges the keys of pending steps, so all pending keys stay above `session_heads.taken_position`.
-- `definition` is null for a message that was sent as an event; its content is in the event.
alter table steps
    add column sort_key   bigint,
    add column name       text,
    add column definition json,
    add column attempts   integer not null default 0,
    add column not_before timestamptz,
    -- The member who edited the step last. It then runs in that member's name.
    add column edited_by  text;
update steps set sort_key = position,
    state = case state when 'queued' then 'pending' when 'parked' then 'running' when 'done' then 'completed' else state end;
alter table steps alter column sort_key set not null, alter column state set default 'pending';
-- Neither column changes while a turn runs, so updates of the state stay in place.
create index steps_in_order on steps (session_id, sort_key);

-- `next_steps` is how many steps a paused session may still start.
alter table session_heads
    add column playing      boolean not null default true,
    add column next_steps   integer not null default 0,
    add column pause_reason text;
