"""What the gate decided and what people said of it, and the chain by which a change of it is found. Pure.

Each entry has the hash of its content, and never the input of a call, only its hash: content can be erased on request,
and the chain stays whole. Entries are sealed in batches: a batch's hash is that of its entries, in order, and of the
batch before.
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
"""Characters of a refused request's path."""
FIRST: Final = "0" * 64
"""What the first batch goes on from."""


def hashed(value: Json) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    kind: str
    """`decision`: the gate's, on a call. `answer`: a person's, or the clock's. `policy`: rules were written. `hook`:
    one was asked. `change`: something was changed that decides which rules apply. `refusal`: a request was refused for
    want of a role."""
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
        """What a batch's hash is made of."""
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
        """Its content is what its hash says, or was erased."""
        return self.content is None or hashed(self.content) == self.content_hash


def seal(previous: str, records: Sequence[str]) -> str:
    return hashed([previous, *records])


def decisions(new_events: Sequence[Event]) -> list[AuditEntry]:
    """One for each call that these tell of, as the log has it: a command may hold what no column takes."""
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
    """A person's, on a call."""
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
    """A person wrote another input for a call; another person has to approve it."""
    return AuditEntry(
        kind="answer", event=event_id, outcome="edit", input_hash=hashed(given), content={}, content_hash=hashed({})
    )


def hook(content: JsonObject, *, outcome: str, tool: str | None, layer: str, given: Json) -> AuditEntry:
    """One that was asked. `given`: the input of the call that it was asked about."""
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
    """An organisation's, as it is from then on."""
    content: JsonObject = {"permissions": permissions, "approvals": approvals}
    return AuditEntry(kind="policy", layer="organisation", content=content, content_hash=hashed(content))


def change(action: str, item_id: str, details: JsonObject | None = None) -> AuditEntry:
    """`action`: as in `project.archive`."""
    content = clean_object({"action": action, "id": item_id, **(details or {})})
    layer = action.partition(".")[0]
    session = item_id if layer == "session" else None
    return AuditEntry(kind="change", layer=layer, session=session, content=content, content_hash=hashed(content))


def refusal(method: str, path: str, message: str) -> AuditEntry:
    """Of a request that the API answered with 403."""
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
    """The hash of the last batch: whoever keeps it elsewhere can tell that nothing was cut off at the end."""
    faults: Sequence[str]


class AuditUnit(Protocol):
    """Part of a transaction of the api's."""

    async def record(self, principal: Principal, entry: AuditEntry) -> None:
        """Adds an entry to the trail of the principal's organisation."""


class AuditReads(Protocol):
    async def audit(self, principal: Principal, page: Page, where: AuditFilter) -> Sequence[AuditEntry]: ...
    async def verify_audit(self, principal: Principal, head: str | None = None) -> Verified:
        """All of it is read, and every hash made again. `head`: one that was saved elsewhere must still be there."""
