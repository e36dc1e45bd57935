-- How often a worker that stopped passed the turn on: no fault of the turn, so it does not count against it.
alter table turns add column handed_over integer not null default 0;
