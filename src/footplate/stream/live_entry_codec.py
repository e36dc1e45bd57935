r"""Encodes and decodes the entries of the live streams in Redis. The functions do no I/O.

An entry of the Redis stream `footplate:live:{NN}` names the session (`s`) and its organisation (`o`). Its field `b` is
a JSON list of `[kind, body]` pairs in chronological order:

| kind     | body                                   | meaning                                                         |
|----------|----------------------------------------|-----------------------------------------------------------------|
| `events` | `[[seq, event in its wire format], …]` | events that are already in the log, in ascending order of `seq` |
| `start`  | `{"id", "type", "after_seq"}`          | a preview starts                                                |
| `delta`  | `{"id", "offset", "text"}`             | more text of the preview                                        |

`offset` is the number of characters before the text, and `after_seq` the last log position that the writer knew.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from footplate.domain.json import Json, JsonObject, clean
from footplate.domain.sessions import events, feed

_EVENTS: Final = "events"
_START: Final = "start"
_DELTA: Final = "delta"

MAX_STREAM_ENTRIES: Final = 10_000
OPEN_PREVIEW_SECONDS: Final = 3600

PREVIEWED_TYPES: Final = frozenset({events.AGENT_MESSAGE, events.AGENT_THINKING})
TEXT_PREVIEW_TYPES: Final = frozenset({events.AGENT_MESSAGE})
"""Event types whose previews have text. As in the reference API, a preview of `agent.thinking` is only a start: the
SDK's accumulator would treat a delta as text of the message.
"""
PREVIEW_CLOSING_TYPES: Final = frozenset({events.MODEL_REQUEST_END, events.STATUS_IDLE, events.STATUS_RESCHEDULED})
"""Events after which an open preview will not be finished any more."""

RedisCommand = tuple[str | bytes | int, ...]


@dataclass(frozen=True, slots=True)
class PreviewStart:
    id: str
    type: str
    after_seq: int


@dataclass(frozen=True, slots=True)
class PreviewDelta:
    id: str
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class DurableEvent:
    seq: int
    id: str
    type: str
    event: JsonObject


ReceivedItem = PreviewStart | PreviewDelta | list[DurableEvent]
"""The content of an entry, as a reader receives it."""
PublishedItem = PreviewStart | PreviewDelta | Sequence[events.Position]
"""The content of an entry, as a writer passes it."""


def encode_items(items: Sequence[PublishedItem]) -> bytes:
    return _encode_json([_encode_item(item) for item in items])


def encode_open_preview(items: Sequence[PreviewStart | PreviewDelta]) -> bytes:
    """Encodes the open preview, one item per line. JSON contains no raw line breaks.

    The Redis string `footplate:open:{NN}:<organisation>:<session>` holds the `start` and every `delta` of the one open
    preview. A client that joins later receives the text from it. The string is written *before* the entry, so a reader
    of an entry finds at least that much text in the string.
    """
    return b"".join(_encode_json(_encode_item(item)) + b"\n" for item in items)


def decode_items(body: bytes) -> list[ReceivedItem]:
    """Decodes an entry, skipping kinds that only a newer writer knows. Raises ValueError, LookupError or TypeError if
    it is malformed.
    """
    decoded = [_decode_item(kind, item) for kind, item in orjson.loads(body)]
    return [item for item in decoded if item is not None]


def decode_open_preview(lines: bytes) -> tuple[PreviewStart, str] | None:
    """Returns the open preview and its text so far, up to the first missing delta."""
    start, *deltas = [_decode_item(*orjson.loads(line)) for line in lines.splitlines()] or [None]
    if not isinstance(start, PreviewStart):
        return None
    pieces: list[str] = []
    length = 0
    for delta in deltas:
        if not isinstance(delta, PreviewDelta) or delta.id != start.id or delta.offset > length:
            break
        fresh = delta.text[length - delta.offset :]
        pieces.append(fresh)
        length += len(fresh)
    return start, "".join(pieces)


def append_command(stream: str, session_id: str, organisation: str, items: Sequence[PublishedItem]) -> RedisCommand:
    fields = ("s", session_id, "o", organisation, "b", encode_items(items))
    return ("XADD", stream, "MAXLEN", "~", MAX_STREAM_ENTRIES, "*", *fields)


def has_change(items: Iterable[PublishedItem]) -> bool:
    """Returns whether one of the events is a change that the organisation's feed reports."""
    positions = (position for item in items if not isinstance(item, PreviewStart | PreviewDelta) for position in item)
    return any(feed.is_change(position.event.type, position.event.body) for position in positions)


def _encode_item(item: PublishedItem) -> list[Json]:
    if isinstance(item, PreviewStart):
        return [_START, {"id": item.id, "type": item.type, "after_seq": item.after_seq}]
    if isinstance(item, PreviewDelta):
        return [_DELTA, {"id": item.id, "offset": item.offset, "text": item.text}]
    return [_EVENTS, [[position.seq, events.to_wire(position)] for position in item]]


def _decode_item(kind: str, body: Any) -> ReceivedItem | None:
    if kind == _DELTA:
        return PreviewDelta(body["id"], body["offset"], body["text"])
    if kind == _START:
        return PreviewStart(body["id"], body["type"], body["after_seq"])
    if kind == _EVENTS:
        return [DurableEvent(int(seq), str(event["id"]), str(event["type"]), event) for seq, event in body]
    return None


def _encode_json(value: Json) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # lone surrogates cannot be encoded in UTF-8
        return orjson.dumps(clean(value))
