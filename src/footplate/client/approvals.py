"""Client methods for what waits for a person, across all sessions: approvals, questions, the inbox and notifications of
it; and for comments on lines of a diff, which people send to an agent.
"""

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from footplate.client.pagination import Pages, drop_none
from footplate.client.response_models import Approval, Deleted, Event, Question, ResponseModel
from footplate.client.transport import Transport

_NOTIFICATION_SETTINGS = "/v1/notification_settings"
_PUSH_SUBSCRIPTIONS = "/v1/push_subscriptions"

Reply: TypeAlias = Mapping[str, str | list[str]]
InboxView: TypeAlias = Literal["needs_you", "mine", "snoozed", "all"]
InboxKind: TypeAlias = Literal["approval", "question", "failure", "merge_conflict"]


class InboxSession(ResponseModel):
    id: str
    title: str | None = None
    project_id: str | None = None
    project_ids: Sequence[str] = ()
    agent_name: str | None = None
    parent_session_id: str | None = None


class InboxAssignee(ResponseModel):
    id: str
    name: str | None = None


class InboxFailure(ResponseModel):
    code: str
    title: str
    message: str
    turn_id: str


class InboxMergeConflict(ResponseModel):
    branch: str | None = None
    message: str = ""
    files: Sequence[dict[str, Any]] = ()


class InboxItem(ResponseModel):
    """Something that waits for a person: a pending call or question, a failed turn, or a merge conflict."""

    id: str
    kind: InboxKind
    session: InboxSession
    thread_id: str | None = None
    turn_id: str | None = None
    turn_number: int | None = None
    title: str
    created_at: datetime
    assignee: InboxAssignee | None = None
    snoozed_until: datetime | None = None
    approval: Approval | None = None
    question: Question | None = None
    failure: InboxFailure | None = None
    merge_conflict: InboxMergeConflict | None = None


class InboxCounts(ResponseModel):
    needs_you: int
    mine: int
    snoozed: int


class DismissedItem(ResponseModel):
    id: str


class CommentAuthor(ResponseModel):
    id: str
    name: str | None = None


class SessionComment(ResponseModel):
    """A comment on lines of a session's diff. Without `sent_event_id`, it is a draft."""

    id: str
    session_id: str
    author: CommentAuthor
    turn_id: str | None = None
    project_id: str | None = None
    path: str
    side: Literal["old", "new"]
    start_line: int
    end_line: int
    code: str
    """The lines, as they were when the comment was added."""
    body: str
    sent_event_id: str | None = None
    sent_at: datetime | None = None
    created_at: datetime
    updated_at: datetime


class SentComments(ResponseModel):
    """The comments that a request sent, and their message. Both are empty if all were sent before."""

    data: list[Event]
    comments: list[SessionComment]


class DeletedComment(ResponseModel):
    id: str


class Approvals:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, limit: int | None = None, session_id: str | None = None) -> Pages[Approval]:
        """Lists pending approvals, oldest first."""
        return Pages(self._transport, "/v1/approvals", Approval, {"limit": limit, "session_id": session_id})

    async def retrieve(self, event_id: str) -> Approval:
        return Approval.model_validate(await self._transport.get(f"/v1/approvals/{event_id}"))

    async def allow(
        self,
        approval: Approval,
        *,
        updated_input: Mapping[str, Any] | None = None,
        session_rule: str | None = None,
    ) -> Event:
        """Allows the call. `updated_input` replaces its input; `session_rule` also allows later calls that match it."""
        return await self._send_decision(approval, "allow", updated_input=updated_input, session_rule=session_rule)

    async def deny(self, approval: Approval, message: str | None = None) -> Event:
        return await self._send_decision(approval, "deny", deny_message=message)

    async def _send_decision(self, approval: Approval, result: Literal["allow", "deny"], **fields: Any) -> Event:
        decision = {
            "type": "user.tool_confirmation",
            "tool_use_id": approval.id,
            "result": result,
            **drop_none(**fields),
        }
        response = await self._transport.post(f"/v1/sessions/{approval.session_id}/events", {"events": [decision]})
        return Event.model_validate(response["data"][0])


class Questions:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, limit: int | None = None, session_id: str | None = None) -> Pages[Question]:
        """Lists pending questions, oldest first."""
        return Pages(self._transport, "/v1/questions", Question, {"limit": limit, "session_id": session_id})

    async def retrieve(self, event_id: str) -> Question:
        return Question.model_validate(await self._transport.get(f"/v1/questions/{event_id}"))

    async def send_reply(self, event_id: str, reply: Reply) -> Event:
        """Answers a question. `reply` has, for each question's text, a label, a list of labels or a free text."""
        response = await self._transport.post(f"/v1/questions/{event_id}/answer", {"answers": {**reply}})
        return Event.model_validate(response["data"][0])


