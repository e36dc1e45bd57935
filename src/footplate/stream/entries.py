r"""What travels through Redis: the entries of a live stream, as pure functions.

Each entry of a stream `footplate:live:{NN}` has three fields: `s` the session's id, `o` its organisation and `b` a JSON
list of `[kind, body]`, in the order in which they happened:

| kind       | body                                                | meaning                                  |
|------------|-----------------------------------------------------|------------------------------------------|
| `events`   | `[[seq, event in its wire shape], …]`               | positions that are durable, seq ascending |
| `start`    | `{"id", "type", "after_seq"}`                       | a preview is opened                      |
| `delta`    | `{"id", "offset", "text"}`                          | a piece of its text                      |

`offset` is the number of characters before the piece; `after_seq` the last position that the writer knew. The
string `footplate:open:{NN}:<organisation>:<session>` holds the `start` and every `delta` of the one open preview, each
on a line, so that a client that joins in the middle can be given the text so far. It is written *before* the entry,
so a reader that has an entry finds at least that much in the string.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from footplate.domain import events
from footplate.domain.json import Json, JsonObject, clean

_EVENTS: Final = "events"
_START: Final = "start"
_DELTA: Final = "delta"

STREAM_LENGTH: Final = 10_000
OPEN_SECONDS: Final = 3600

PREVIEWED: Final = frozenset({events.AGENT_MESSAGE, events.AGENT_THINKING})
WITH_TEXT: Final = frozenset({events.AGENT_MESSAGE})
"""The reference's previews of `agent.thinking` are a start and nothing more: its accumulator would take a delta
for text of the message."""
CLOSERS: Final = frozenset({events.MODEL_REQUEST_END, events.STATUS_IDLE, events.STATUS_RESCHEDULED})
"""Whatever preview is open when one of these arrives will not be finished any more."""

Command = tuple[str | bytes | int, ...]


@dataclass(frozen=True, slots=True)
class Start:
    id: str
    type: str
    after_seq: int


@dataclass(frozen=True, slots=True)
class Delta:
    id: str
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Durable:
    seq: int
    id: str
    type: str
    event: JsonObject


Received = Start | Delta | list[Durable]
"""What an entry holds, as a reader sees it."""
Item = Start | Delta | Sequence[events.Position]
"""What an entry holds, as a writer gives it."""


def encode(items: Sequence[Item]) -> bytes:
    return _dumps([_encoded(item) for item in items])


def encode_lines(items: Sequence[Start | Delta]) -> bytes:
    """For the open preview: JSON has no line break of its own."""
    return b"".join(_dumps(_encoded(item)) + b"\n" for item in items)


def decode(body: bytes) -> list[Received]:
    """Without the kinds that only a newer writer knows. Raises ValueError, LookupError or TypeError for nonsense."""
    decoded = [_decoded(kind, item) for kind, item in orjson.loads(body)]
    return [item for item in decoded if item is not None]


def decode_open(lines: bytes) -> tuple[Start, str] | None:
    """The open preview and its text so far, up to the first piece that is missing."""
    start, *deltas = [_decoded(*orjson.loads(line)) for line in lines.splitlines()] or [None]
    if not isinstance(start, Start):
        return None
    pieces: list[str] = []
    length = 0
    for delta in deltas:
        if not isinstance(delta, Delta) or delta.id != start.id or delta.offset > length:
            break
        fresh = delta.text[length - delta.offset :]
        pieces.append(fresh)
        length += len(fresh)
    return start, "".join(pieces)


def add(stream: str, session_id: str, organisation: str, items: Sequence[Item]) -> Command:
    fields = ("s", session_id, "o", organisation, "b", encode(items))
    return ("XADD", stream, "MAXLEN", "~", STREAM_LENGTH, "*", *fields)


def _encoded(item: Item) -> list[Json]:
    if isinstance(item, Start):
        return [_START, {"id": item.id, "type": item.type, "after_seq": item.after_seq}]
    if isinstance(item, Delta):
        return [_DELTA, {"id": item.id, "offset": item.offset, "text": item.text}]
    return [_EVENTS, [[position.seq, events.wire(position)] for position in item]]


def _decoded(kind: str, body: Any) -> Received | None:
    if kind == _DELTA:
        return Delta(body["id"], body["offset"], body["text"])
    if kind == _START:
        return Start(body["id"], body["type"], body["after_seq"])
    if kind == _EVENTS:
        return [Durable(int(seq), str(event["id"]), str(event["type"]), event) for seq, event in body]
    return None


def _dumps(value: Json) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # lone surrogates, which UTF-8 has no bytes for
        return orjson.dumps(clean(value))
