"""Tracks the streamed model responses of the Claude Code CLI and shows them to clients as previews.

The text of a response is also collected, so that it can be logged if the response is interrupted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from footplate.domain.ports.harness import Preview, TurnLog
from footplate.domain.sessions.events import Event, Usage
from footplate.harness.claude.transcripts import sdk_message_parser
from footplate.harness.claude.transcripts.sdk_message_parser import Fact, TextEventType

MAX_TURN_CHARACTERS: Final = 64 << 20
"""Maximum characters of all responses of a turn."""
MAX_RESPONSE_CHARACTERS: Final = 4 << 20
"""Maximum characters of one response. Its preview is held in Redis, which all sessions share."""
MAX_RESPONSES: Final = 10_000


@dataclass(slots=True)
class _ResponsePart:
    kind: TextEventType
    preview: Preview | None = None
    pieces: list[str] = field(default_factory=list)
    shown_count: int = 0
    """Number of pieces that the preview shows."""

    def show(self, log: TurnLog) -> None:
        if self.shown_count < len(self.pieces):
            self.preview = self.preview or log.preview(self.kind)
            self.preview.write("".join(self.pieces[self.shown_count :]))
            self.shown_count = len(self.pieces)


@dataclass(slots=True)
class StreamedResponse:
    model: str
    token_counts: dict[str, Any]
    """Token counts so far, by the provider's field names."""
    is_complete: bool = False
    has_stop_reason: bool = True
    """False if the last update has no stop reason, as for a response that was cut off."""
    blocks: set[int] = field(default_factory=set)
    """Indexes of the blocks that the finished response is certain to have."""
    _parts: dict[int, _ResponsePart] = field(default_factory=dict)

    def write(self, index: int, kind: TextEventType, text: str) -> None:
        self.blocks.add(index)
        self._parts.setdefault(index, _ResponsePart(kind)).pieces.append(text)

    def show(self, log: TurnLog) -> None:
        for part in self._parts.values():
            part.show(log)

    @property
    def preview_ids(self) -> dict[int, str]:
        return {index: part.preview.event_id for index, part in self._parts.items() if part.preview is not None}

    @property
    def text(self) -> str:
        parts = (part for _, part in sorted(self._parts.items()) if part.kind == "agent.message")
        return "".join(piece for part in parts for piece in part.pieces)

    def partial_events(self) -> list[Event]:
        parts: list[tuple[TextEventType, str]] = []
        ids = {}
        for number, (_, part) in enumerate(sorted(self._parts.items())):
            parts.append((part.kind, "".join(part.pieces)))
            if part.preview is not None:
                ids[number] = part.preview.event_id
        return sdk_message_parser.text_events(parts, ids)


class ResponseStream:
    """Responses of the primary thread that the CLI streams and that are not fully in the transcript yet."""

    def __init__(self, log: TurnLog, *, may_show: Callable[[], bool]) -> None:
        """`may_show`: False while a tool result that precedes the response is not logged yet."""
        self._log = log
        self._may_show = may_show
        self._responses: dict[str, StreamedResponse] = {}
        self._turn_characters = self._response_characters = self._response_count = 0
        self._current: StreamedResponse | None = None
        self._last: StreamedResponse | None = None

    def handle_fact(self, fact: Fact) -> bool:
        """Updates the current response. Returns whether this fact completes it."""
        current = self._current
        match fact:
            case sdk_message_parser.ResponseStarted() | sdk_message_parser.TextDelta() if self.exceeds_limits:
                pass
            case sdk_message_parser.ResponseStarted(message_id=message_id, model=model, usage=used):
                self._response_count += 1
                self._response_characters = 0
                self._current = self._last = self._responses[message_id] = StreamedResponse(model, dict(used))
            case sdk_message_parser.BlockStarted(index=index, is_certain=True) if current:
                current.blocks.add(index)
            case sdk_message_parser.TextDelta(index=index, kind=kind, text=text) if current and text:
                self._turn_characters += len(text)
                self._response_characters += len(text)
                current.write(index, kind, text)
                self.show()
            case sdk_message_parser.UsageUpdated(usage=used, has_stop_reason=stopped) if current:
                current.has_stop_reason = stopped
                current.token_counts.update({name: count for name, count in used.items() if count is not None})
            case sdk_message_parser.ResponseCompleted() if current and current.has_stop_reason:
                current.is_complete = True
                self._current = None
                return True
        return False

    @property
    def exceeds_limits(self) -> bool:
        """Whether a response or the whole turn exceeds the output that any model produces."""
        return (
            self._response_characters > MAX_RESPONSE_CHARACTERS
            or self._turn_characters > MAX_TURN_CHARACTERS
            or self._response_count > MAX_RESPONSES
        )

    def show(self) -> None:
        if self._current is not None and self._may_show():
            self._current.show(self._log)

    def find(self, message_id: str) -> StreamedResponse | None:
        return self._responses.get(message_id)

    def pop(self, message_id: str) -> StreamedResponse | None:
        """Removes and returns a response that is completely in the transcript."""
        return self._responses.pop(message_id, None)

    @property
    def has_unrecorded_response(self) -> bool:
        """Whether a complete response is not fully in the transcript yet."""
        return any(response.is_complete for response in self._responses.values())

    @property
    def partial_text(self) -> str:
        """The text of the response that is still streaming."""
        return self._last.text if self._last is not None and not self._last.is_complete else ""

    def cut_short_events(self) -> list[Event]:
        """Events for the text that was shown but is not in the transcript, because the CLI was killed."""
        incomplete = [response for response in self._responses.values() if not response.is_complete]
        return [event for response in incomplete for event in response.partial_events()]

    def pop_empty_usage(self) -> Usage | None:
        """Removes complete responses without any content, and returns the usage of the last one. The transcript has no
        line for such a response.
        """
        empty = [name for name, response in self._responses.items() if response.is_complete and not response.blocks]
        popped = [self._responses.pop(name) for name in empty]
        return sdk_message_parser.to_usage(popped[-1].model, popped[-1].token_counts) if popped else None

    def pop_last_usage(self) -> Usage | None:
        """The usage of a response that is dropped. It was paid for, so it is counted, once."""
        last, self._last = self._last, None
        if last is None or not any(response is last for response in self._responses.values()):
            return None
        return sdk_message_parser.to_usage(last.model, last.token_counts)
