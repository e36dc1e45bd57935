r"""What travels through Redis: the entries of a live stream, as pure functions.

Each entry of a stream `footplate:live:{NN}` has four fields: `s` the session's id, `o` its organisation,
`k` the kind and `b` a JSON body:

| kind       | body                                                | meaning                                  |
|------------|-----------------------------------------------------|------------------------------------------|
| `events`   | `[[seq, event in its wire shape], …]`               | positions that are durable, seq ascending |
| `start`    | `{"id", "type", "after_seq"}`                       | a preview is opened                      |
| `delta`    | `{"id", "offset", "text"}`                          | a piece of its text                      |

`offset` is the number of characters before the piece; `after_seq` the last position that the writer knew. The
list `footplate:open:{NN}:<organisation>:<session>` holds the bodies of the one open preview, its `start` first,
so that a client that joins in the middle can be given the text so far. It is written *before* the entry, hence
whoever has seen an entry finds at least that much in the list.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from footplate.domain import events
from footplate.domain.json import Json, JsonObject, clean

EVENTS: Final = b"events"
START: Final = b"start"
DELTA: Final = b"delta"

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


Body = Start | Delta | list[Durable]


def encode_events(positions: Sequence[events.Position]) -> bytes:
    return _dumps([[item.seq, events.wire(item)] for item in positions])


def encode_start(start: Start) -> bytes:
    return _dumps({"id": start.id, "type": start.type, "after_seq": start.after_seq})


def encode_delta(delta: Delta) -> bytes:
    return _dumps({"id": delta.id, "offset": delta.offset, "text": delta.text})


def decode(kind: bytes, body: bytes) -> Body | None:
    """None for a kind that a newer writer may know. Raises ValueError, KeyError or TypeError for nonsense."""
    if kind == DELTA:
        delta = orjson.loads(body)
        return Delta(delta["id"], delta["offset"], delta["text"])
    if kind == START:
        start = orjson.loads(body)
        return Start(start["id"], start["type"], start["after_seq"])
    if kind == EVENTS:
        return [Durable(int(seq), str(event["id"]), str(event["type"]), event) for seq, event in orjson.loads(body)]
    return None


def decode_open(bodies: Sequence[bytes]) -> tuple[Start, str] | None:
    """The open preview and its text so far, up to the first piece that is missing."""
    if not bodies:
        return None
    start = decode(START, bodies[0])
    assert isinstance(start, Start)
    pieces: list[str] = []
    length = 0
    for body in bodies[1:]:
        delta = decode(DELTA, body)
        assert isinstance(delta, Delta)
        if delta.id != start.id or delta.offset > length:
            break
        fresh = delta.text[length - delta.offset :]
        pieces.append(fresh)
        length += len(fresh)
    return start, "".join(pieces)


def add(stream: str, session_id: str, organisation: str, kind: bytes, body: bytes) -> Command:
    fields = ("s", session_id, "o", organisation, "k", kind, "b", body)
    return ("XADD", stream, "MAXLEN", "~", STREAM_LENGTH, "*", *fields)


def _dumps(value: Json) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # lone surrogates, which UTF-8 has no bytes for
        return orjson.dumps(clean(value))
