-- How a session is worked on: `interactive` shows text while it is written, `background` does not.
alter table sessions add column mode text not null default 'interactive';

-- When the turn's time is over; null: never. The time that it waits for a person does not count.
alter table turns add column deadline_at timestamptz;
