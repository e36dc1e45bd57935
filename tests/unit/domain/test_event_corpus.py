"""Every version of every stored event still loads, and no shape changes without a new version.

`corpus/events-v1.jsonl` has bodies as the first version stored them. A file of the corpus is never edited, except to
add new types of events of its version. When the shape of a stored body changes, increase `events.VERSION` and add a
file for the new version; readers of the log must then understand both.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from footplate.domain.sessions import events
from footplate.domain.sessions.ending import EndOutcome, SessionEnd
from footplate.domain.sessions.events import Event, Position, Usage
from footplate.testing import sdk_validation

CORPUS = Path(__file__).parent / "corpus"
MOMENT = datetime(2026, 11, 1, 10, 0, tzinfo=UTC)
# Has no line in the corpus yet.
FUTURE = {events.USER_TOOL_CONFIRMATION}


def _stored(version: int) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (CORPUS / f"events-v{version}.jsonl").read_bytes().splitlines()]


ALL = [(version, line) for version in range(1, events.VERSION + 1) for line in _stored(version)]


@pytest.mark.parametrize(("version", "line"), ALL, ids=lambda value: value["type"] if isinstance(value, dict) else None)
def test_a_stored_event_loads_and_is_valid_for_clients(version: int, line: dict[str, Any]) -> None:
    event = Event(line["type"], line["body"], "sevt_1")
    body = events.to_wire(Position(1, event, MOMENT, MOMENT if line["processed"] else None))
    sdk_validation.assert_valid_event(body)
    assert {name: body[name] for name in line["body"]} == line["body"]


@pytest.mark.requirement("S6")
def test_the_newest_version_has_every_type_that_is_written() -> None:
    constants = {
        value
        for name, value in vars(events).items()
        if name.isupper() and isinstance(value, str) and value.split(".")[0] in {"user", "agent", "session", "span"}
    }
    assert {line["type"] for line in _stored(events.VERSION)} == constants - FUTURE


WRITTEN = [
    events.message("hi"),
    events.thinking("hm"),
    events.tool_use("bash", {}, call_id="toolu_1"),
    events.tool_result("sevt_1", [], is_error=False, call_id="toolu_1"),
    events.custom_tool_use("ask", {}, call_id="toolu_1"),
    events.mcp_tool_use("notes", "note", {}, call_id="toolu_1"),
    events.tool_result_for(events.mcp_tool_use("s", "t", {}, call_id="c"), [], is_error=False, call_id="c"),
    events.context_compacted(),
    events.status_running(),
    events.status_rescheduled(),
    events.status_terminated(SessionEnd(outcome=EndOutcome.COMPLETED, ended_by="user_1")),
    events.status_idle({"type": "end_turn"}),
    events.session_error("unknown_error", "text", "retrying"),
    events.model_request_start(),
    events.model_request_end("sevt_1", Usage(), is_error=False),
]


@pytest.mark.parametrize("event", WRITTEN, ids=lambda event: event.type)
def test_events_written_today_have_the_shape_of_the_newest_version(event: Event) -> None:
    shapes = [_shape(line["body"]) for line in _stored(events.VERSION) if line["type"] == event.type]
    assert _shape(event.body) in shapes


def test_every_file_of_the_corpus_belongs_to_a_version() -> None:
    assert sorted(path.name for path in CORPUS.iterdir()) == [
        f"events-v{version}.jsonl" for version in range(1, events.VERSION + 1)
    ]


def _shape(body: dict[str, Any]) -> dict[str, Any]:
    """Returns names and types, without the contents of a tool's input."""
    return {
        name: _shape(value) if isinstance(value, dict) and name != "input" else type(value).__name__
        for name, value in body.items()
    }
