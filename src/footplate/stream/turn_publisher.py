"""Publishes the live events of a running turn in their order: text previews, and events that are already in the log.

Small pieces of text are sent together if they follow each other quickly.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Final

from footplate.domain import ids
from footplate.domain.json import clean_text
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Position, PreviewType
from footplate.stream import live_entry_codec, redis_keys
from footplate.stream.live_entry_codec import PreviewDelta, PreviewStart, PublishedItem, RedisCommand
from footplate.stream.live_publisher import LivePublisher

FLUSH_SECONDS: Final = 0.02
_IDLE_FLUSH_SECONDS: Final = 0.005
_HOLD_SECONDS: Final = 0.1
_HELD_TYPES: Final = frozenset({events.STATUS_RUNNING, events.MODEL_REQUEST_END})
MAX_TEXT: Final = 1_000_000
"""Maximum number of characters of a preview that are published while it is written."""


class OpenPreview:
    """Implements the `Preview` port."""

    def __init__(self, turn: "TurnPublisher", event_type: PreviewType) -> None:
        self._turn = turn
        self.event_type = event_type
        self.event_id = ids.new_id(ids.EVENT)

    def write(self, text: str) -> None:
        self._turn.write(self, text)


class TurnPublisher:
    def __init__(
        self,
        publisher: LivePublisher,
        organisation: str,
        session_id: str,
        *,
        after_seq: int = 0,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        """`after_seq` is the last position that the turn knows, for example that of its claim."""
        self._publisher = publisher
        self._organisation = organisation
        self._session_id = session_id
        self._after_seq = after_seq
        self._flush_seconds = flush_seconds
        self._stream = redis_keys.stream_key(redis_keys.shard_of(session_id))
        self._preview_key = redis_keys.open_preview_key(organisation, session_id)
        self._items: list[PublishedItem] = []
        """Content of the next entry, in order. `_buffered` follows it."""
        self._open_preview: OpenPreview | None = None
        self._has_saved_preview = True
        """Whether Redis may have an open preview of this session, for example from an earlier attempt."""
        self._closes_saved_preview = False
        """Whether the waiting items close the saved preview."""
        self._sent_chars = 0
        self._buffered: list[str] = []
        self._remaining_chars = 0
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._flush_at = math.inf
        """When the timer is due. Stored here, because uvloop's timer has no `when` if it is due immediately."""
        self._next_flush = 0.0

    def preview(self, event_type: PreviewType) -> OpenPreview:
        """Opens a preview. A preview that is still open is abandoned, because a session has one at a time."""
        self._abandon_preview()
        self._open_preview = opened = OpenPreview(self, event_type)
        self._sent_chars, self._remaining_chars = 0, MAX_TEXT
        self._items.append(PreviewStart(opened.event_id, event_type, self._after_seq))
        self._flush_by(self._loop.time())  # by a timer, so that the first text is sent with it
        return opened

    def write(self, preview: OpenPreview, text: str) -> None:
        """Adds text to a preview. The first piece is sent immediately, so that the first token is not delayed. Pieces
        that follow within the flush interval are sent as one entry.

        The interval is short while the process has nothing else to send, and longer while other data is queued. Text
        beyond `MAX_TEXT` is omitted from the preview; the finished event has all of it.
        """
        if (
            preview is not self._open_preview
            or preview.event_type not in live_entry_codec.TEXT_PREVIEW_TYPES
            or self._remaining_chars <= 0
            or not text
        ):
            return
        text = clean_text(text)[: self._remaining_chars]
        self._remaining_chars -= len(text)
        self._buffered.append(text)
        if self._loop.time() >= self._next_flush:
            self.flush()
        else:
            self._flush_by(self._next_flush)

    async def publish(self, positions: Sequence[Position]) -> None:
        """Publishes events after any buffered preview text. Returns immediately.

        The start of a turn and the end of a model request wait for the next event, for at most `_HOLD_SECONDS`. Other
        events are sent at once.
        """
        if not positions:
            return
        self._move_text_to_items()
        self._items.append(positions)
        self._after_seq = max(self._after_seq, positions[-1].seq)
        if any(self._closes_preview(item) for item in positions):
            self._open_preview, self._closes_saved_preview = None, True
        if positions[-1].event.type in _HELD_TYPES:
            self._flush_by(self._loop.time() + _HOLD_SECONDS)
        else:
            self.flush()

    def flush(self) -> None:
        """Sends all waiting text and events as one entry. If the queue is full, only the items of the
        open preview are kept.
        """
        self._stop_timer()
        self._move_text_to_items()
        if not self._items:
            return
        previews = [item for item in self._items if isinstance(item, PreviewStart | PreviewDelta)]
        if previews:
            pace = self._flush_seconds if self._publisher.is_busy else min(self._flush_seconds, _IDLE_FLUSH_SECONDS)
            self._next_flush = self._loop.time() + pace
        previews = [
            item for item in previews if self._open_preview is not None and item.id == self._open_preview.event_id
        ]
        save_commands = self._save_commands(previews)
        if self._publisher.enqueue(
            (
                *save_commands,
                live_entry_codec.append_command(self._stream, self._session_id, self._organisation, self._items),
                *self._publisher.feed_commands(self._organisation, self._items),
            )
        ):
            self._items = []
            self._closes_saved_preview = False
            self._has_saved_preview = self._open_preview is not None if save_commands else self._has_saved_preview
        else:
            self._items = list[PublishedItem](previews)  # the log has the rest

    async def aclose(self) -> None:
        self._abandon_preview()

    def _closes_preview(self, position: Position) -> bool:
        return position.event.type in live_entry_codec.PREVIEW_CLOSING_TYPES or (
            self._open_preview is not None and position.event.id == self._open_preview.event_id
        )

    def _abandon_preview(self) -> None:
        self.flush()
        self._open_preview = None
        self._items = []

    def _flush_by(self, deadline: float) -> None:
        if deadline < self._flush_at:
            self._stop_timer()
            self._flush_at = deadline
            self._timer = self._loop.call_at(deadline, self.flush)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._flush_at = None, math.inf

    def _move_text_to_items(self) -> None:
        if self._open_preview is not None and self._buffered:
            text = "".join(self._buffered)
            self._items.append(PreviewDelta(self._open_preview.event_id, self._sent_chars, text))
            self._sent_chars += len(text)
        self._buffered.clear()

    def _save_commands(self, previews: Sequence[PreviewStart | PreviewDelta]) -> Sequence[RedisCommand]:
        """Returns the commands that save the open preview for clients that join later, or remove a closed one."""
        if previews and isinstance(previews[0], PreviewStart):
            return (
                (
                    "SET",
                    self._preview_key,
                    live_entry_codec.encode_open_preview(previews),
                    "EX",
                    live_entry_codec.OPEN_PREVIEW_SECONDS,
                ),
            )
        if self._closes_saved_preview and self._has_saved_preview:
            return (("DEL", self._preview_key),)
        return (("APPEND", self._preview_key, live_entry_codec.encode_open_preview(previews)),) if previews else ()


class TurnPublishers:
    """Implements the `LiveTurns` port."""

    def __init__(self, publisher: LivePublisher) -> None:
        self._publisher = publisher

    def open_turn(self, organisation: str, session_id: str) -> TurnPublisher:
        return TurnPublisher(self._publisher, organisation, session_id)
