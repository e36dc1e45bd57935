"""One client connection of a stream: its position, its options, and a bounded queue of outgoing data.

The channel of the session or the feed adds data to the queue and never waits. If a client reads too slowly and its
queue is full, the queue is dropped. The client then continues from the log, at the last position that it received.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

import stamina

from footplate.domain.errors import Temporary
from footplate.domain.json import Json
from footplate.domain.ports.api import Cursor
from footplate.domain.sessions import threads
from footplate.stream import sse

QUEUE_BYTES: Final = 512 * 1024
PAGE_SIZE: Final = 100
CHUNK_BYTES: Final = 256 * 1024
_READ_RETRY_SECONDS: Final = 60.0

T = TypeVar("T")


async def read_with_retries(read: Callable[[], Awaitable[T]]) -> T:
    """Reads from the database for a client that is behind. Waits for a database that does not respond."""
    async for attempt in stamina.retry_context(
        on=(Temporary, OSError), attempts=None, timeout=_READ_RETRY_SECONDS, wait_max=1.0
    ):
        with attempt:
            return await read()
    raise AssertionError("the retries end with a result or an error")


class EncodedFrame(Protocol):
    @property
    def seq(self) -> int: ...
    @property
    def data(self) -> bytes: ...


F = TypeVar("F", bound=EncodedFrame)


@dataclass(frozen=True, slots=True)
class Frame:
    seq: int
    event_id: str
    event_type: str
    data: bytes
    body: Mapping[str, Json]
    """Determines the event's thread."""

    def is_shown(self, thread_id: str | None, *, with_extensions: bool = False) -> bool:
        return threads.is_visible(self.event_type, self.body, thread_id, with_extensions=with_extensions)


