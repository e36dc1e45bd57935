"""WebSocket messages have the same three fields as server-sent frames, whatever they contain."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.domain.json import JsonObject
from footplate.stream import sse
from footplate.stream.sse import to_websocket_messages

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
frames = st.one_of(
    st.builds(lambda seq, text: sse.encode_event(seq, _event(text)), st.integers(0, 2**63 - 1), texts),
    st.builds(
        lambda seq, text: sse.encode_preview_delta(seq, "sevt_1", text, offset=len(text)), st.integers(0, 9), texts
    ),
    st.just(sse.encode_preview_start(7, "sevt_1", "agent.message")),
    st.builds(sse.encode_start_position, st.integers(0, 2**63 - 1)),
)


def _event(text: str) -> JsonObject:
    return {"id": "sevt_1", "type": "agent.message", "content": [{"type": "text", "text": text}]}


def _fields(frame: bytes) -> dict[str, str]:
    lines = frame.decode().split("\n")
    return {name: value for name, found, value in (line.partition(": ") for line in lines) if found}


@pytest.mark.requirement("S11")
@given(st.lists(frames, max_size=6))
def test_each_frame_is_one_message_with_its_fields(sent: list[bytes]) -> None:
    received = [*to_websocket_messages(b"".join(sent))]
    assert [event for event, _ in received] == [_fields(frame)["event"] for frame in sent]
    for frame, (_, message) in zip(sent, received, strict=True):
        fields = _fields(frame)
        assert json.loads(message) == {**fields, "data": json.loads(fields["data"])}


def test_an_error_has_no_id() -> None:
    assert [*to_websocket_messages(b'event: error\ndata: {"type":"error"}\n\n')] == [
        ("error", '{"event":"error","data":{"type":"error"}}')
    ]


def test_a_keep_alive_is_no_message() -> None:
    assert [*to_websocket_messages(b"")] == []
    assert [*to_websocket_messages(sse.KEEP_ALIVE)] == []
