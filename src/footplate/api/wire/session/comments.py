"""Wire models of comments on lines of a session's diff."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from footplate.api.wire.agent_and_environment_queries import PageSize
from footplate.api.wire.request_base import MAX_INTEGER, Body, Id, Parameters, Text, optional_timestamp, timestamp
from footplate.api.wire.response_models import Event, ResponseModel
from footplate.domain.files.snapshots import SCRATCH_TREE
from footplate.domain.json import JsonObject
from footplate.domain.sessions.comments import MAX_DRAFTS, MAX_QUOTED_LINES, Comment, LineRange

CommentText = Annotated[Text, StringConstraints(min_length=1, max_length=10_000, pattern=r"\S")]
LineNumber = Annotated[int, Field(ge=1, le=MAX_INTEGER)]


class CommentCreate(Body):
    """A comment on lines of a diff. The server adds the code of the lines."""

    turn_id: Annotated[
        Id | None, Field(description="The turn whose diff has the lines. Default: the diff since the session started.")
    ] = None
    project_id: Annotated[Id | None, Field(description="Required if the session has several projects.")] = None
    path: Annotated[Text, StringConstraints(min_length=1, max_length=4096)]
    side: Annotated[
        Literal["old", "new"], Field(description="Whether the lines are those before or after the change.")
    ] = "new"
    start_line: LineNumber
    end_line: LineNumber
    body: CommentText

    @model_validator(mode="after")
    def _check_lines(self) -> Self:
        if not 0 <= self.end_line - self.start_line < MAX_QUOTED_LINES:
            raise ValueError(f"`end_line` must be from `start_line` to {MAX_QUOTED_LINES - 1} lines after it")
        return self

    @property
    def lines(self) -> LineRange:
        return LineRange(path=self.path, side=self.side, start=self.start_line, end=self.end_line)


class CommentUpdate(Body):
    body: CommentText


class CommentsSend(Body):
    comment_ids: Annotated[
        list[Id] | None,
        Field(
            min_length=1,
            max_length=MAX_DRAFTS,
            description="Default: all your drafts. Those that were already sent are not sent again.",
        ),
    ] = None
    when_busy: Literal["queue", "steer", "interrupt", "reject"] = "queue"


class ListComments(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    sent: Annotated[bool | None, Field(description="Only comments that were sent, or only drafts.")] = None


class CommentAuthor(ResponseModel):
    id: str
    name: str | None


class SessionComment(ResponseModel):
    type: Literal["session_comment"]
    id: str
    session_id: str
    author: CommentAuthor
    turn_id: str | None
    project_id: str | None
    path: str
    side: Literal["old", "new"]
    start_line: int
    end_line: int
    code: str
    body: str
    sent_event_id: str | None
    sent_at: datetime | None
    created_at: datetime
    updated_at: datetime


class SentComments(ResponseModel):
    """The comments that were sent by this request, and the message. Empty: all of them were sent before."""

    data: list[Event]
    comments: list[SessionComment]


class DeletedComment(ResponseModel):
    id: str
    type: Literal["session_comment_deleted"]


def serialize_comment(comment: Comment) -> JsonObject:
    lines = comment.lines
    return {
        "type": "session_comment",
        "id": comment.id,
        "session_id": comment.session_id,
        "author": {"id": comment.author_id, "name": comment.author_name},
        "turn_id": comment.turn_id,
        "project_id": None if comment.tree == SCRATCH_TREE else comment.tree,
        "path": lines.path,
        "side": lines.side,
        "start_line": lines.start,
        "end_line": lines.end,
        "code": comment.code,
        "body": comment.body,
        "sent_event_id": comment.sent_event_id,
        "sent_at": optional_timestamp(comment.sent_at),
        "created_at": timestamp(comment.created_at),
        "updated_at": timestamp(comment.updated_at),
    }
