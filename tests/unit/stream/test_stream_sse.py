"""Server-sent frames and cursors: exact bytes, and round trips for any value."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.domain import ids
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject, clean_text
from footplate.domain.ports.api import Cursor
from footplate.domain.sessions import events
from footplate.stream import sse

MOMENT = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
texts = st.text(st.characters(), max_size=50)
event_ids = st.builds(ids.new_id, st.just(ids.EVENT))
cursors = st.builds(Cursor, st.integers(0, 2**63 - 1)) | st.builds(
    Cursor, st.integers(0, 2**63 - 1), event_ids, st.integers(0, 10**9)
)


def parse(frame: bytes) -> dict[str, str]:
    """Parses a frame as a client with the most lenient line splitting would."""
    lines = frame.decode().splitlines()
    assert lines.pop() == ""
    return {name: value for name, _, value in (line.partition(": ") for line in lines)}


@pytest.mark.requirement("K3")
def test_a_position_is_a_frame_with_its_type_and_seq() -> None:
    item = events.Position(7, events.message("hi", event_id="sevt_1"), MOMENT, MOMENT)
    assert sse.encode_position(item) == (
        b"event: agent.message\nid: 7\n"
        b'data: {"id":"sevt_1","type":"agent.message","content":[{"type":"text","text":"hi"}],'
        b'"processed_at":"2026-11-01T12:00:00Z"}\n\n'
    )


def test_a_preview_is_a_start_and_deltas_with_cursors_of_their_own() -> None:
    assert sse.encode_preview_start(7, "sevt_1", "agent.message") == (
        b"event: event_start\nid: 7.sevt_1.0\n"
        b'data: {"type":"event_start","event":{"id":"sevt_1","type":"agent.message"}}\n\n'
    )
    assert sse.encode_preview_delta(7, "sevt_1", "hé", offset=2).decode() == (
        'event: event_delta\nid: 7.sevt_1.2\ndata: {"type":"event_delta","event_id":"sevt_1",'
        '"delta":{"type":"content_delta","index":0,"content":{"type":"text","text":"hé"}}}\n\n'
    )


@given(st.integers(0, 2**63 - 1), texts)
def test_a_durable_frame_is_one_line_of_data_whatever_its_text(seq: int, text: str) -> None:
    event: JsonObject = {"id": "sevt_1", "type": "agent.message", "text": text}
    fields = parse(sse.encode_event(seq, event))
    assert set(fields) == {"event", "id", "data"}
    assert sse.parse_cursor(fields["id"]) == Cursor(seq)
    assert json.loads(fields["data"])["text"] in (text, clean_text(text))


@given(st.integers(0, 2**63 - 1), event_ids, texts.map(clean_text), st.integers(0, 10**9))
def test_a_delta_frame_carries_its_text_and_its_cursor(seq: int, event_id: str, text: str, offset: int) -> None:
    fields = parse(sse.encode_preview_delta(seq, event_id, text, offset=offset))
    assert json.loads(fields["data"])["delta"]["content"]["text"] == text
    assert sse.parse_cursor(fields["id"]) == Cursor(seq, event_id, offset)


@given(cursors)
def test_cursors_round_trip(cursor: Cursor) -> None:
    assert sse.parse_cursor(sse.format_cursor(cursor)) == cursor


GARBAGE = (
    "",
    " 1",
    "1 ",
    "-1",
    "+1",
    "01",
    "1.",
    "1.a",
    "1.a.b",
    "1.a.1.2",
    "1..1",
    "\u0661",
    "1\n",
    "9" * 19,
    "x",
    "1.a b.1",
)


@pytest.mark.parametrize("text", GARBAGE)
def test_garbage_is_no_cursor(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        sse.parse_cursor(text, field="after")
    assert caught.value.fields["field"] == "after"


@given(st.text(max_size=30))
def test_a_parsed_cursor_formats_to_the_same_text(text: str) -> None:
    try:
        cursor = sse.parse_cursor(text)
    except InvalidRequest:
        return
    assert sse.format_cursor(cursor) == text
