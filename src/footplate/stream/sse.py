"""Encodes server-sent events and WebSocket messages, and parses the cursors with which clients resume a stream. The
functions do no I/O.

The id of a durable event is `<seq>`, and the id of a preview is `<seq>.<event id>.<offset>`. Here `seq` is the last
durable position, and `offset` the number of preview characters that the client has received. A stream without a cursor
first sends its start position as the id of a `ping` event.

A WebSocket message is a JSON object such as `{"event": "agent.message", "id": "12", "data": {…}}`. Events are encoded
once, as server-sent events, and shared by all clients. The data of the two formats can therefore never differ.
"""

import re
from collections.abc import Iterator
from typing import Final

import orjson

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject, clean_object
from footplate.domain.ports.api import Cursor
from footplate.domain.sessions import events

KEEP_ALIVE: Final = b": keep-alive\n\n"
_EVENT: Final = b"event: "
_ID: Final = b"id: "
_DATA: Final = b"data: "

_CURSOR: Final = re.compile(r"(0|[1-9][0-9]{0,18})(?:\.([A-Za-z0-9_]{1,100})\.(0|[1-9][0-9]{0,9}))?")
_MAX_SEQ: Final = 2**63 - 1
# Many clients split lines at these characters (`str.splitlines`), although neither SSE nor JSON does.
_LINE_ENDS: Final = (("\u0085", b"\\u0085"), ("\u2028", b"\\u2028"), ("\u2029", b"\\u2029"))


def encode_json_line(value: Json) -> bytes:
    """Encodes JSON on one line, by every client's definition of a line."""
    data = orjson.dumps(value)
    if not data.isascii():
        for character, escape in _LINE_ENDS:
            data = data.replace(character.encode(), escape)
    return data


def encode_event(seq: int, event: JsonObject) -> bytes:
    """`event` is in its wire format."""
    try:
        data = encode_json_line(event)
    except TypeError:  # lone surrogates cannot be encoded in UTF-8
        event = clean_object(event)
        data = encode_json_line(event)
    return b"event: %b\nid: %d\ndata: %b\n\n" % (str(event["type"]).encode(), seq, data)


def encode_position(item: events.Position) -> bytes:
    return encode_event(item.seq, events.to_wire(item))


def encode_start_position(seq: int) -> bytes:
    """Encodes the start position, so that a client that loses the connection before the first event can resume."""
    return b'event: ping\nid: %d\ndata: {"type":"ping"}\n\n' % seq


def encode_preview_start(seq: int, event_id: str, event_type: str, *, offset: int = 0) -> bytes:
    data = encode_json_line({"type": "event_start", "event": {"id": event_id, "type": event_type}})
    return _encode_preview("event_start", Cursor(seq, event_id, offset), data)


def encode_preview_delta(seq: int, event_id: str, text: str, *, offset: int) -> bytes:
    """`offset` includes this frame's own text."""
    data = encode_json_line(
        {
            "type": "event_delta",
            "event_id": event_id,
            "delta": {"type": "content_delta", "index": 0, "content": {"type": "text", "text": text}},
        }
    )
    return _encode_preview("event_delta", Cursor(seq, event_id, offset), data)


def format_cursor(cursor: Cursor) -> str:
    if cursor.preview_id is None:
        return str(cursor.seq)
    return f"{cursor.seq}.{cursor.preview_id}.{cursor.offset}"


def parse_cursor(text: str, *, field: str = "Last-Event-ID") -> Cursor:
    """Parses a cursor. Raises `InvalidRequest` for text that cannot be the id of a frame."""
    match = _CURSOR.fullmatch(text)
    if match is None or int(match[1]) > _MAX_SEQ:
        raise InvalidRequest(
            f"{text[:100]!r} is not a valid SSE event ID.",
            field=field,
            help_text="Send the `id` of the last SSE event that you received, or omit it to receive only new events.",
        )
    return Cursor(int(match[1]), match[2], int(match[3] or 0))


def to_websocket_messages(chunk: bytes) -> Iterator[tuple[str, str]]:
    """Yields the event and the message of each frame. `chunk` contains complete frames. Keep-alives are skipped."""
    for frame in chunk.split(b"\n\n"):
        event = id_field = data = b""
        for line in frame.split(b"\n"):
            if line.startswith(_DATA):
                data = line[len(_DATA) :]
            elif line.startswith(_ID):
                id_field = b'"id":"%b",' % line[len(_ID) :]
            elif line.startswith(_EVENT):
                event = line[len(_EVENT) :]
        if event:
            yield event.decode(), (b'{"event":"%b",%b"data":%b}' % (event, id_field, data)).decode()


def _encode_preview(event: str, cursor: Cursor, data: bytes) -> bytes:
    return f"event: {event}\nid: {format_cursor(cursor)}\n".encode() + b"data: " + data + b"\n\n"
