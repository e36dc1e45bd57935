"""Server-sent events: frames and cursors, as pure functions.

A durable frame has `id: <seq>`. A preview frame has `id: <seq>.<event id>.<offset>`: `seq` is the last durable
position before it and `offset` the number of characters of the preview that the client holds once it has it. A stream
that starts now says first where that is, by a `ping`, which clients know and drop, with an id.
"""

import re
from typing import Final

import orjson

from footplate.domain import events
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject, clean_object
from footplate.domain.services import Cursor

KEEP_ALIVE: Final = b": keep-alive\n\n"

_CURSOR: Final = re.compile(r"(0|[1-9][0-9]{0,18})(?:\.([A-Za-z0-9_]{1,100})\.(0|[1-9][0-9]{0,9}))?")
_MAX_SEQ: Final = 2**63 - 1
# Line ends to many clients' line splitters (`str.splitlines`), though neither to SSE nor to JSON.
_LINE_ENDS: Final = (("\u0085", b"\\u0085"), ("\u2028", b"\\u2028"), ("\u2029", b"\\u2029"))


def dumps(value: Json) -> bytes:
    """JSON on one line, whatever a client holds to be a line."""
    data = orjson.dumps(value)
    if not data.isascii():
        for character, escape in _LINE_ENDS:
            data = data.replace(character.encode(), escape)
    return data


def durable(seq: int, event: JsonObject) -> bytes:
    """`event` is in its wire shape."""
    try:
        data = dumps(event)
    except TypeError:  # lone surrogates, which UTF-8 has no bytes for
        event = clean_object(event)
        data = dumps(event)
    return b"event: %b\nid: %d\ndata: %b\n\n" % (str(event["type"]).encode(), seq, data)


def position(item: events.Position) -> bytes:
    return durable(item.seq, events.wire(item))


def place(seq: int) -> bytes:
    """Where a stream begins, so that one that breaks before its first event can be gone on with."""
    return b'event: ping\nid: %d\ndata: {"type":"ping"}\n\n' % seq


def preview_start(seq: int, event_id: str, event_type: str, *, offset: int = 0) -> bytes:
    data = dumps({"type": "event_start", "event": {"id": event_id, "type": event_type}})
    return _preview("event_start", Cursor(seq, event_id, offset), data)


def preview_delta(seq: int, event_id: str, text: str, *, offset: int) -> bytes:
    """`offset` counts this frame's own text too."""
    data = dumps(
        {
            "type": "event_delta",
            "event_id": event_id,
            "delta": {"type": "content_delta", "index": 0, "content": {"type": "text", "text": text}},
        }
    )
    return _preview("event_delta", Cursor(seq, event_id, offset), data)


def format_cursor(cursor: Cursor) -> str:
    if cursor.preview_id is None:
        return str(cursor.seq)
    return f"{cursor.seq}.{cursor.preview_id}.{cursor.offset}"


def parse_cursor(text: str, *, field: str = "Last-Event-ID") -> Cursor:
    """Raises `InvalidRequest` for anything that no frame of ours can have carried as its id."""
    match = _CURSOR.fullmatch(text)
    if match is None or int(match[1]) > _MAX_SEQ:
        raise InvalidRequest(
            f"{text[:100]!r} is not a position in a stream.",
            field=field,
            help_text="Send the `id` of the last frame that you received, or leave it out to start from now.",
        )
    return Cursor(int(match[1]), match[2], int(match[3] or 0))


def _preview(event: str, cursor: Cursor, data: bytes) -> bytes:
    return f"event: {event}\nid: {format_cursor(cursor)}\n".encode() + b"data: " + data + b"\n\n"
