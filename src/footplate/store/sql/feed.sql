-- The feed of an organisation: numbers, reads and deletes the rows that the triggers of migrations 0025 and 0035 write.

-- name: number_feeds
-- In a fixed order, so that two callers cannot deadlock.
select organisation, number_feed(organisation) as position from (select unnest($1::text[]) as organisation order by 1) o

-- name: number_backlog
select organisation, number_feed(organisation) as position
from (select distinct organisation from feed_pending order by 1) o

-- name: feed_rows
-- Who can see a session is read with the change, because it may have changed since. A deleted session has no row; only its
-- `session.deleted` still says who could see it. A row without an event was archived, or its session was deleted.
select f.position, f.session_id, f.seq, f.type, f.created_at, f.event_id as own_id, s.title, s.id is not null as has_session,
       coalesce(s.owner, s.principal, f.owner) as owner, coalesce(s.visible_to, f.visible_to) as visible_to,
       coalesce(s.project_ids, f.project_ids, '{}') as project_ids, e.event_id, e.processed_at, e.body,
       f.body as own_body
from feed f
left join sessions s on s.id = f.session_id
left join lateral (
    select * from events where session_id = f.session_id and seq = f.seq and f.event_id is null limit 1) e on true
where f.organisation = $1 and f.position > $2
order by f.position
limit $3

-- name: expire_feed
-- Deletes a prefix of each feed, so that the remaining positions have no gap: rows are not numbered in the order of their times.
with first as (
    select h.organisation, coalesce((
        select f.position from feed f
        where f.organisation = h.organisation and f.created_at >= now() - $1::interval
        order by f.position limit 1), h.position + 1) as position
    from feed_heads h
)
delete from feed f using first where f.organisation = first.organisation and f.position < first.position
