"""Calls that were made, as they are stored, for whoever wants to know what other rules would have said of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from footplate.domain.json import JsonObject
from footplate.domain.permissions import Layer, Outcome
from footplate.domain.principals import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCall:
    id: str
    """Of the entry in the audit trail that tells of it."""
    created_at: datetime
    session_id: str
    turn_id: str | None
    event_id: str
    was: Outcome
    name: str
    server: str | None = None
    """The MCP server whose tool it is."""
    input: JsonObject | None = None
    """None: it is gone, with its session or to an archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRules:
    """What is in force for a session by now; its agent's rules are in its definition."""

    agent: JsonObject
    layers: Sequence[tuple[Layer, JsonObject]] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFilter:
    session_id: str | None = None
    project_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class ReplayReads(Protocol):
    async def calls(
        self, principal: Principal, where: CallFilter, *, limit: int, after: tuple[datetime, str] | None
    ) -> Sequence[StoredCall]:
        """Newest first; `after` is the last one seen."""

    async def rules_of(self, principal: Principal, session_ids: Sequence[str]) -> Mapping[str, SessionRules]:
        """Of those that there are."""
