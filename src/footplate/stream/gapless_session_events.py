"""Combines the live entries and the log of one session into a sequence of events without gaps, in one API process.

Live entries can be lost, and can arrive again after the log was read. An entry with the next sequence number is
delivered, and an entry with a lower number is dropped, because it was already delivered. A higher number means a gap.
The missing part is then read from the log or from the saved preview (the text so far of an unfinished response), while
new entries wait.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from footplate.domain.sessions import events
from footplate.domain.sessions.events import Position
from footplate.stream import live_entry_codec, sse
from footplate.stream.client_queue import Frame, PreviewText, Subscriber
from footplate.stream.live_entry_codec import DurableEvent, PreviewDelta, PreviewStart, ReceivedItem

log = structlog.get_logger(__name__)

ReadOpenPreview = Callable[[str, str], Awaitable[tuple[PreviewStart, str] | None]]
"""Reads the open preview of (organisation, session)."""

PAGE_SIZE: Final = 200
_MAX_WAITING: Final = 2000


class LogReader(Protocol):
    """The interface (port) through which streams read the session log. The store implements it."""

    async def positions(self, organisation: str, session_id: str, after_seq: int, limit: int) -> Sequence[Position]:
        """Returns the log positions after `after_seq`, ordered by `seq`, including the second positions of queued
        inputs.
        """

    async def heads(self, session_ids: Sequence[str]) -> Mapping[str, int]:
        """Returns the last `seq` of each session, or 0 if it has none. A session that is not in the result does not
        exist.
        """


@dataclass(slots=True)
class _WaitingEntry:
    body: ReceivedItem
    was_repaired: bool = False


class SessionChannel:
    """The channel of one session, shared by all its subscribers.

    A preview is shown only while it is known to be open. If its writer did not know all positions that this
    channel has, the preview may already be finished. The log then decides, so that no preview follows the
    event that finishes it.

    A preview that starts while another one is open may be the *older* one, because the saved preview is ahead of the
    stream. The saved preview then decides, so that no preview starts twice.
    """

    def __init__(
        self, organisation: str, session_id: str, log_reader: LogReader, read_open_preview: ReadOpenPreview
    ) -> None:
        self.organisation = organisation
        self.session_id = session_id
        self.seq: int | None = None
        """The last position that was delivered; None until the head of the log is known."""
        self.subscribers: set[Subscriber[Frame]] = set()
        self.user_count = 0
        self._log = log_reader
        self._read_open_preview = read_open_preview
        self._preview: PreviewText | None = None
        self._finished_previews: deque[str] = deque(maxlen=64)
        self._waiting: deque[_WaitingEntry] = deque()
        self._repair_task: asyncio.Task[None] | None = None
        self._needs_log = False
        self._needs_preview = False
        self._needed_delta: PreviewDelta | None = None
        """A preview delta whose preceding text is missing. Only its id and offset matter here."""

    def anchor(self, head: int) -> None:
        """Starts from `head`, unless already started."""
        if self.seq is None:
            self.seq = head
            self._start_repair()
            self._process_waiting()

    def attach(self, subscriber: Subscriber[Frame]) -> None:
        """Serves a subscriber that has all positions up to ours from this channel."""
        assert self.seq is not None
        subscriber.behind = False
        if subscriber.seq > self.seq:
            self.request_log_read()
        elif self._preview is not None:
            subscriber.queue_preview(self.seq, self._preview)

    def receive(self, body: ReceivedItem) -> None:
        if self.seq is not None and self._repair_task is None:
            if not self._apply(body):
                self._enqueue(body)
            self._start_repair()
        else:
            self._enqueue(body)

    def request_log_read(self) -> None:
        """Reads the log, which may be ahead of this channel."""
        self._needs_log = True
        self._start_repair()

    def request_preview(self) -> None:
        self._needs_preview = True
        self._start_repair()

    def refresh(self) -> None:
        """Reads the log and the open preview, because entries may have been missed."""
        self._needs_log = True
        self.request_preview()

    def end_subscribers(self) -> None:
        for subscriber in self.subscribers:
            subscriber.end_stream()

    def _end_current_subscribers(self) -> None:
        """Ends the subscribers that are up to date. Those that are behind have yet to read the final event."""
        for subscriber in self.subscribers:
            if not subscriber.behind:
                subscriber.end_stream()

    def close(self) -> None:
        if self._repair_task is not None:
            self._repair_task.cancel()

    def _enqueue(self, body: ReceivedItem) -> None:
        if len(self._waiting) >= _MAX_WAITING:
            self._waiting.clear()
            self._needs_log = self._needs_preview = True
        self._waiting.append(_WaitingEntry(body))

    def _apply(self, body: ReceivedItem) -> bool:
        """Returns False if positions before this entry are missing."""
        if isinstance(body, PreviewDelta):
            self._apply_delta(body)
            return True
        return self._apply_start(body) if isinstance(body, PreviewStart) else self._apply_events(body)

    def _apply_events(self, items: Sequence[DurableEvent]) -> bool:
        assert self.seq is not None
        fresh = [item for item in items if item.seq > self.seq]
        if not fresh:
            return True
        if fresh[0].seq != self.seq + 1:
            self._needs_log = True
            return False
        self._deliver_frames([_frame_from_entry(item) for item in fresh])
        return True

    def _apply_start(self, start: PreviewStart) -> bool:
        assert self.seq is not None
        if start.id in self._finished_previews or (self._preview is not None and self._preview.id == start.id):
            return True
        if start.after_seq > self.seq:
            self._needs_log = True
            return False
        if start.after_seq < self.seq or self._preview is not None:
            self._require_preview(PreviewDelta(start.id, 0, ""))
        else:
            self._show_preview(PreviewText(start.id, start.type))
        return True

    def _apply_delta(self, delta: PreviewDelta) -> None:
        preview = self._preview
        if delta.id in self._finished_previews:
            return
        if preview is None or preview.id != delta.id or delta.offset > preview.length:
            self._require_preview(delta)
        elif delta.offset + len(delta.text) > preview.length:
            self._extend_preview(preview, delta.text[preview.length - delta.offset :])

    def _deliver_frames(self, frames: Sequence[Frame]) -> None:
        """Delivers positions that follow ours without a gap to all subscribers."""
        assert self.seq is not None
        before = self.seq
        for frame in frames:
            if frame.event_type in live_entry_codec.PREVIEWED_TYPES:
                self._mark_finished(frame.event_id)
            elif frame.event_type in live_entry_codec.PREVIEW_CLOSING_TYPES and self._preview is not None:
                self._mark_finished(self._preview.id)
        joined = b"".join(frame.data for frame in frames if frame.is_shown(None))
        self.seq = frames[-1].seq
        for subscriber in self.subscribers:
            subscriber.queue_positions(before, frames, joined)
        if any(frame.event_type == events.SESSION_DELETED for frame in frames):
            self._end_current_subscribers()

    def _show_preview(self, preview: PreviewText) -> None:
        assert self.seq is not None
        if self._preview is not None:
            self._mark_finished(self._preview.id)
        self._preview = preview
        for subscriber in self.subscribers:
            subscriber.queue_preview(self.seq, preview)

    def _extend_preview(self, preview: PreviewText, text: str) -> None:
        assert self.seq is not None
        before = preview.length
        preview.extend(text)
        frame = sse.encode_preview_delta(self.seq, preview.id, text, offset=preview.length)
        for subscriber in self.subscribers:
            subscriber.queue_delta(self.seq, preview, before, frame)

    def _mark_finished(self, preview_id: str) -> None:
        self._finished_previews.append(preview_id)
        if self._preview is not None and self._preview.id == preview_id:
            self._preview = None

    def _require_preview(self, delta: PreviewDelta) -> None:
        self._needed_delta = delta
        self._needs_preview = True

    def _start_repair(self) -> None:
        if self.seq is not None and self._repair_task is None and (self._needs_log or self._needs_preview):
            self._repair_task = asyncio.create_task(self._run_repair(), name=f"repair {self.session_id}")

    async def _run_repair(self) -> None:
        try:
            while self._needs_log or self._needs_preview:
                if self._needs_log:
                    self._needs_log = False
                    await self._read_log()
                if self._needs_preview:
                    self._needs_preview = False
                    await self._load_preview()
        except Exception as error:  # noqa: BLE001 - whatever the store raises, the next check of the heads retries
            self._needs_log = self._needs_preview = False
            self._waiting.clear()
            log.warning(
                "stream cannot catch up with the log; will retry", action="tail.repair_failed", reason=repr(error)
            )
        finally:
            self._repair_task = None
        self._process_waiting()

    def _process_waiting(self) -> None:
        """Processes the waiting entries. An entry that is still out of order after a repair is dropped, and the next
        check of the heads fetches it.
        """
        while self._waiting and self._repair_task is None:
            waiting = self._waiting.popleft()
            if not self._apply(waiting.body) and not waiting.was_repaired:
                waiting.was_repaired = True
                self._waiting.appendleft(waiting)
            self._start_repair()

    async def _read_log(self) -> None:
        assert self.seq is not None
        while True:
            page = await self._log.positions(self.organisation, self.session_id, self.seq, PAGE_SIZE)
            if page:
                self._deliver_frames([frame_from_log(item) for item in page])
            if len(page) < PAGE_SIZE:
                return

    async def _load_preview(self) -> None:
        needed, self._needed_delta = self._needed_delta, None
        found = await self._read_open_preview(self.organisation, self.session_id)
        if found is not None:
            await self._adopt_preview(*found)
        preview = self._preview
        if needed is not None and (preview is None or preview.id != needed.id or preview.length < needed.offset):
            self._mark_finished(needed.id)

    async def _adopt_preview(self, start: PreviewStart, text: str) -> None:
        assert self.seq is not None
        if start.after_seq > self.seq:
            await self._read_log()
        if start.id in self._finished_previews:
            return
        if self._preview is not None and self._preview.id == start.id:
            if len(text) > self._preview.length:
                self._extend_preview(self._preview, text[self._preview.length :])
        elif start.after_seq < self.seq and await self._is_finished(start):
            self._mark_finished(start.id)
        else:
            self._show_preview(PreviewText(start.id, start.type, text))

    async def _is_finished(self, start: PreviewStart) -> bool:
        """Whether the log has passed the preview. Also True if that cannot be decided from one page."""
        assert self.seq is not None
        page = await self._log.positions(self.organisation, self.session_id, start.after_seq, PAGE_SIZE)
        closed = any(
            item.event.id == start.id or item.event.type in live_entry_codec.PREVIEW_CLOSING_TYPES for item in page
        )
        return closed or not page or page[-1].seq < self.seq


def _frame_from_entry(item: DurableEvent) -> Frame:
    return Frame(item.seq, item.id, item.type, sse.encode_event(item.seq, item.event), item.event)


def frame_from_log(item: Position) -> Frame:
    return Frame(item.seq, item.event.id, item.event.type, sse.encode_position(item), item.event.body)
