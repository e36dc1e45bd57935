"""Wire models of turns, a Footplate extension of the reference API (Anthropic's managed agents). The field names are
the same as in sessions and events.
"""

from typing import Annotated

from pydantic import Field

from footplate.api.wire.request_base import Parameters, Text, optional_timestamp, timestamp
from footplate.api.wire.session.sessions import serialize_token_usage, serialize_tool_calls
from footplate.domain.json import JsonObject
from footplate.domain.sessions.turns import Turn


class ListTurns(Parameters):
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    page: Text | None = None


def serialize_result(turn: Turn) -> JsonObject:
    """Returns the result of a turn. While the turn runs, `success` is false."""
    stored = turn.result
    return {
        "success": False,
        "text": "",
        "error": None,
        "pending": [],
        "data": {},
        **{name: value for name, value in stored.items() if name not in {"commit", "commits"}},
        "session_id": turn.session_id,
        "error_message": stored.get("error"),
        "metrics": _serialize_metrics(turn),
    }


def _serialize_metrics(turn: Turn) -> JsonObject:
    duration = (turn.ended_at - turn.started_at).total_seconds() if turn.started_at and turn.ended_at else None
    return {
        "duration_seconds": duration,
        "attempts": turn.attempt,
        "retries": turn.failures,
        "handovers": turn.handovers,
        "requests": turn.usage.requests,
        "input_tokens": turn.usage.input_tokens,
        "output_tokens": turn.usage.output_tokens,
        "cost_microusd": turn.usage.cost_microusd,
    }


def serialize_turn(turn: Turn) -> JsonObject:
    return {
        "id": turn.id,
        "type": "turn",
        "session_id": turn.session_id,
        "status": turn.status.value,
        "attempt": turn.attempt,
        "input_event_id": turn.input_event_id,
        "first_seq": turn.first_seq,
        "config": turn.config,
        "usage": serialize_token_usage(turn.usage),
        "commit": turn.result.get("commit"),
        "commits": turn.result.get("commits") or {},
        "tools": {name: serialize_tool_calls(*counts) for name, counts in turn.tools.items()},
        "last_interaction_at": optional_timestamp(turn.last_interaction_at),
        "result": serialize_result(turn),
        "created_at": timestamp(turn.created_at),
        "started_at": optional_timestamp(turn.started_at),
        "ended_at": optional_timestamp(turn.ended_at),
    }