class PreviewText:
    """The known text of an open preview, always from its beginning and without gaps."""

    __slots__ = ("_pieces", "id", "length", "type")

    def __init__(self, preview_id: str, event_type: str, text: str = "") -> None:
        self.id = preview_id
        self.type = event_type
        self.length = len(text)
        self._pieces = [text]

    @property
    def text(self) -> str:
        """Joined only on demand, because appending to a string copies all of it each time."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def extend(self, text: str) -> None:
        self._pieces.append(text)
        self.length += len(text)


class Subscriber(Generic[F]):
    __slots__ = (
        "_buffer",
        "_delivered",
        "_given_up",
        "_is_shown",
        "_keepalive",
        "_last_taken",
        "_limit",
        "_loop",
        "_offset",
        "_preview_id",
        "_resume",
        "_size",
        "_taken",
        "_takes_default",
        "_timer",
        "behind",
        "deltas",
        "ended",
        "page",
        "seq",
        "silent",
        "wake",
    )

    def __init__(
        self,
        seq: int,
        *,
        cursor: Cursor | None = None,
        deltas: frozenset[str] = frozenset(),
        keepalive: float,
        limit: int = QUEUE_BYTES,
        is_shown: Callable[[F], bool],
        takes_default: bool = False,
    ) -> None:
        """`is_shown` selects the frames of this client. `takes_default`: they are those that the channel sends by
        default, so that it can receive bytes that most subscribers share.
        """
        self.seq = seq
        """The last position that was queued or delivered."""
        self.deltas = deltas
        """Preview types to send."""
        self.behind = True
        """Whether it reads the log itself. The channel skips it until it has caught up."""
        self.page = PAGE_SIZE
        """How many positions to read at once; fewer if they are large."""
        self.ended = False
        self.silent = False
        self.wake = asyncio.Event()
        self._delivered = seq
        self._buffer: list[bytes] = []
        self._size = 0
        self._taken = 0
        self._limit = limit
        self._is_shown = is_shown
        self._takes_default = takes_default
        self._resume = cursor
        self._preview_id: str | None = None
        self._offset = 0
        self._given_up: str | None = None
        self._keepalive = keepalive
        self._loop = asyncio.get_running_loop()
        self._last_taken = self._loop.time()
        self._timer = self._loop.call_later(keepalive, self._check_silence)

    def close(self) -> None:
        self._timer.cancel()

    def queue_positions(self, before: int, frames: Sequence[F], joined: bytes = b"") -> None:
        """Queues positions. `frames` are the positions after `before`. `joined` contains those that the channel sends
        by default.
        """
        last = frames[-1].seq
        if self.behind or self.seq >= last:
            return
        fresh = joined
        if self.seq > before or not self._takes_default:
            fresh = b"".join(frame.data for frame in frames if frame.seq > self.seq and self._is_shown(frame))
        if not fresh or self._enqueue(fresh):
            self.seq = last

    def queue_delta(self, seq: int, preview: PreviewText, before: int, frame: bytes) -> None:
        """Queues new text of a preview that had `before` characters. `frame` is the encoded delta for subscribers that
        have those.
        """
        if self.behind or self.seq != seq or preview.type not in self.deltas:
            return
        if self._preview_id == preview.id and self._offset == before:
            if self._enqueue(frame):
                self._offset = preview.length
        else:
            self.queue_preview(seq, preview)

    def queue_preview(self, seq: int, preview: PreviewText) -> None:
        """Queues the missing part of an open preview: its start if it is new to this connection, then its text."""
        if self.behind or self.seq != seq or preview.type not in self.deltas or preview.id == self._given_up:
            return
        if self._preview_id != preview.id:
            resume = self._resume
            offset = resume.offset if resume is not None and resume.preview_id == preview.id else 0
            if not self._enqueue(sse.encode_preview_start(seq, preview.id, preview.type, offset=offset)):
                return
            self._preview_id, self._offset = preview.id, offset
        if preview.length > self._offset and self._enqueue(
            sse.encode_preview_delta(seq, preview.id, preview.text[self._offset :], offset=preview.length)
        ):
            self._offset = preview.length

    def end_stream(self) -> None:
        self.ended = True
        self.wake.set()

    async def next_chunk(self, catch_up: Callable[[], Awaitable[bytes]]) -> bytes | None:
        """Returns the next chunk; empty after a long silence, None at the end. `catch_up` returns a chunk of the log,
        or nothing once the subscriber has joined the channel.
        """
        while True:
            if self.behind and not self.ended and (chunk := await catch_up()):
                return chunk
            self.wake.clear()
            if chunk := self.take_queued():
                return chunk
            if self.ended:
                return None
            if self.silent:
                self.reset_silence()
                return b""
            if not self.behind:
                await self.wake.wait()

    def take_queued(self) -> bytes:
        """Returns all queued data as one chunk. It counts against the limit until `mark_sent` is called."""
        if not self._buffer:
            return b""
        chunk = self._buffer[0] if len(self._buffer) == 1 else b"".join(self._buffer)
        self._buffer.clear()
        self._taken, self._size = self._size, 0
        self._delivered = self.seq
        self.reset_silence()
        return chunk

    def mark_sent(self) -> None:
        """Records that the connection has sent the last chunk and has room again."""
        self._taken = 0

    def take_page(self, page: Iterable[F]) -> bytes:
        """Returns as many frames of a page of the log as fit into a chunk, and records that they were delivered without
        the queue. The page is encoded only as far as it is needed.
        """
        chosen: list[bytes] = []
        size, last = 0, self.seq
        for frame in page:
            if self._is_shown(frame):
                if chosen and size + len(frame.data) > CHUNK_BYTES:
                    break
                chosen.append(frame.data)
                size += len(frame.data)
            last = frame.seq
        self.page = max(1, min(PAGE_SIZE, 2 * (last - self.seq)))
        self.seq = self._delivered = last
        self.reset_silence()
        return b"".join(chosen)

    def reset_silence(self) -> None:
        self._last_taken = self._loop.time()
        self.silent = False

    def _enqueue(self, data: bytes) -> bool:
        if self._taken + self._size + len(data) > self._limit:
            self.fall_behind()
            return False
        self._buffer.append(data)
        self._size += len(data)
        self.wake.set()
        return True

    def fall_behind(self) -> None:
        """Drops the queue, so that the subscriber reads the log itself. A preview in the queue stays incomplete,
        because its start must not be sent twice on one connection.
        """
        self._buffer.clear()
        self._size = 0
        self.seq = self._delivered
        self.behind = True
        if self._preview_id is not None:
            self._given_up, self._preview_id = self._preview_id, None
        self.wake.set()

    def _check_silence(self) -> None:
        remaining = self._last_taken + self._keepalive - self._loop.time()
        if remaining <= 0:
            self.silent = True
            self.wake.set()
            remaining = self._keepalive
        self._timer = self._loop.call_later(remaining, self._check_silence)
