"""Data types for policy replay, which evaluates proposed permission rules against past tool calls.

The calls come from the audit trail. Each call belongs to a session, whose current rules are also loaded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.policy.permissions import Layer, PermissionOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCall:
    id: str
    """The id of the audit entry that records the call."""
    created_at: datetime
    session_id: str
    turn_id: str | None
    event_id: str
    original_outcome: PermissionOutcome
    name: str
    server: str | None = None
    """The MCP server of the tool."""
    input: JsonObject | None = None
    """None: its session was deleted or archived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRules:
    """The rules that currently apply to a session. The agent's own rules are in its definition."""

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
        """Return calls, newest first. `after` is the position of the last one seen."""

    async def rules_by_session(self, principal: Principal, session_ids: Sequence[str]) -> Mapping[str, SessionRules]:
        """Return the rules of each session that exists."""

    async def rules_of_new_session(
        self, principal: Principal, agent: JsonObject, project_ids: Sequence[str]
    ) -> SessionRules:
        """Return the rules that would apply to a new session of this agent with these projects."""
