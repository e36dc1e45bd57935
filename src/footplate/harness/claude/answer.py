"""One answer of the model while it is being said: shown as previews, collected for an answer that is cut short."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from footplate.domain.events import Event
from footplate.domain.ports import Preview, TurnLog
from footplate.harness.claude import mapping
from footplate.harness.claude.mapping import Written


@dataclass(slots=True)
class _Part:
    kind: Written
    preview: Preview
    pieces: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    model: str
    counted: dict[str, Any]
    """Tokens so far, by the provider's names."""
    complete: bool = False
    stopped: bool = True
    """False: the last word about it does not say why the model stopped, as of one that was cut off."""
    blocks: set[int] = field(default_factory=set)
    """Those that the finished answer is sure to have."""
    _parts: dict[int, _Part] = field(default_factory=dict)

    def write(self, index: int, kind: Written, text: str, log: TurnLog) -> None:
        self.blocks.add(index)
        if index not in self._parts:
            self._parts[index] = _Part(kind, log.preview(kind))
        part = self._parts[index]
        part.pieces.append(text)
        part.preview.write(text)

    @property
    def ids(self) -> dict[int, str]:
        return {index: part.preview.event_id for index, part in self._parts.items()}

    @property
    def text(self) -> str:
        parts = (part for _, part in sorted(self._parts.items()) if part.kind == "agent.message")
        return "".join(piece for part in parts for piece in part.pieces)

    def partial(self) -> list[Event]:
        said: list[tuple[Written, str]] = []
        ids = {}
        for number, (_, part) in enumerate(sorted(self._parts.items())):
            said.append((part.kind, "".join(part.pieces)))
            ids[number] = part.preview.event_id
        return mapping.spoken(said, ids)


def cut_short(answers: Iterable[Answer]) -> list[Event]:
    """What was shown of answers that the transcript does not have, because the CLI had to be killed."""
    return [event for answer in answers if not answer.complete for event in answer.partial()]
