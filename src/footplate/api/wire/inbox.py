"""Wire models of the inbox: its query, changes of an item, and the responses."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from footplate.api.wire.agent_and_environment_queries import PageSize
from footplate.api.wire.policy.approvals import serialize_approval
from footplate.api.wire.policy.policy_response_models import Approval, Question
from footplate.api.wire.policy.questions import serialize_question
from footplate.api.wire.request_base import (
    Body,
    Id,
    Parameters,
    Text,
    UtcTime,
    optional_timestamp,
    timestamp,
)
from footplate.api.wire.response_models import ResponseModel
from footplate.domain.json import JsonObject
from footplate.domain.sessions.inbox import InboxCounts, InboxItem, InboxKind, InboxUpdate
from footplate.domain.text.visible_text import show_line

KindName = Literal["approval", "question", "failure", "merge_conflict"]


class ListInbox(Parameters):
    view: Annotated[
        Literal["needs_you", "mine", "snoozed", "all"],
        Field(
            description="`needs_you`: assigned to you or to nobody. `mine`: assigned to you. `snoozed`: those of "
            "`needs_you` that are snoozed. `all`: also what is assigned to others."
        ),
    ] = "needs_you"
    kind: KindName | None = None
    project_id: Annotated[Id | None, Field(description="Only sessions with this project.")] = None
    limit: PageSize = 20
    page: Text | None = None


class InboxItemUpdate(Body):
    """Fields that are omitted stay unchanged."""

    assignee_id: Annotated[Id | None, Field(description="The member who takes care of it. Null: nobody.")] = None
    snoozed_until: Annotated[
        UtcTime | None, Field(strict=False, description="The item is hidden until this time. Null: it is not.")
    ] = None

    def to_update(self) -> InboxUpdate:
        sent = self.model_fields_set
        return InboxUpdate(
            assignee_id=self.assignee_id,
            snoozed_until=self.snoozed_until,
            changes_assignee="assignee_id" in sent,
            changes_snooze="snoozed_until" in sent,
        )


class InboxAssignee(ResponseModel):
    id: str
    name: str


class InboxItemSession(ResponseModel):
    id: str
    title: str | None
    project_id: str | None
    project_ids: list[str]
    agent_name: str | None
    parent_session_id: str | None


class InboxFailure(ResponseModel):
    code: Literal["failed", "timed_out", "limit_reached", "step_failed"]
    title: str
    message: str
    turn_id: str


class InboxMergeConflict(ResponseModel):
    branch: str | None
    message: str
    files: list[dict[str, JsonValue]]


class InboxItemResponse(ResponseModel):
    type: Literal["inbox_item"]
    id: str
    kind: KindName
    session: InboxItemSession
    thread_id: str | None
    turn_id: str | None
    turn_number: int | None
    title: str
    created_at: datetime
    assignee: InboxAssignee | None
    snoozed_until: datetime | None
    approval: Approval | None
    question: Question | None
    failure: InboxFailure | None
    merge_conflict: InboxMergeConflict | None


class InboxCountsResponse(ResponseModel):
    type: Literal["inbox_counts"]
    needs_you: int
    mine: int
    snoozed: int


class DismissedInboxItem(ResponseModel):
    id: str
    type: Literal["inbox_item_dismissed"]


def serialize_item(item: InboxItem) -> JsonObject:
    """An approval has the whole input, escaped for display too, and the rule that asks."""
    session, asked = item.session, item.approval
    is_question = item.kind is InboxKind.QUESTION
    return {
        "type": "inbox_item",
        "id": item.id,
        "kind": item.kind.value,
        "session": {
            "id": session.id,
            "title": session.title,
            "project_id": session.project_ids[0] if session.project_ids else None,
            "project_ids": [*session.project_ids],
            "agent_name": session.agent_name,
            "parent_session_id": session.parent_id,
        },
        "thread_id": item.thread_id,
        "turn_id": item.turn_id,
        "turn_number": item.turn_number,
        "title": show_line(item.title),
        "created_at": timestamp(item.created_at),
        "assignee": None if item.assignee_id is None else {"id": item.assignee_id, "name": item.assignee_name},
        "snoozed_until": optional_timestamp(item.snoozed_until),
        "approval": None if asked is None or is_question else serialize_approval(asked),
        "question": None if asked is None or not is_question else serialize_question(asked),
        "failure": _serialize_failure(item),
        "merge_conflict": _serialize_conflict(item),
    }


def serialize_counts(counts: InboxCounts) -> JsonObject:
    return {
        "type": "inbox_counts",
        "needs_you": counts.needs_you,
        "mine": counts.mine,
        "snoozed": counts.snoozed,
    }


def _serialize_failure(item: InboxItem) -> JsonObject | None:
    failure = item.failure
    if failure is None:
        return None
    return {"code": failure.code, "title": failure.title, "message": failure.message, "turn_id": failure.turn_id}


def _serialize_conflict(item: InboxItem) -> JsonObject | None:
    conflict = item.conflict
    if conflict is None:
        return None
    return {"branch": conflict.branch, "message": conflict.message, "files": [*conflict.files]}
