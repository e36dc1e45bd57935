"""Wire models of approvals: tool calls that wait for a person's decision. The decision is sent as an event of the
session.
"""

from footplate.api.wire.agent_and_environment_queries import PageSize
from footplate.api.wire.request_base import Id, Parameters, Text, optional_timestamp, timestamp
from footplate.domain.json import JsonObject
from footplate.domain.policy.approvals import Approval
from footplate.domain.sessions.threads import THREAD_ID
from footplate.domain.text.approval_display import describe_call


class ListApprovals(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    session_id: Id | None = None


def serialize_approval(approval: Approval, *, max_displayed_chars: int | None = None) -> JsonObject:
    body = approval.body
    return {
        "id": approval.id,
        "type": "approval",
        "status": approval.status,
        "session_id": approval.session_id,
        "session_title": approval.title,
        "turn_id": approval.turn_id,
        "session_thread_id": body.get(THREAD_ID),
        "agent_name": body.get("agent_name"),
        "name": body.get("name"),
        "mcp_server_name": body.get("mcp_server_name"),
        "input": body.get("input"),
        "display": _serialize_display(body, max_displayed_chars) if body else None,
        "permission": body.get("permission"),
        "created_at": timestamp(approval.created_at),
        "expires_at": optional_timestamp(approval.expires_at),
        "closed_at": optional_timestamp(approval.closed_at),
        "answered_by": approval.principal,
        "edited_input": approval.edited_input,
        "edited_by": approval.edited_by,
    }


def _serialize_display(body: JsonObject, max_chars: int | None) -> JsonObject:
    shown = describe_call(body, max_characters=max_chars)
    return {
        "name": shown.name,
        "agent_name": shown.agent_name,
        "reason": shown.reason,
        "input": [{"name": field.name, "kind": field.kind, "text": field.text} for field in shown.input],
        "whole": shown.whole,
    }