class Inbox:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        view: InboxView = "needs_you",
        kind: InboxKind | None = None,
        project_id: str | None = None,
        limit: int | None = None,
    ) -> Pages[InboxItem]:
        """Lists what waits for a person, oldest first."""
        params = {"view": view, "kind": kind, "project_id": project_id, "limit": limit}
        return Pages(self._transport, "/v1/inbox", InboxItem, params)

    async def retrieve(self, item_id: str) -> InboxItem:
        return InboxItem.model_validate(await self._transport.get(f"/v1/inbox/{item_id}"))

    async def counts(self) -> InboxCounts:
        return InboxCounts.model_validate(await self._transport.get("/v1/inbox/counts"))

    async def assign(self, item_id: str, member_id: str | None) -> InboxItem:
        """Assigns the item to a member, or to nobody."""
        return await self._update(item_id, {"assignee_id": member_id})

    async def snooze(self, item_id: str, until: datetime | None) -> InboxItem:
        """Hides the item from everyone until a time. None: it is shown again."""
        return await self._update(item_id, {"snoozed_until": None if until is None else until.isoformat()})

    async def dismiss(self, item_id: str) -> DismissedItem:
        """Dismisses a failure or a merge conflict for everyone."""
        return DismissedItem.model_validate(await self._transport.post(f"/v1/inbox/{item_id}/dismiss"))

    async def _update(self, item_id: str, fields: Mapping[str, Any]) -> InboxItem:
        return InboxItem.model_validate(await self._transport.post(f"/v1/inbox/{item_id}", fields))


class Comments:
    """Comments on lines of a session's diff."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def add(
        self, session_id: str, *, path: str, start_line: int, end_line: int | None = None, body: str, **fields: Any
    ) -> SessionComment:
        """Adds a draft. Pass `turn_id`, `side` (`old` or `new`) and `project_id` as keywords."""
        lines = {"start_line": start_line, "end_line": start_line if end_line is None else end_line}
        comment = {"path": path, **lines, "body": body, **drop_none(**fields)}
        return SessionComment.model_validate(await self._transport.post(_comments_path(session_id), comment))

    def list(self, session_id: str, *, sent: bool | None = None, limit: int | None = None) -> Pages[SessionComment]:
        """Lists the comments of a session, oldest first. `sent`: only those that were sent, or only drafts."""
        return Pages(self._transport, _comments_path(session_id), SessionComment, {"sent": sent, "limit": limit})

    async def retrieve(self, session_id: str, comment_id: str) -> SessionComment:
        return SessionComment.model_validate(await self._transport.get(f"{_comments_path(session_id)}/{comment_id}"))

    async def update(self, session_id: str, comment_id: str, body: str) -> SessionComment:
        """Replaces the text of a draft."""
        path = f"{_comments_path(session_id)}/{comment_id}"
        return SessionComment.model_validate(await self._transport.post(path, {"body": body}))

    async def delete(self, session_id: str, comment_id: str) -> DeletedComment:
        path = f"{_comments_path(session_id)}/{comment_id}"
        return DeletedComment.model_validate(await self._transport.delete(path))

    async def send(
        self, session_id: str, comment_ids: Sequence[str] | None = None, *, when_busy: str | None = None
    ) -> SentComments:
        """Sends drafts to the agent in one message: yours, or those of the list. Each comment is sent once."""
        body = drop_none(comment_ids=None if comment_ids is None else [*comment_ids], when_busy=when_busy)
        return SentComments.model_validate(await self._transport.post(f"{_comments_path(session_id)}/send", body))


def _comments_path(session_id: str) -> str:
    return f"/v1/sessions/{session_id}/comments"


class QuietHours(ResponseModel):
    start: str
    end: str
    timezone: str


class NotificationSettings(ResponseModel):
    enabled: bool
    quiet_hours: QuietHours | None = None
    public_key: str
    """The key with which browsers subscribe."""


class PushSubscription(ResponseModel):
    """A browser in which the caller receives notifications."""

    id: str
    endpoint: str
    user_agent: str = ""
    state: Literal["active", "signed_out", "failing", "disabled"]
    problem: str | None = None
    """The error of the last attempt, if it failed."""
    created_at: datetime
    last_success_at: datetime | None = None


class NotificationTest(ResponseModel):
    id: str


class Notifications:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def settings(self) -> NotificationSettings:
        return NotificationSettings.model_validate(await self._transport.get(_NOTIFICATION_SETTINGS))

    async def update_settings(self, **fields: Any) -> NotificationSettings:
        """Changes `enabled` or `quiet_hours`: `start`, `end` and `timezone`, or None for none."""
        return NotificationSettings.model_validate(await self._transport.post(_NOTIFICATION_SETTINGS, fields))

    async def list(self) -> builtins.list[PushSubscription]:
        found = await self._transport.get(_PUSH_SUBSCRIPTIONS)
        return [PushSubscription.model_validate(each) for each in found["data"]]

    async def subscribe(self, endpoint: str, *, p256dh: str, auth: str) -> PushSubscription:
        """Subscribes a browser, with what its `PushSubscription` has."""
        body = {"endpoint": endpoint, "keys": {"p256dh": p256dh, "auth": auth}}
        return PushSubscription.model_validate(await self._transport.post(_PUSH_SUBSCRIPTIONS, body))

    async def delete(self, subscription_id: str) -> Deleted:
        return Deleted.model_validate(await self._transport.delete(f"{_PUSH_SUBSCRIPTIONS}/{subscription_id}"))

    async def test(self, subscription_id: str) -> NotificationTest:
        """Sends a notification that only tests the browser."""
        return NotificationTest.model_validate(
            await self._transport.post(f"{_PUSH_SUBSCRIPTIONS}/{subscription_id}/test")
        )
