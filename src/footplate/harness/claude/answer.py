"""Tracks the model's streaming responses: shows previews, and collects the text in case a response is interrupted."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from footplate.domain.events import Event, Usage
from footplate.domain.ports import Preview, TurnLog
from footplate.harness.claude import mapping
from footplate.harness.claude.mapping import Fact, Written

MOST_SAID: Final = 64 << 20
"""Maximum characters of all responses of a turn."""
MOST_OF_AN_ANSWER: Final = 4 << 20
"""Maximum characters of one response. Its preview is held in Redis, which all sessions share."""
MOST_ANSWERS: Final = 10_000


@dataclass(slots=True)
class _Part:
    kind: Written
    preview: Preview | None = None
    pieces: list[str] = field(default_factory=list)
    shown: int = 0
    """Number of pieces that the preview shows."""

    def show(self, log: TurnLog) -> None:
        if self.shown < len(self.pieces):
            self.preview = self.preview or log.preview(self.kind)
            self.preview.write("".join(self.pieces[self.shown :]))
            self.shown = len(self.pieces)


@dataclass(slots=True)
class Answer:
    model: str
    counted: dict[str, Any]
    """Token counts so far, by the provider's field names."""
    complete: bool = False
    stopped: bool = True
    """False if the last update has no stop reason, as for a response that was cut off."""
    blocks: set[int] = field(default_factory=set)
    """Indexes of the blocks that the finished response is certain to have."""
    _parts: dict[int, _Part] = field(default_factory=dict)

    def write(self, index: int, kind: Written, text: str) -> None:
        self.blocks.add(index)
        self._parts.setdefault(index, _Part(kind)).pieces.append(text)

    def show(self, log: TurnLog) -> None:
        for part in self._parts.values():
            part.show(log)

    @property
    def ids(self) -> dict[int, str]:
        return {index: part.preview.event_id for index, part in self._parts.items() if part.preview is not None}

    @property
    def text(self) -> str:
        parts = (part for _, part in sorted(self._parts.items()) if part.kind == "agent.message")
        return "".join(piece for part in parts for piece in part.pieces)

    def partial(self) -> list[Event]:
        parts: list[tuple[Written, str]] = []
        ids = {}
        for number, (_, part) in enumerate(sorted(self._parts.items())):
            parts.append((part.kind, "".join(part.pieces)))
            if part.preview is not None:
                ids[number] = part.preview.event_id
        return mapping.spoken(parts, ids)


class Answers:
    """Responses of the primary thread that the CLI streams and that are not fully in the transcript yet."""

    def __init__(self, log: TurnLog, *, may_show: Callable[[], bool]) -> None:
        """`may_show`: False while a tool result that precedes the response is not logged yet."""
        self._log = log
        self._shows = may_show
        self._found: dict[str, Answer] = {}
        self._said = self._said_now = self._begun = 0
        self._current: Answer | None = None
        self._last: Answer | None = None

    def hear(self, fact: Fact) -> bool:
        """Updates the current response. Returns whether this fact completes it."""
        current = self._current
        match fact:
            case mapping.Begun() | mapping.Delta() if self.is_flood:
                pass
            case mapping.Begun(message_id=message_id, model=model, usage=used):
                self._begun += 1
                self._said_now = 0
                self._current = self._last = self._found[message_id] = Answer(model, dict(used))
            case mapping.BlockBegun(index=index, counts=True) if current:
                current.blocks.add(index)
            case mapping.Delta(index=index, kind=kind, text=text) if current and text:
                self._said += len(text)
                self._said_now += len(text)
                current.write(index, kind, text)
                self.show()
            case mapping.Progressed(usage=used, stopped=stopped) if current:
                current.stopped = stopped
                current.counted.update({name: count for name, count in used.items() if count is not None})
            case mapping.Completed() if current and current.stopped:
                current.complete = True
                self._current = None
                return True
        return False

    @property
    def is_flood(self) -> bool:
        """Whether a response or the whole turn exceeds the output that any model produces."""
        return self._said_now > MOST_OF_AN_ANSWER or self._said > MOST_SAID or self._begun > MOST_ANSWERS

    def show(self) -> None:
        if self._current is not None and self._shows():
            self._current.show(self._log)

    def find(self, message_id: str) -> Answer | None:
        return self._found.get(message_id)

    def take(self, message_id: str) -> Answer | None:
        """Removes and returns a response that is completely in the transcript."""
        return self._found.pop(message_id, None)

    @property
    def owed(self) -> bool:
        """Whether a complete response is not fully in the transcript yet."""
        return any(response.complete for response in self._found.values())

    @property
    def partial_text(self) -> str:
        """The text of the response that is still streaming."""
        return self._last.text if self._last is not None and not self._last.complete else ""

    def cut_short(self) -> list[Event]:
        """Events for the text that was shown but is not in the transcript, because the CLI was killed."""
        incomplete = [response for response in self._found.values() if not response.complete]
        return [event for answer in incomplete for event in answer.partial()]

    def take_silent(self) -> Usage | None:
        """Removes complete responses without any content, and returns the usage of the last one. The transcript has no
        line for such a response.
        """
        empty = [name for name, response in self._found.items() if response.complete and not response.blocks]
        popped = [self._found.pop(name) for name in empty]
        return mapping.usage(popped[-1].model, popped[-1].counted) if popped else None

    def take_last_usage(self) -> Usage | None:
        """The usage of a response that is dropped. It was paid for, so it is counted, once."""
        last, self._last = self._last, None
        if last is None or not any(response is last for response in self._found.values()):
            return None
        return mapping.usage(last.model, last.counted)
