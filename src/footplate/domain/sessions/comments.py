"""Comments on lines of a session's diff. They stay with the session, and are drafts until they are sent to its agent.

All drafts that are sent together become one message, with the file, the lines and the code of each. A comment records
the event of that message, so it is sent only once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, Protocol

from footplate.domain.errors import Conflict, Forbidden, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Position

CHANGED: Final = "session_comment.changed"
"""The change of the feed when a comment is added, edited, deleted or sent."""
MAX_DRAFTS: Final = 200
"""Drafts of a session."""
MAX_QUOTED_LINES: Final = 200
MAX_QUOTED_CHARACTERS: Final = 20_000

DiffSide = Literal["old", "new"]
CommentChange = Literal["added", "updated", "deleted", "sent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRange:
    """Lines of a file in a diff, numbered as in the file before (`old`) or after the change (`new`)."""

    path: str
    side: DiffSide
    start: int
    end: int

    @property
    def label(self) -> str:
        lines = f"line {self.start}" if self.start == self.end else f"lines {self.start}-{self.end}"
        return f"{lines} before the change" if self.side == "old" else lines


@dataclass(frozen=True, slots=True, kw_only=True)
class NewComment:
    turn_id: str | None
    tree: str
    """The project's id, or `SCRATCH_TREE`."""
    lines: LineRange
    code: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    id: str
    session_id: str
    author_id: str
    author_name: str | None
    turn_id: str | None
    """The turn whose diff has the lines. None: they are in the diff since the session started."""
    tree: str
    lines: LineRange
    code: str
    """The lines, as they were when the comment was added."""
    body: str
    sent_event_id: str | None
    sent_at: datetime | None
    created_at: datetime
    updated_at: datetime


class CommentSent(Conflict):
    """The comment is part of a message in the log, which cannot change."""

    def __init__(self, comment_id: str) -> None:
        super().__init__(
            f"The comment {comment_id!r} was already sent, so it cannot be changed.",
            help_text="Send a message to the session, or add another comment.",
        )


class TooManyDrafts(Conflict):
    def __init__(self) -> None:
        super().__init__(
            f"The session has {MAX_DRAFTS} comments that were not sent, and cannot have more.",
            help_text="Send them, or delete those that you do not need.",
        )


def check_author(principal: Principal, comment: Comment) -> None:
    """Raise `Forbidden` unless the principal wrote the comment."""
    if comment.author_id != principal.id:
        raise Forbidden(
            f"The comment {comment.id!r} is a draft of {comment.author_name or 'another member'}, and only its author "
            "can edit, delete or send it.",
            help_text="Add a comment of your own.",
        )


def build_message(comments: Sequence[Comment]) -> JsonObject:
    """Build the body of the message with these comments, in the order of files and lines."""
    ordered = sorted(comments, key=lambda one: (one.tree, one.lines.path, one.lines.start, one.created_at, one.id))
    several = len({one.tree for one in comments}) > 1
    heading = "1 comment on your changes:" if len(comments) == 1 else f"{len(comments)} comments on your changes:"
    parts = [_describe(one, with_tree=several) for one in ordered]
    return {"content": [events.text_block("\n\n".join([heading, *parts]))]}


def _describe(comment: Comment, *, with_tree: bool) -> str:
    fence = "```"
    while fence in comment.code:
        fence += "`"
    project = f" (project {comment.tree})" if with_tree else ""
    return f"{comment.lines.path}, {comment.lines.label}{project}:\n{fence}\n{comment.code}\n{fence}\n{comment.body}"


class CommentReads(Protocol):
    async def comment(self, principal: Principal, session_id: str, comment_id: str) -> Comment: ...
    async def comments(
        self,
        principal: Principal,
        session_id: str,
        *,
        limit: int,
        after: tuple[datetime, str] | None,
        is_sent: bool | None = None,
    ) -> Sequence[Comment]:
        """Return the comments of a session, the oldest first."""


class CommentUnit(Protocol):
    async def add_comment(self, principal: Principal, session_id: str, comment: NewComment) -> Comment: ...
    async def update_comment(
        self, principal: Principal, session_id: str, comment_id: str, change: Callable[[Comment], str]
    ) -> Comment:
        """Replace the text of a draft."""

    async def delete_comment(self, principal: Principal, session_id: str, comment_id: str) -> None:
        """Delete a draft. Repeating it has no effect."""

    async def lock_drafts(
        self, principal: Principal, session_id: str, comment_ids: Sequence[str] | None
    ) -> Sequence[Comment]:
        """Return the drafts to send, locked until the commit: those of the principal, or those of the list. Comments
        of the list that were already sent are omitted.
        """

    async def mark_comments_sent(
        self, principal: Principal, session_id: str, drafts: Sequence[Comment], position: Position
    ) -> Sequence[Comment]:
        """Record the message with these comments, in the transaction that adds it to the log."""


class CommentNotFound(NotFound):
    def __init__(self, comment_id: str) -> None:
        super().__init__("comment", comment_id)
