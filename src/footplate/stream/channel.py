"""Orders the live entries of one watched session in one API process into a single gap-free sequence of frames.

The race this module prevents: an entry may arrive before its predecessor (a publish was lost), after it was already
read from the log, or during a read of the log. So every entry is judged by its sequence number. The next number is
delivered, an old one is dropped, and a gap starts a *repair*, which reads the log or the saved open preview. Until the
repair is done, new entries wait in `_waiting`.

A preview is shown only while it is known to be open. If its writer had not seen all positions that we have, it may
already be finished. Then the log decides, so that no preview follows the event that finishes it. A preview that starts
while another is open may be the *older* one, because the saved open preview is ahead of the stream. Then the saved one
decides, so that no preview starts twice.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from footplate.domain import events
from footplate.domain.events import Position
from footplate.stream import entries, sse
from footplate.stream.entries import Delta, Durable, Received, Start
from footplate.stream.ports import LogReader
from footplate.stream.tail import Frame, PreviewText, Subscriber

log = structlog.get_logger(__name__)

Snapshot = Callable[[str, str], Awaitable[tuple[Start, str] | None]]
"""Reads the open preview of (organisation, session)."""

PAGE: Final = 200
_MOST_WAITING: Final = 2000


@dataclass(slots=True)
class _Waiting:
    body: Received
    repaired: bool = False


class Channel:
    def __init__(self, organisation: str, session_id: str, log_reader: LogReader, read_open_preview: Snapshot) -> None:
        self.organisation = organisation
        self.session_id = session_id
        self.seq: int | None = None
        """The last position that was delivered; None until the head of the log is known."""
        self.subscribers: set[Subscriber] = set()
        self.users = 0
        self._log = log_reader
        self._snapshot = read_open_preview
        self._preview: PreviewText | None = None
        self._over: deque[str] = deque(maxlen=64)
        self._waiting: deque[_Waiting] = deque()
        self._repair: asyncio.Task[None] | None = None
        self._want_log = False
        self._want_snapshot = False
        self._needed: Delta | None = None
        """A preview delta whose preceding text is missing. Only its id and offset matter here."""

    def anchor(self, head: int) -> None:
        """Starts from `head`, unless already started."""
        if self.seq is None:
            self.seq = head
            self._start_repair()
            self._go_on()

    def attach(self, subscriber: Subscriber) -> None:
        """Serves a subscriber that has all positions up to ours from this channel."""
        assert self.seq is not None
        subscriber.behind = False
        if subscriber.seq > self.seq:
            self.catch_up()
        elif self._preview is not None:
            subscriber.preview(self.seq, self._preview)

    def receive(self, body: Received) -> None:
        if self.seq is not None and self._repair is None:
            if not self._apply(body):
                self._wait(body)
            self._start_repair()
        else:
            self._wait(body)

    def catch_up(self) -> None:
        """Reads the log, which may be ahead of this channel."""
        self._want_log = True
        self._start_repair()

    def look_for_preview(self) -> None:
        self._want_snapshot = True
        self._start_repair()

    def refresh(self) -> None:
        """Reads the log and the open preview, because entries may have been missed."""
        self._want_log = True
        self.look_for_preview()

    def end(self) -> None:
        for subscriber in self.subscribers:
            subscriber.end()

    def _end_those_who_know(self) -> None:
        """Ends the subscribers that are up to date. Those that are behind have yet to read the final event."""
        for subscriber in self.subscribers:
            if not subscriber.behind:
                subscriber.end()

    def close(self) -> None:
        if self._repair is not None:
            self._repair.cancel()

    def _wait(self, body: Received) -> None:
        if len(self._waiting) >= _MOST_WAITING:
            self._waiting.clear()
            self._want_log = self._want_snapshot = True
        self._waiting.append(_Waiting(body))

    def _apply(self, body: Received) -> bool:
        """Returns False if positions before this entry are missing."""
        if isinstance(body, Delta):
            self._apply_delta(body)
            return True
        return self._apply_start(body) if isinstance(body, Start) else self._apply_events(body)

    def _apply_events(self, items: Sequence[Durable]) -> bool:
        assert self.seq is not None
        fresh = [item for item in items if item.seq > self.seq]
        if not fresh:
            return True
        if fresh[0].seq != self.seq + 1:
            self._want_log = True
            return False
        self._deliver([_live(item) for item in fresh])
        return True

    def _apply_start(self, start: Start) -> bool:
        assert self.seq is not None
        if start.id in self._over or (self._preview is not None and self._preview.id == start.id):
            return True
        if start.after_seq > self.seq:
            self._want_log = True
            return False
        if start.after_seq < self.seq or self._preview is not None:
            self._need(Delta(start.id, 0, ""))
        else:
            self._show(PreviewText(start.id, start.type))
        return True

    def _apply_delta(self, delta: Delta) -> None:
        preview = self._preview
        if delta.id in self._over:
            return
        if preview is None or preview.id != delta.id or delta.offset > preview.length:
            self._need(delta)
        elif delta.offset + len(delta.text) > preview.length:
            self._grow(preview, delta.text[preview.length - delta.offset :])

    def _deliver(self, frames: Sequence[Frame]) -> None:
        """Delivers positions that follow ours without a gap to all subscribers."""
        assert self.seq is not None
        before = self.seq
        for frame in frames:
            if frame.event_type in entries.PREVIEWED:
                self._give_up(frame.event_id)
            elif frame.event_type in entries.CLOSERS and self._preview is not None:
                self._give_up(self._preview.id)
        joined = b"".join(frame.data for frame in frames if frame.shown(None))
        self.seq = frames[-1].seq
        for subscriber in self.subscribers:
            subscriber.positions(before, frames, joined)
        if any(frame.event_type == events.SESSION_DELETED for frame in frames):
            self._end_those_who_know()

    def _show(self, preview: PreviewText) -> None:
        assert self.seq is not None
        if self._preview is not None:
            self._give_up(self._preview.id)
        self._preview = preview
        for subscriber in self.subscribers:
            subscriber.preview(self.seq, preview)

    def _grow(self, preview: PreviewText, text: str) -> None:
        assert self.seq is not None
        before = preview.length
        preview.extend(text)
        frame = sse.preview_delta(self.seq, preview.id, text, offset=preview.length)
        for subscriber in self.subscribers:
            subscriber.delta(self.seq, preview, before, frame)

    def _give_up(self, preview_id: str) -> None:
        self._over.append(preview_id)
        if self._preview is not None and self._preview.id == preview_id:
            self._preview = None

    def _need(self, delta: Delta) -> None:
        self._needed = delta
        self._want_snapshot = True

    def _start_repair(self) -> None:
        if self.seq is not None and self._repair is None and (self._want_log or self._want_snapshot):
            self._repair = asyncio.create_task(self._run_repair(), name=f"repair {self.session_id}")

    async def _run_repair(self) -> None:
        try:
            while self._want_log or self._want_snapshot:
                if self._want_log:
                    self._want_log = False
                    await self._read_log()
                if self._want_snapshot:
                    self._want_snapshot = False
                    await self._read_snapshot()
        except Exception as error:  # noqa: BLE001 - whatever the store raises, the next check of the heads retries
            self._want_log = self._want_snapshot = False
            self._waiting.clear()
            log.warning("stream cannot catch up yet; will retry", action="tail.repair_failed", reason=repr(error))
        finally:
            self._repair = None
        self._go_on()

    def _go_on(self) -> None:
        """Processes the waiting entries. An entry that is still out of order after a repair is dropped, and the next
        check of the heads fetches it.
        """
        while self._waiting and self._repair is None:
            waiting = self._waiting.popleft()
            if not self._apply(waiting.body) and not waiting.repaired:
                waiting.repaired = True
                self._waiting.appendleft(waiting)
            self._start_repair()

    async def _read_log(self) -> None:
        assert self.seq is not None
        while True:
            page = await self._log.positions(self.organisation, self.session_id, self.seq, PAGE)
            if page:
                self._deliver([_stored(item) for item in page])
            if len(page) < PAGE:
                return

    async def _read_snapshot(self) -> None:
        needed, self._needed = self._needed, None
        found = await self._snapshot(self.organisation, self.session_id)
        if found is not None:
            await self._adopt(*found)
        preview = self._preview
        if needed is not None and (preview is None or preview.id != needed.id or preview.length < needed.offset):
            self._give_up(needed.id)

    async def _adopt(self, start: Start, text: str) -> None:
        assert self.seq is not None
        if start.after_seq > self.seq:
            await self._read_log()
        if start.id in self._over:
            return
        if self._preview is not None and self._preview.id == start.id:
            if len(text) > self._preview.length:
                self._grow(self._preview, text[self._preview.length :])
        elif start.after_seq < self.seq and await self._finished(start):
            self._give_up(start.id)
        else:
            self._show(PreviewText(start.id, start.type, text))

    async def _finished(self, start: Start) -> bool:
        """Whether the log has passed the preview. Also True if that cannot be decided from one page."""
        assert self.seq is not None
        page = await self._log.positions(self.organisation, self.session_id, start.after_seq, PAGE)
        closed = any(item.event.id == start.id or item.event.type in entries.CLOSERS for item in page)
        return closed or not page or page[-1].seq < self.seq


def _live(item: Durable) -> Frame:
    return Frame(item.seq, item.id, item.type, sse.durable(item.seq, item.event), item.event)


def _stored(item: Position) -> Frame:
    return Frame(item.seq, item.event.id, item.event.type, sse.position(item), item.event.body)
