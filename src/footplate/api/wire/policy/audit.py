"""Wire models of the audit trail: list filters, entries and the result of a verification."""

from typing import Annotated, Final, Literal

from pydantic import Field

from footplate.api.wire.agent_and_environment_queries import PageSize
from footplate.api.wire.request_base import Id, Parameters, Text, UtcTime, timestamp
from footplate.domain.audit import AuditEntry, AuditVerification
from footplate.domain.json import JsonObject
from footplate.domain.text.approval_display import call_label

_MAX_SUMMARY_CHARACTERS: Final = 200


class ListAudit(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    order: Literal["asc", "desc"] = "desc"
    kind: (
        Literal["decision", "answer", "policy", "hook", "change", "refusal", "error", "terminal", "sign_in"] | None
    ) = None
    session_id: Id | None = None
    outcome: Literal["allow", "ask", "deny", "edit", "block", "none", "failed", "retried"] | None = None
    tool: Text | None = None
    member: Text | None = None
    """The id or the name of a member."""
    answered_by: Text | None = None
    created_at_gte: Annotated[UtcTime | None, Field(alias="created_at[gte]")] = None
    created_at_lte: Annotated[UtcTime | None, Field(alias="created_at[lte]")] = None


class VerifyAudit(Parameters):
    head: Annotated[str | None, Field(pattern="^[0-9a-f]{64}$")] = None
    """A head hash that you saved earlier. If the chain no longer contains it, a fault is returned."""


def serialize_audit_entry(entry: AuditEntry) -> JsonObject:
    assert entry.created_at is not None
    return {
        "id": entry.id,
        "type": "audit_entry",
        "kind": entry.kind,
        "created_at": timestamp(entry.created_at),
        "session_id": entry.session,
        "turn_id": entry.turn,
        "event_id": entry.event,
        "principal": entry.principal,
        "principal_name": entry.principal_name,
        "session_title": entry.session_title,
        "outcome": entry.outcome,
        "tool": entry.tool,
        "layer": entry.layer,
        "input_summary": _summarize_input(entry),
        "input_hash": entry.input_hash,
        "content": entry.content,
        "content_hash": entry.content_hash,
    }


def _summarize_input(entry: AuditEntry) -> str | None:
    """Return the main argument of the call, or None if its input is not stored."""
    if entry.call_input is None:
        return None
    label = call_label(entry.tool or "", entry.call_input)
    return label if len(label) <= _MAX_SUMMARY_CHARACTERS else f"{label[: _MAX_SUMMARY_CHARACTERS - 1]}…"


def serialize_verification(found: AuditVerification) -> JsonObject:
    return {
        "type": "audit_verification",
        "entries": found.entries,
        "batches": found.batches,
        "unsealed": found.unsealed,
        "head": found.head,
        "faults": [*found.faults],
    }
