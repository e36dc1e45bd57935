"""The audit trail: decisions of the gate and of people, policy changes and errors, in a tamper-evident hash chain.

The chain covers the hash of an entry's content, not the content itself, which is stored beside the hash. Content can
therefore be erased without breaking the chain. The input of a tool call is recorded only as a hash. Entries are sealed
in batches: the hash of a batch covers its entries and the hash of the previous batch.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Literal, Protocol

from footplate.domain import ids
from footplate.domain.json import Json, JsonObject, as_object, clean, clean_object
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event

ID_PREFIX: Final = "audt"
MAX_PATH_CHARACTERS: Final = 500
"""Characters of a refused request's path that are recorded."""
RESCHEDULING: Final = "rescheduling"
GENESIS_HASH: Final = "0" * 64
"""The hash that stands for the batch before the first one."""


def hash_json(value: Json) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    kind: str
    """`decision`: the gate decided on a call. `answer`: a person or a timeout decided on a call. `policy`: an
    organisation's rules were written. `hook`: a hook ran. `change`: a setting that determines which rules apply was
    changed. `refusal`: a request was refused because the API key lacks a role. `error`: a turn or one of its attempts
    failed. `terminal`: a person opened a terminal, or attached to it to type. `sign_in`: a person signed in or out, or
    an attempt to sign in failed."""
    id: str = field(default_factory=lambda: ids.new_id(ID_PREFIX))
    session: str | None = None
    turn: str | None = None
    event: str | None = None
    principal: str | None = None
    """Who made the decision, the change or the request. For a decision of the gate and for a hook: the author of the
    turn's message."""
    outcome: str | None = None
    tool: str | None = None
    layer: str | None = None
    input_hash: str | None = None
    content: JsonObject | None = None
    """None: erased."""
    content_hash: str
    number: int = 0
    created_at: datetime | None = None
    principal_name: str | None = None
    """This field and the following ones are looked up when the entry is read. They are not part of its hash."""
    session_title: str | None = None
    call_input: JsonObject | None = None
    """The input of the call. None: the entry is not about a call, or the input is no longer stored, because the session
    was deleted or its log was archived."""

    def compute_hash(self, organisation: str) -> str:
        """Return the hash of the entry, from which the batch's hash is computed."""
        assert self.created_at is not None
        return hash_json(
            [
                *(self.id, self.number, organisation, self.created_at.astimezone(UTC).isoformat(), self.kind),
                *(self.session, self.turn, self.event, self.principal, self.outcome, self.tool, self.layer),
                *(self.input_hash, self.content_hash),
            ]
        )

    @property
    def is_intact(self) -> bool:
        """Whether the content matches its hash, or was erased."""
        return self.content is None or hash_json(self.content) == self.content_hash


def seal_batch(previous: str, records: Sequence[str]) -> str:
    return hash_json([previous, *records])


def build_decision_entries(new_events: Sequence[Event], *, principal: str | None = None) -> list[AuditEntry]:
    """Build an entry for each tool call in these events, and for each setup command, on which the gate decides as on a
    call. `principal` is the author of the turn's message.

    The bodies are cleaned as in the log, because a command may contain characters that the database rejects.
    """
    entries = []
    for new_event in new_events:
        is_setup = new_event.type == ev.SETUP_STARTED
        if new_event.type not in ev.TOOL_USES and not is_setup:
            continue
        event = replace(new_event, body=clean_object(new_event.body))
        permission = event.body.get("permission")
        permission_fields: Mapping[str, Json] = permission if isinstance(permission, dict) else {}
        content: JsonObject = {
            name: permission_fields[name] for name in ("rule", "reason", "hook") if name in permission_fields
        }
        entries.append(
            AuditEntry(
                kind="decision",
                event=event.id,
                principal=principal,
                outcome=str(event.body.get("evaluated_permission")),
                tool=ev.SETUP_TOOL if is_setup else _tool_name(event),
                layer=str(permission_fields["layer"]) if permission_fields.get("layer") is not None else None,
                input_hash=hash_json(ev.setup_input(event.body) if is_setup else event.body.get("input")),
                content=content,
                content_hash=hash_json(content),
            )
        )
    return entries


def _tool_name(event: Event) -> str:
    server = event.body.get("mcp_server_name")
    return f"{server}/{event.body.get('name')}" if server is not None else str(event.body.get("name"))


def build_approval_entry(decision: Event) -> AuditEntry:
    """Build the entry for a person's decision on a call."""
    extras = ("deny_message", "session_rule")
    content: JsonObject = {name: decision.body[name] for name in extras if name in decision.body}
    updated_input = decision.body.get("updated_input")
    return AuditEntry(
        kind="answer",
        event=str(decision.body.get("tool_use_id")),
        outcome=str(decision.body.get("result")),
        input_hash=None if updated_input is None else hash_json(updated_input),
        content=content,
        content_hash=hash_json(content),
    )


