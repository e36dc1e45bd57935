-- Comments on lines of diffs.

-- name: insert_comment
insert into session_comments (id, organisation, session_id, author, turn_id, tree, path, side, start_line, end_line, code, body)
values (:id, :organisation, :session_id, :author, :turn_id, :tree, :path, :side, :start_line, :end_line, :code, :body)
returning *, (select name from principals where id = :author) as author_name

-- name: count_drafts
select count(*) from session_comments where session_id = $1 and sent_event_id is null

-- name: comment
select c.*, p.name as author_name from session_comments c left join principals p on p.id = c.author
where c.session_id = $1 and c.organisation = $2 and c.id = $3

-- name: comments
select c.*, p.name as author_name from session_comments c left join principals p on p.id = c.author
where c.session_id = :session_id and c.organisation = :organisation
  and (:after_time::timestamptz is null or (c.created_at, c.id) > (:after_time, :after_id::text))
  and (:is_sent::boolean is null or (c.sent_event_id is not null) = :is_sent)
order by c.created_at, c.id
limit :limit

-- name: lock_comments
-- In a fixed order, so that two callers cannot deadlock. Without a list ($4), the drafts of an author ($3).
select c.*, (select name from principals where id = c.author) as author_name from session_comments c
where c.session_id = $1 and c.organisation = $2
  and case when $4::text[] is null then c.author = $3 and c.sent_event_id is null else c.id = any($4) end
order by c.id
for update of c

-- name: update_comment
update session_comments set body = $2, updated_at = now() where id = $1
returning *, (select name from principals where id = author) as author_name

-- name: delete_comment
delete from session_comments where id = $1

-- name: mark_comments_sent
update session_comments set sent_event_id = $2, sent_seq = $3, sent_at = now(), updated_at = now()
where id = any($1::text[]) and sent_event_id is null
returning *, (select name from principals where id = author) as author_name

-- name: fork_comments
-- The fork has the comments whose messages are in its log. Drafts stay with the parent.
insert into session_comments (id, organisation, session_id, author, turn_id, tree, path, side, start_line, end_line, code, body,
                              sent_event_id, sent_seq, sent_at, created_at, updated_at)
select $1 || '_' || row_number() over (order by created_at, id), organisation, $2, author, turn_id, tree, path, side, start_line, end_line,
       code, body, sent_event_id, sent_seq, sent_at, created_at, updated_at
from session_comments where session_id = $3 and sent_seq <= $4
