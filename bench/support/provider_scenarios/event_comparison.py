"""Makes the events of two runs of one scenario comparable: same order and content, without ids and times."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.support.clients import Event
from footplate.domain.sessions import events

_PREVIEWS: Final = frozenset({"event_start", "event_delta"})
_SESSION: Final = re.compile(r"\bsesn_\w+")
_TIMES: Final = frozenset({"processed_at", "created_at", "updated_at", "duration_ms"})


def comparable_events(received: Sequence[Event]) -> list[Event]:
    """Replaces each event id by the position of its first occurrence, and each time by whether it is set."""
    logged = [event for event in received if event["type"] not in _PREVIEWS]
    positions: dict[str, int] = {}
    for position, event in enumerate(logged):
        positions.setdefault(event["id"], position)
    return [_comparable(event, positions) for event in logged]


def event_types(received: Sequence[Event]) -> list[str]:
    return [event["type"] for event in received if event["type"] not in _PREVIEWS]


def preview_texts(received: Sequence[Event]) -> dict[str, str]:
    """Returns the text shown by previews, by event id."""
    shown: dict[str, str] = {}
    for event in received:
        if event["type"] == "event_delta":
            shown[event["event_id"]] = shown.get(event["event_id"], "") + event["delta"]["content"]["text"]
    return shown


def _comparable(event: Event, positions: Mapping[str, int]) -> Event:
    comparable = {key: _replaced(key, value, positions) for key, value in event.items()}
    if event["type"] == events.MODEL_REQUEST_END and event["is_error"]:
        # The known usage of a broken response depends on the format: some report it first, some last.
        comparable.pop("model_usage")
    if event["type"] == events.SESSION_ERROR:
        # The message text differs between providers.
        comparable["error"] = {**event["error"], "message": bool(event["error"]["message"])}
    return comparable


def _replaced(key: str, value: Any, positions: Mapping[str, int]) -> Any:
    if key in _TIMES:
        return value is not None
    if isinstance(value, str):
        return positions[value] if value in positions else _SESSION.sub("the session", value)
    if isinstance(value, list):
        return [_replaced("", item, positions) for item in value]
    if isinstance(value, dict):
        return {name: _replaced(name, item, positions) for name, item in value.items()}
    return value
