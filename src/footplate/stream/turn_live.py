"""The live side of one running turn: previews, coalesced, in one order with the turn's durable events.

A model writes many small pieces. The first is sent at once, so that the first token is not late; those that follow
within the flush interval are sent as one entry. The interval is short while the process has nothing else to send, so
that pieces at a model's usual pace go out one by one, and long while it has, so that it has less to send. Text that
cannot be sent waits in a bounded buffer; text beyond the bound is left out of the preview, for the finished event
carries all of it.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from footplate.domain import ids
from footplate.domain.events import Position, PreviewType
from footplate.domain.json import clean_text
from footplate.stream import entries, keys
from footplate.stream.entries import Command, Delta, Start
from footplate.stream.publisher import Live, durable

FLUSH_SECONDS: Final = 0.02
_CALM_FLUSH_SECONDS: Final = 0.005
MAX_TEXT: Final = 1_000_000
"""Characters of one preview that are shown while it is written."""


class OpenPreview:
    """Implements the `Preview` port."""

    def __init__(self, turn: "TurnLive", event_type: PreviewType) -> None:
        self._turn = turn
        self.event_type = event_type
        self.event_id = ids.new_id(ids.EVENT)

    def write(self, text: str) -> None:
        self._turn.write(self, text)


class TurnLive:
    def __init__(
        self,
        live: Live,
        organisation: str,
        session_id: str,
        *,
        after_seq: int = 0,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        """`after_seq` is the last position that the turn knows, its claim's own for instance."""
        self._live = live
        self._organisation = organisation
        self._session_id = session_id
        self._after_seq = after_seq
        self._flush_seconds = flush_seconds
        self._stream = keys.stream(keys.shard_of(session_id))
        self._key = keys.open_preview(organisation, session_id)
        self._open: OpenPreview | None = None
        self._sent = 0
        self._buffered: list[str] = []
        self._room = 0
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._next_flush = 0.0

    def preview(self, event_type: PreviewType) -> OpenPreview:
        """Open a preview; one that is still open is given up, for a session has one at a time."""
        self._close()
        self._open = opened = OpenPreview(self, event_type)
        self._sent, self._room = 0, MAX_TEXT
        body = entries.encode_start(Start(opened.event_id, event_type, self._after_seq))
        self._live.offer(
            (
                ("DEL", self._key),
                ("RPUSH", self._key, body),
                ("EXPIRE", self._key, entries.OPEN_SECONDS),
                self._entry(entries.START, body),
            )
        )
        return opened

    def write(self, preview: OpenPreview, text: str) -> None:
        if preview is not self._open or preview.event_type not in entries.WITH_TEXT or self._room <= 0 or not text:
            return
        text = clean_text(text)[: self._room]
        self._room -= len(text)
        self._buffered.append(text)
        if self._timer is not None:
            return
        if self._loop.time() >= self._next_flush:
            self._flush()  # here and not by a timer: the first piece then travels with the preview's start
        else:
            self._timer = self._loop.call_at(self._next_flush, self._flush)

    async def publish(self, positions: Sequence[Position]) -> None:
        """What was previewed goes out first. Returns at once."""
        if not positions:
            return
        self._flush()
        closes = any(self._closes(item) for item in positions)
        self._live.offer(durable(self._organisation, self._session_id, positions, closes_preview=closes))
        self._after_seq = max(self._after_seq, positions[-1].seq)
        if closes:
            self._close()

    async def aclose(self) -> None:
        self._close()

    def _closes(self, position: Position) -> bool:
        if position.event.type in entries.CLOSERS:
            return True
        if self._open is None:  # an earlier try of this turn may have left one
            return position.event.type in entries.PREVIEWED
        return position.event.id == self._open.event_id

    def _close(self) -> None:
        self._flush()
        self._open = None
        self._buffered.clear()

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._open is None or not self._buffered:
            return
        pace = self._flush_seconds if self._live.busy else min(self._flush_seconds, _CALM_FLUSH_SECONDS)
        self._next_flush = self._loop.time() + pace
        text = "".join(self._buffered)
        body = entries.encode_delta(Delta(self._open.event_id, self._sent, text))
        if self._live.offer((("RPUSHX", self._key, body), self._entry(entries.DELTA, body))):
            self._sent += len(text)
            self._buffered.clear()

    def _entry(self, kind: bytes, body: bytes) -> Command:
        return entries.add(self._stream, self._session_id, self._organisation, kind, body)
