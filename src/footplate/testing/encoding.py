"""A reply as bytes and pauses: pure, and lazy, so that each frame is made when its moment has come.

`play` yields the server-sent events of a reply between `Pause`s and, in its place, a `Cut` or an `HttpError`.
`message` is the same reply in one piece, for a request that does not stream.
"""

import math
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, TypeAlias

import orjson

from footplate.domain.json import JsonObject
from footplate.testing import steps as s
from footplate.testing.steps import Step

_INPUT_CHUNK: Final = 48
_PING: Final = b'event: ping\ndata: {"type":"ping"}\n\n'
_MESSAGE_STOP: Final = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for so long from now on."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Pace:
    """Be so far behind the moment when the last piece was due: a late delta does not delay all that follow."""

    seconds: float


Piece: TypeAlias = bytes | Pause | Pace | s.Cut | s.HttpError


@dataclass(frozen=True, slots=True)
class Envelope:
    """What is the same all through one reply."""

    model: str
    usage: s.Tokens
    stop_reason: str
    id: str

    @classmethod
    def of(cls, steps: Sequence[Step], model: str) -> "Envelope":
        calls = any(isinstance(step, s.Tool) for step in steps)
        return cls(
            model=model,
            usage=next((step.usage for step in steps if isinstance(step, s.Usage)), s.Tokens()),
            stop_reason=next(
                (step.stop_reason for step in steps if isinstance(step, s.Stop)), "tool_use" if calls else "end_turn"
            ),
            id=new_id("msg"),
        )


def new_id(prefix: str) -> str:
    return f"{prefix}_01{secrets.token_hex(11)}"


def with_call_ids(steps: Sequence[Step]) -> list[Step]:
    """Every call has an id before anything is sent; calls without one of their own never share it."""
    return [
        s.Tool(step.tool, step.input, new_id("toolu")) if isinstance(step, s.Tool) and step.id is None else step
        for step in steps
    ]


def play(steps: Sequence[Step], envelope: Envelope) -> Iterator[Piece]:
    opened = False
    index = 0
    for position, step in enumerate(steps):
        if isinstance(step, (s.Usage, s.Stop)):
            continue
        if isinstance(step, (s.Sleep, s.Hang)):
            yield Pause(step.sleep if isinstance(step, s.Sleep) else math.inf)
            continue
        if isinstance(step, s.HttpError):
            yield step
            return
        if not opened:
            yield _message_start(envelope) + _PING
            opened = True
        if isinstance(step, s.Cut):
            yield step
            return
        yield from _block(index, step)
        # A cut that follows leaves its block open: "in the middle" is where clients go wrong.
        if not (position + 1 < len(steps) and isinstance(steps[position + 1], s.Cut)):
            yield _frame("content_block_stop", {"index": index})
        index += 1
    if not opened:
        yield _message_start(envelope)
    yield _message_delta(envelope) + _MESSAGE_STOP


def message(steps: Sequence[Step], envelope: Envelope) -> bytes:
    content = [block for step in steps if (block := _whole_block(step))]
    return orjson.dumps(
        {**_head(envelope), "content": content, "stop_reason": envelope.stop_reason, "usage": asdict(envelope.usage)}
    )


def error_body(error: s.HttpError, request_id: str) -> JsonObject:
    error_type = error.type or s.ERROR_TYPES.get(error.http_error, "api_error")
    return {"type": "error", "error": {"type": error_type, "message": error.message}, "request_id": request_id}


def error_frame(error: s.HttpError, request_id: str) -> bytes:
    return b"event: error\ndata: " + orjson.dumps(error_body(error, request_id)) + b"\n\n"


def chunks_of(text: str, count: int) -> list[str]:
    """Exactly `count` pieces as even as can be, fewer only if there are not that many characters."""
    count = max(1, min(count, len(text)))
    size = len(text)
    return [text[size * i // count : size * (i + 1) // count] for i in range(count)] if text else []


def _block(index: int, step: s.Text | s.Thinking | s.Tool | s.Stamps) -> Iterator[bytes | Pause | Pace]:
    if isinstance(step, s.Tool):
        block: dict[str, object] = {"type": "tool_use", "id": step.id, "name": step.tool, "input": {}}
        yield _frame("content_block_start", {"index": index, "content_block": block})
        body = orjson.dumps(step.input).decode()
        parts = chunks_of(body, math.ceil(len(body) / _INPUT_CHUNK))
        yield b"".join(_deltas(index, "input_json_delta", "partial_json", parts))
    elif isinstance(step, s.Thinking):
        block = {"type": "thinking", "thinking": "", "signature": ""}
        yield _frame("content_block_start", {"index": index, "content_block": block})
        parts = chunks_of(step.thinking, step.chunks)
        yield from _paced(_deltas(index, "thinking_delta", "thinking", parts), len(parts), step)
        yield from _deltas(index, "signature_delta", "signature", [step.signature])
    else:
        yield _frame("content_block_start", {"index": index, "content_block": {"type": "text", "text": ""}})
        if isinstance(step, s.Stamps):
            yield from _paced(_deltas(index, "text_delta", "text", _times(step.stamps)), step.stamps, step)
        else:
            parts = chunks_of(step.text, step.chunks)
            yield from _paced(_deltas(index, "text_delta", "text", parts), len(parts), step)


def _paced(frames: Iterator[bytes], count: int, pace: s.Text | s.Thinking | s.Stamps) -> Iterator[bytes | Pause | Pace]:
    """The pause comes before its frame is made, so that a stamp tells when it was sent."""
    if pace.start_delay:
        yield Pause(pace.start_delay)
    for position in range(count):
        if pace.delay and position:
            yield Pace(pace.delay)
        yield next(frames)


def _times(count: int) -> Iterator[str]:
    for _ in range(count):
        yield f"{time.time():.6f} "


def _deltas(index: int, delta_type: str, key: str, texts: Iterable[str]) -> Iterator[bytes]:
    """The hot path: everything but the text itself is encoded once."""
    data = f'{{"type":"content_block_delta","index":{index},"delta":{{"type":"{delta_type}","{key}":'
    before = b"event: content_block_delta\ndata: " + data.encode()
    for text in texts:
        yield before + orjson.dumps(text) + b"}}\n\n"


def _whole_block(step: Step) -> dict[str, object] | None:
    if isinstance(step, s.Text):
        return {"type": "text", "text": step.text}
    if isinstance(step, s.Stamps):
        return {"type": "text", "text": "".join(_times(step.stamps))}
    if isinstance(step, s.Thinking):
        return {"type": "thinking", "thinking": step.thinking, "signature": step.signature}
    if isinstance(step, s.Tool):
        return {"type": "tool_use", "id": step.id, "name": step.tool, "input": step.input}
    return None


def _head(envelope: Envelope) -> dict[str, object]:
    return {
        "id": envelope.id,
        "type": "message",
        "role": "assistant",
        "model": envelope.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _message_start(envelope: Envelope) -> bytes:
    usage = {**asdict(envelope.usage), "output_tokens": 1}
    return _frame("message_start", {"message": {**_head(envelope), "usage": usage}})


def _message_delta(envelope: Envelope) -> bytes:
    delta = {"stop_reason": envelope.stop_reason, "stop_sequence": None}
    return _frame("message_delta", {"delta": delta, "usage": asdict(envelope.usage)})


def _frame(event: str, data: dict[str, object]) -> bytes:
    return f"event: {event}\ndata: ".encode() + orjson.dumps({"type": event, **data}) + b"\n\n"
