"""The audit trail: the gate's decisions, people's decisions and policy changes, in a tamper-evident hash chain.

An entry holds the hash of its content, and the hash of a call's input instead of the input. Content can therefore be
erased on request without breaking the chain. Entries are sealed in batches: the hash of a batch covers its entries, in
order, and the hash of the previous batch.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Protocol

from footplate.domain import events as ev
from footplate.domain import ids
from footplate.domain.events import Event
from footplate.domain.json import Json, JsonObject, clean, clean_object
from footplate.domain.pages import Page
from footplate.domain.principals import Principal

ID: Final = "audt"
LONGEST_PATH: Final = 500
"""Characters of a refused request's path that are recorded."""
FIRST: Final = "0" * 64
"""The hash that stands for the batch before the first one."""


def hashed(value: Json) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    kind: str
    """`decision`: the gate decided on a call. `answer`: a person or a timeout decided on a call. `policy`: an
    organisation's rules were written. `hook`: a hook ran. `change`: a setting that determines which rules apply was
    changed. `refusal`: a request was refused because the API key lacks a role."""
    id: str = field(default_factory=lambda: ids.new_id(ID))
    session: str | None = None
    turn: str | None = None
    event: str | None = None
    principal: str | None = None
    outcome: str | None = None
    tool: str | None = None
    layer: str | None = None
    input_hash: str | None = None
    content: JsonObject | None = None
    """None: erased."""
    content_hash: str
    number: int = 0
    created_at: datetime | None = None

    def record(self, organisation: str) -> str:
        """Return the hash of the entry, from which the batch's hash is computed."""
        assert self.created_at is not None
        return hashed(
            [
                *(self.id, self.number, organisation, self.created_at.astimezone(UTC).isoformat(), self.kind),
                *(self.session, self.turn, self.event, self.principal, self.outcome, self.tool, self.layer),
                *(self.input_hash, self.content_hash),
            ]
        )

    @property
    def is_whole(self) -> bool:
        """Whether the content matches its hash, or was erased."""
        return self.content is None or hashed(self.content) == self.content_hash


def seal(previous: str, records: Sequence[str]) -> str:
    return hashed([previous, *records])


def decisions(new_events: Sequence[Event]) -> list[AuditEntry]:
    """Build an entry for each tool call in these events.

    The bodies are cleaned as in the log, because a command may contain characters that the database rejects.
    """
    found = []
    for given in new_events:
        if given.type not in ev.TOOL_USES:
            continue
        event = replace(given, body=clean_object(given.body))
        permission = event.body.get("permission")
        said: Mapping[str, Json] = permission if isinstance(permission, dict) else {}
        content: JsonObject = {name: said[name] for name in ("rule", "reason", "hook") if name in said}
        found.append(
            AuditEntry(
                kind="decision",
                event=event.id,
                outcome=str(event.body.get("evaluated_permission")),
                tool=_tool(event),
                layer=str(said["layer"]) if said.get("layer") is not None else None,
                input_hash=hashed(event.body.get("input")),
                content=content,
                content_hash=hashed(content),
            )
        )
    return found


def _tool(event: Event) -> str:
    server = event.body.get("mcp_server_name")
    return f"{server}/{event.body.get('name')}" if server is not None else str(event.body.get("name"))


def answer(word: Event) -> AuditEntry:
    """Build the entry for a person's decision on a call."""
    extras = ("deny_message", "session_rule")
    content: JsonObject = {name: word.body[name] for name in extras if name in word.body}
    changed = word.body.get("updated_input")
    return AuditEntry(
        kind="answer",
        event=str(word.body.get("tool_use_id")),
        outcome=str(word.body.get("result")),
        input_hash=None if changed is None else hashed(changed),
        content=content,
        content_hash=hashed(content),
    )


def edited(event_id: str, given: JsonObject) -> AuditEntry:
    """Build the entry for a person's edit to the input of a call, which another person has to approve."""
    return AuditEntry(
        kind="answer", event=event_id, outcome="edit", input_hash=hashed(given), content={}, content_hash=hashed({})
    )


def hook(content: JsonObject, *, outcome: str, tool: str | None, layer: str, given: Json) -> AuditEntry:
    """Build the entry for a hook that ran. `tool_input` is the input of the call that the hook was asked about."""
    content, given = clean_object(content), clean(given)
    return AuditEntry(
        kind="hook",
        outcome=outcome,
        tool=tool,
        layer=layer,
        input_hash=None if given is None else hashed(given),
        content=content,
        content_hash=hashed(content),
    )


def policy(permissions: JsonObject, approvals: JsonObject) -> AuditEntry:
    """Build the entry for a new policy of an organisation."""
    content: JsonObject = {"permissions": permissions, "approvals": approvals}
    return AuditEntry(kind="policy", layer="organisation", content=content, content_hash=hashed(content))


def change(action: str, item_id: str, details: JsonObject | None = None) -> AuditEntry:
    """Build the entry for a change that determines which rules apply. `action` is, for example, `project.archive`."""
    content = clean_object({"action": action, "id": item_id, **(details or {})})
    layer = action.partition(".")[0]
    session = item_id if layer == "session" else None
    return AuditEntry(kind="change", layer=layer, session=session, content=content, content_hash=hashed(content))


def refusal(method: str, path: str, message: str) -> AuditEntry:
    """Build the entry for a request that the API refused with 403."""
    content = clean_object({"method": method, "path": path[:LONGEST_PATH], "message": message})
    return AuditEntry(kind="refusal", outcome="deny", content=content, content_hash=hashed(content))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    kind: str | None = None
    session: str | None = None
    outcome: str | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Verified:
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
    async def verify_audit(self, principal: Principal, head: str | None = None) -> Verified:
        """Read the whole trail and recompute every hash. `head`: a saved hash that must still be in the chain."""
