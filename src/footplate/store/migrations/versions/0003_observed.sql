-- The trace of the request that sent the input, as a W3C `traceparent`; null unless the server traces.
alter table steps add column traceparent text;

-- For GET /v1/usage. Neither column changes after the insert, so the updates of a running turn stay in place (HOT).
create index turns_by_time on turns (organisation, created_at);
