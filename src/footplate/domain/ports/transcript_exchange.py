"""The interface (port) for importing and exporting conversations in a harness's own transcript format, for example that
of Claude Code.

A transcript is JSON lines in one or more files; files of subagents have a subpath. The contents are untrusted data:
they are stored, shown and returned, but never acted on.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions.events import Event

IMPORTED: Final = "imported"
"""Used instead of a turn id for lines that no turn of Footplate wrote."""
_SUBPATH: Final = re.compile(r"subagents(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}){1,8}")


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    body: JsonObject
    subpath: str = ""
    """Empty for the main transcript."""


@dataclass(frozen=True, slots=True)
class ImportedLine:
    """The entries and events of one imported line. They are appended to the log together."""

    entries: Sequence[Entry]
    events: Sequence[Event] = ()
    happened_at: datetime | None = None
    """The timestamp in the transcript."""


@dataclass(frozen=True, slots=True)
class TranscriptOrigin:
    """The metadata in a transcript."""

    transcript_id: str
    version: str
    """The version of the program that wrote it."""


TranscriptLines = Callable[[], Iterable[TranscriptLine]]
"""Returns the lines. It is called twice, because a transcript is validated completely before anything is stored."""


class TranscriptExport(Protocol):
    """Exports a conversation, entry by entry."""

    transcript_id: str
    """The id of the conversation in the program."""

    def export_entry(self, entry: Entry) -> Iterable[TranscriptLine]: ...

    def closing_lines(self) -> Iterable[TranscriptLine]:
        """Return the closing lines that the program needs to resume the conversation."""


class Transcripts(Protocol):
    def parse_import(self, lines: TranscriptLines) -> tuple[TranscriptOrigin, Iterator[ImportedLine]]:
        """Validate a transcript, and return its metadata and its content. Raises `InvalidRequest`; iterating over the
        content does not raise it any more.
        """

    def start_export(self, session_id: str) -> TranscriptExport: ...


def is_safe_subpath(subpath: str) -> bool:
    """Whether a subpath is safe. It becomes a path on the user's disk and must stay below its directory."""
    return not subpath or (bool(_SUBPATH.fullmatch(subpath)) and ".." not in subpath)


def check_subpath(subpath: str) -> None:
    if not is_safe_subpath(subpath):
        raise InvalidRequest(
            f"{subpath!r} is not a valid subpath of a transcript.",
            field="subpath",
            help_text="Write it as subagents/NAME, without `.jsonl`.",
        )
