"""Wire models of the audit trail: list filters, entries and the result of a verification."""

from typing import Annotated, Literal

from pydantic import Field

from footplate.api.wire.agent_and_environment_queries import PageSize
from footplate.api.wire.request_base import Id, Parameters, Text, UtcTime, timestamp
from footplate.domain.audit import AuditEntry, AuditVerification
from footplate.domain.json import JsonObject


class ListAudit(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    order: Literal["asc", "desc"] = "desc"
    kind: Literal["decision", "answer", "policy", "hook", "change", "refusal"] | None = None
    session_id: Id | None = None
    outcome: Literal["allow", "ask", "deny", "edit", "block", "none", "failed"] | None = None
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
        "outcome": entry.outcome,
        "tool": entry.tool,
        "layer": entry.layer,
        "input_hash": entry.input_hash,
        "content": entry.content,
        "content_hash": entry.content_hash,
    }


def serialize_verification(found: AuditVerification) -> JsonObject:
    return {
        "type": "audit_verification",
        "entries": found.entries,
        "batches": found.batches,
        "unsealed": found.unsealed,
        "head": found.head,
        "faults": [*found.faults],
    }
