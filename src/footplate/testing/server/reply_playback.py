"""Plays a scripted reply: converts its steps to a sequence of frames and delays. The encoder of the provider's wire
format encodes each frame when it is due.

`ReplyPlayback.play` yields server-sent events and delays. If the script contains a `Cut` (the response stops in the
middle) or an `HttpError`, it yields that last. `ReplyPlayback.full_response` returns the whole reply, for a request
without streaming.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import orjson

from footplate.domain.json import JsonObject
from footplate.testing import reply_steps as s
from footplate.testing.reply_steps import Step
from footplate.testing.wire.wire_format_interface import Block, ReplyEnvelope, WireFormat, new_id

_INPUT_CHUNK: Final = 48


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait this many seconds from now."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Pace:
    """Wait until this many seconds after the last piece was due, so that a late delta does not delay those after it."""

    seconds: float


Piece: TypeAlias = bytes | Pause | Pace | s.Cut | s.HttpError


class ReplyPlayback:
    """A reply to one request in one wire format."""

    def __init__(self, wire: WireFormat, steps: Sequence[Step], request: JsonObject) -> None:
        self.wire = wire
        self._steps = _with_call_ids(steps, wire.call_prefix)
        self._encoder = wire.encoder(ReplyEnvelope.from_steps(steps, request))
        self._blocks: list[Block] = []

    def play(self) -> Iterator[Piece]:
        opened = False
        for position, step in enumerate(self._steps):
            if isinstance(step, s.Usage | s.Stop):
                continue
            if isinstance(step, s.Sleep | s.Hang):
                yield Pause(step.sleep if isinstance(step, s.Sleep) else math.inf)
                continue
            if isinstance(step, s.HttpError):
                yield step
                return
            if not opened:
                yield self._encoder.start_reply()
                opened = True
            if isinstance(step, s.Cut):
                yield step
                return
            yield from self._block(step, cut=isinstance(self._next_step(position), s.Cut))
        if not opened:
            yield self._encoder.start_reply()
        yield self._encoder.end_reply(self._blocks)

    def full_response(self) -> bytes:
        return self._encoder.full_response(self._blocks)

    def error_frame(self, error: s.HttpError, request_id: str) -> bytes:
        return self._encoder.error_event(error, request_id)

    def _block(self, step: s.Content, *, cut: bool) -> Iterator[bytes | Pause | Pace]:
        block = Block(step)
        self._blocks.append(block)
        yield self._encoder.start_block(step)
        for piece in _deltas(step):
            if isinstance(piece, str):
                block.pieces.append(piece)
                yield self._encoder.delta(piece)
            else:
                yield piece
        # A following cut leaves the block open: clients are most likely to fail in the middle of a block.
        if not cut:
            yield self._encoder.stop_block(block)

    def _next_step(self, position: int) -> Step | None:
        return self._steps[position + 1] if position + 1 < len(self._steps) else None


def split_text(text: str, count: int) -> list[str]:
    """Splits text into `count` pieces of about equal length, or fewer if it has fewer characters."""
    count = max(1, min(count, len(text)))
    size = len(text)
    return [text[size * i // count : size * (i + 1) // count] for i in range(count)] if text else []


def _with_call_ids(steps: Sequence[Step], prefix: str) -> list[Step]:
    """Gives each tool call without an id a unique one before anything is sent."""
    return [
        replace(step, id=new_id(prefix)) if isinstance(step, s.Tool) and step.id is None else step for step in steps
    ]


def _deltas(step: s.Content) -> Iterator[str | Pause | Pace]:
    """Yields pieces and pauses. A piece is created after its pause, so that a stamp has the time of sending."""
    if isinstance(step, s.Tool):
        body = orjson.dumps(step.input).decode()
        yield from split_text(body, math.ceil(len(body) / _INPUT_CHUNK))
        return
    if step.start_delay:
        yield Pause(step.start_delay)
    count, pieces = _pieces(step)
    for position in range(count):
        if step.delay and position:
            yield Pace(step.delay)
        yield next(pieces)


def _pieces(step: s.Text | s.Thinking | s.Stamps) -> tuple[int, Iterator[str]]:
    if isinstance(step, s.Stamps):
        return step.stamps, (f"{time.time():.6f} " for _ in range(step.stamps))
    chunks = split_text(step.thinking if isinstance(step, s.Thinking) else step.text, step.chunks)
    return len(chunks), iter(chunks)
