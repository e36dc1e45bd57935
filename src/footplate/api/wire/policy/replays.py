"""Wire models of policy replays, which evaluate proposed rules against past tool calls."""

import json
from collections import Counter
from typing import Annotated, Final, Literal

from pydantic import Field

from footplate.api.wire.policy.permissions import Permissions
from footplate.api.wire.request_base import Body, Id, JsonTime, Text, timestamp
from footplate.domain.json import Json, JsonObject
from footplate.domain.policy.permissions import PermissionOutcome
from footplate.domain.policy.policy_replay import CallFilter, StoredCall
from footplate.gate.policy_replay import ReplayResult

MAX_CALLS: Final = 2000
_MAX_SUMMARY_CHARS: Final = 500
_SUMMARY_FIELDS: Final = ("command", "file_path", "path", "url")


class ReplayRequest(Body):
    """Evaluates proposed rules against past calls. Nothing is stored and nothing runs."""

    permissions: Permissions
    layer: Annotated[
        Literal["organisation", "project", "agent", "session"],
        Field(description="The layer whose current rules are replaced by the proposed rules."),
    ] = "organisation"
    session_id: Id | None = None
    project_id: Id | None = None
    since: JsonTime | None = None
    until: JsonTime | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_CALLS, description="Maximum number of calls evaluated for one page.")] = (
        500
    )
    page: Text | None = None

    @property
    def call_filter(self) -> CallFilter:
        return CallFilter(session_id=self.session_id, project_id=self.project_id, since=self.since, until=self.until)


def serialize_replay(evaluated: list[tuple[StoredCall, ReplayResult | None]], *, next_page: str | None) -> JsonObject:
    """Builds the response. A call has no result if it can no longer be evaluated, because data was deleted."""
    known = [(call, replayed) for call, replayed in evaluated if replayed is not None]
    sums = Counter((call.original_outcome, said.decision.outcome) for call, said in known)
    outcomes: dict[str, Json] = {
        was.value: {would.value: sums[was, would] for would in PermissionOutcome} for was in PermissionOutcome
    }
    return {
        "type": "policy_replay",
        "calls": len(known),
        "gone": len(evaluated) - len(known),
        "depend_on_links": sum(said.depends_on_links for _, said in known),
        "depend_on_hooks": sum(said.hook is not None for _, said in known),
        "outcomes": outcomes,
        "oldest_at": timestamp(evaluated[-1][0].created_at) if evaluated else None,
        "data": [
            _serialize_changed_call(call, said)
            for call, said in known
            if said.decision.outcome is not call.original_outcome
        ],
        "next_page": next_page,
    }


def _serialize_changed_call(call: StoredCall, replayed: ReplayResult) -> JsonObject:
    would = replayed.decision
    return {
        "type": "changed_call",
        "event_id": call.event_id,
        "session_id": call.session_id,
        "turn_id": call.turn_id,
        "created_at": timestamp(call.created_at),
        "name": call.name,
        "mcp_server_name": call.server,
        "summary": _summarise_input(call.input or {}),
        "was": call.original_outcome.value,
        "would": would.outcome.value,
        "reason": would.reason,
        "rule": would.rule,
        "layer": would.layer.label if would.layer is not None else None,
        "depends_on_links": replayed.depends_on_links,
        "hook": replayed.hook,
    }


def _summarise_input(call_input: JsonObject) -> str:
    """Returns the command or the path. The call's event has the whole input."""
    found = next((call_input[name] for name in _SUMMARY_FIELDS if isinstance(call_input.get(name), str)), None)
    text = found if isinstance(found, str) else json.dumps(call_input, ensure_ascii=False)
    return text if len(text) <= _MAX_SUMMARY_CHARS else f"{text[:_MAX_SUMMARY_CHARS]}…"