def build_edit_entry(event_id: str, edited_input: JsonObject) -> AuditEntry:
    """Build the entry for a person's edit to the input of a call, which another person has to approve."""
    return AuditEntry(
        kind="answer",
        event=event_id,
        outcome="edit",
        input_hash=hash_json(edited_input),
        content={},
        content_hash=hash_json({}),
    )


def build_hook_entry(
    content: JsonObject,
    *,
    outcome: str,
    tool: str | None,
    layer: str,
    tool_input: Json,
    principal: str | None = None,
) -> AuditEntry:
    """Build the entry for a hook that ran. `tool_input` is the input of the call that the hook was asked about."""
    content, tool_input = clean_object(content), clean(tool_input)
    return AuditEntry(
        kind="hook",
        principal=principal,
        outcome=outcome,
        tool=tool,
        layer=layer,
        input_hash=None if tool_input is None else hash_json(tool_input),
        content=content,
        content_hash=hash_json(content),
    )


def build_policy_entry(permissions: JsonObject, approvals: JsonObject) -> AuditEntry:
    """Build the entry for a new policy of an organisation."""
    content: JsonObject = {"permissions": permissions, "approvals": approvals}
    return AuditEntry(kind="policy", layer="organisation", content=content, content_hash=hash_json(content))


def build_change_entry(
    action: str, item_id: str, details: JsonObject | None = None, *, session: str | None = None
) -> AuditEntry:
    """Build the entry for a change that determines which rules apply. `action` is, for example, `project.archive`.

    `session` is the session that the item belongs to: only those who can see it see the entry.
    """
    content = clean_object({"action": action, "id": item_id, **(details or {})})
    layer = action.partition(".")[0]
    session = item_id if layer == "session" else session
    return AuditEntry(kind="change", layer=layer, session=session, content=content, content_hash=hash_json(content))


def build_terminal_entry(action: Literal["open", "write"], session_id: str, details: JsonObject) -> AuditEntry:
    """Build the entry for a person who opens the terminal of a session, or attaches to it for writing."""
    content = clean_object({"action": f"terminal.{action}", "id": session_id, **details})
    return AuditEntry(kind="terminal", session=session_id, content=content, content_hash=hash_json(content))


def build_sign_in_entry(action: str, item_id: str, details: JsonObject, *, is_failure: bool = False) -> AuditEntry:
    """Build the entry for a person who signs in or out, or tried to."""
    content = clean_object({"action": action, "id": item_id, **details})
    outcome = "deny" if is_failure else "allow"
    return AuditEntry(kind="sign_in", outcome=outcome, content=content, content_hash=hash_json(content))


def build_refusal_entry(method: str, path: str, message: str, *, session_id: str | None = None) -> AuditEntry:
    """Build the entry for a request that the API refused with 403."""
    content = clean_object({"method": method, "path": path[:MAX_PATH_CHARACTERS], "message": message})
    return AuditEntry(
        kind="refusal", session=session_id, outcome="deny", content=content, content_hash=hash_json(content)
    )


def build_error_entry(error: Event, status: str, attempt: int) -> AuditEntry:
    """Build the entry for an error of a turn. `error` is its event, whose message is only in the session's log.

    `status` is the turn's. It is `rescheduling` if the turn has another attempt.
    """
    details = as_object(error.body.get("error"))
    content: JsonObject = {"error": str(details.get("type")), "status": status, "attempt": attempt}
    outcome = "retried" if status == RESCHEDULING else "failed"
    return AuditEntry(kind="error", event=error.id, outcome=outcome, content=content, content_hash=hash_json(content))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    kind: str | None = None
    session: str | None = None
    outcome: str | None = None
    tool: str | None = None
    decided_by: str | None = None
    """The id of the member who made the decision, the change or the request."""
    member: str | None = None
    """The id or the name of a member. Includes the decisions of the gate in turns of this member."""


@dataclass(frozen=True, slots=True)
class AuditVerification:
    entries: int
    batches: int
    unsealed: int
    head: str
    """The hash of the last batch. With a copy stored elsewhere, an operator can detect that the end of the trail was
    cut off."""
    faults: Sequence[str]


class AuditUnit(Protocol):
    """The part of the API's unit of work that writes to the audit trail."""

    async def record(self, principal: Principal, entry: AuditEntry) -> None:
        """Add an entry to the trail of the principal's organisation."""


class AuditReads(Protocol):
    async def audit(self, principal: Principal, page: Page, where: AuditFilter) -> Sequence[AuditEntry]: ...
    async def verify_audit(self, principal: Principal, head: str | None = None) -> AuditVerification:
        """Read the whole trail and recompute every hash. `head`: a saved hash that must still be in the chain."""
