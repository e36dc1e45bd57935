"""Conversations that come from outside, and go there: what a harness makes of the transcript of its own program.

A transcript is lines of JSON in one file, or in several: those of subagents have a subpath. Its contents are
somebody's data. They are kept, shown and handed back, and nothing here acts on them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from footplate.domain.errors import InvalidRequest
from footplate.domain.events import Event
from footplate.domain.json import JsonObject
from footplate.domain.ports import Entry

IMPORTED: Final = "imported"
"""In the place of a turn's id: no turn of ours wrote these lines."""
_SUBPATH: Final = re.compile(r"subagents(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}){1,8}")


@dataclass(frozen=True, slots=True)
class Line:
    body: JsonObject
    subpath: str = ""
    """Empty for the main transcript."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What one line becomes: it goes into the log together."""

    entries: Sequence[Entry]
    events: Sequence[Event] = ()
    moment: datetime | None = None
    """When it happened, by its own account."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a transcript says of itself."""

    transcript_id: str
    version: str
    """Of the program that wrote it."""


Lines = Callable[[], Iterable[Line]]
"""They are read twice: nothing is stored of a transcript that is not sound to its end."""


class Leaving(Protocol):
    """A conversation on its way out, entry by entry."""

    transcript_id: str
    """What the program will call it."""

    def lines(self, entry: Entry) -> Iterable[Line]: ...

    def last(self) -> Iterable[Line]:
        """What has to follow at the end, so that the program can go on from there."""


class Transcripts(Protocol):
    def arriving(self, lines: Lines) -> tuple[Origin, Iterator[Piece]]:
        """Raises `InvalidRequest` for what it would not survive; from then on it does not."""

    def leaving(self, session_id: str) -> Leaving: ...


def is_subpath(subpath: str) -> bool:
    """It becomes a path on somebody's disk: only what is certain to stay below its directory."""
    return not subpath or (bool(_SUBPATH.fullmatch(subpath)) and ".." not in subpath)


def check_subpath(subpath: str) -> None:
    if not is_subpath(subpath):
        raise InvalidRequest(
            f"{subpath!r} is no subpath of a transcript.",
            field="subpath",
            help_text="Subagents are in subagents/…, without `.jsonl`.",
        )
