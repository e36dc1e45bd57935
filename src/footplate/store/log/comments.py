"""Stores the comments on lines of a session's diff.

The lock of a session's head orders their changes with the deletion and the end of the session, and two requests that
send the same drafts: the second one finds that they were sent.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from footplate.domain import ids
from footplate.domain.errors import NotFound
from footplate.domain.json import JsonObject, clean_text
from footplate.domain.organisations.principals import Principal
from footplate.domain.sessions import comments
from footplate.domain.sessions.comments import (
    Comment,
    CommentNotFound,
    CommentSent,
    CommentUnit,
    LineRange,
    NewComment,
    TooManyDrafts,
)
from footplate.domain.sessions.events import Position
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.log.inbox import add_session_change
from footplate.store.log.inputs import check_accepts
from footplate.store.row_mapping import Row


class CommentUnitOfWork(CommentUnit):
    """The methods of a unit of work that change comments."""

    _connection: Connection

    async def add_comment(self, principal: Principal, session_id: str, comment: NewComment) -> Comment:
        await self._lock_open_session(principal, session_id)
        if await self._connection.fetchval(SQL["count_drafts"], session_id) >= comments.MAX_DRAFTS:
            raise TooManyDrafts
        lines = comment.lines
        row = await self._connection.fetchrow(
            *bind(
                "insert_comment",
                id=ids.new_id(ids.COMMENT),
                organisation=principal.organisation,
                session_id=session_id,
                author=principal.id,
                turn_id=comment.turn_id,
                tree=comment.tree,
                path=lines.path,
                side=lines.side,
                start_line=lines.start,
                end_line=lines.end,
                code=clean_text(comment.code),
                body=clean_text(comment.body),
            )
        )
        assert row is not None
        added = load_comment(row)
        await self._add_comment_change(session_id, [added.id], "added")
        return added

    async def update_comment(
        self, principal: Principal, session_id: str, comment_id: str, change: Callable[[Comment], str]
    ) -> Comment:
        await self._lock_open_session(principal, session_id)
        found = await self._lock_draft(principal, session_id, comment_id)
        body = clean_text(change(found))
        if body == found.body:
            return found
        row = await self._connection.fetchrow(SQL["update_comment"], comment_id, body)
        assert row is not None
        await self._add_comment_change(session_id, [comment_id], "updated")
        return load_comment(row)

    async def delete_comment(self, principal: Principal, session_id: str, comment_id: str) -> None:
        try:
            await self._lock_draft(principal, session_id, comment_id)
        except CommentNotFound:
            return
        await self._connection.execute(SQL["delete_comment"], comment_id)
        await self._add_comment_change(session_id, [comment_id], "deleted")

    async def lock_drafts(
        self, principal: Principal, session_id: str, comment_ids: Sequence[str] | None
    ) -> Sequence[Comment]:
        await self._lock_open_session(principal, session_id)
        wanted = None if comment_ids is None else [*comment_ids]
        rows = await self._connection.fetch(
            SQL["lock_comments"], session_id, principal.organisation, principal.id, wanted
        )
        found = [load_comment(row) for row in rows]
        for missing in {*(comment_ids or ())} - {one.id for one in found}:
            raise CommentNotFound(missing)
        drafts = [one for one in found if one.sent_event_id is None]
        for draft in drafts:
            comments.check_author(principal, draft)
        return drafts

    async def mark_comments_sent(
        self, principal: Principal, session_id: str, drafts: Sequence[Comment], position: Position
    ) -> Sequence[Comment]:
        del principal
        sent = [one.id for one in drafts]
        rows = await self._connection.fetch(SQL["mark_comments_sent"], sent, position.event.id, position.seq)
        await self._add_comment_change(session_id, sent, "sent")
        return sorted((load_comment(row) for row in rows), key=lambda one: (one.created_at, one.id))

    async def _lock_open_session(self, principal: Principal, session_id: str) -> None:
        head = await self._connection.fetchrow(SQL["lock_head"], session_id, principal.organisation)
        if head is None:
            raise NotFound("session", session_id)
        check_accepts(head, "comments")

    async def _lock_draft(self, principal: Principal, session_id: str, comment_id: str) -> Comment:
        rows = await self._connection.fetch(
            SQL["lock_comments"], session_id, principal.organisation, principal.id, [comment_id]
        )
        if not rows:
            raise CommentNotFound(comment_id)
        found = load_comment(rows[0])
        comments.check_author(principal, found)
        if found.sent_event_id is not None:
            raise CommentSent(comment_id)
        return found

    async def _add_comment_change(
        self, session_id: str, comment_ids: Sequence[str], change: comments.CommentChange
    ) -> None:
        body: JsonObject = {"comment_ids": [*comment_ids], "change": change}
        await add_session_change(self._connection, session_id, comments.CHANGED, body)


async def read_comment(database: Database, principal: Principal, session_id: str, comment_id: str) -> Comment:
    row = await database.fetchrow("comment", session_id, principal.organisation, comment_id)
    if row is None:
        raise CommentNotFound(comment_id)
    return load_comment(row)


async def read_comments(
    database: Database,
    principal: Principal,
    session_id: str,
    *,
    limit: int,
    after: tuple[datetime, str] | None,
    is_sent: bool | None = None,
) -> Sequence[Comment]:
    after_time, after_id = after or (None, None)
    rows = await database.fetch(
        "comments",
        session_id=session_id,
        organisation=principal.organisation,
        after_time=after_time,
        after_id=after_id,
        is_sent=is_sent,
        limit=limit,
    )
    return [load_comment(row) for row in rows]


def load_comment(row: Row) -> Comment:
    return Comment(
        id=row["id"],
        session_id=row["session_id"],
        author_id=row["author"],
        author_name=row["author_name"],
        turn_id=row["turn_id"],
        tree=row["tree"],
        lines=LineRange(path=row["path"], side=row["side"], start=row["start_line"], end=row["end_line"]),
        code=row["code"],
        body=row["body"],
        sent_event_id=row["sent_event_id"],
        sent_at=row["sent_at"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
