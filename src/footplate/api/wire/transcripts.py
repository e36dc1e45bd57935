"""Wire format of transcripts: JSON lines. The first line describes the session; each further line wraps one transcript
line.
"""

from collections.abc import AsyncIterator
from typing import Annotated, Final

import orjson
from pydantic import Field

from footplate.api.wire.base import Body, Context, Id, Metadata
from footplate.api.wire.sessions import AgentChoice, Title
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.ports import Entry
from footplate.domain.transcripts import Leaving, Line

LINES: Final = "application/x-ndjson"
_NOT_OURS: Final = 'Each line must be {"line": {…}}, with a "subpath" for lines of a subagent.'


class SessionImport(Body):
    """The first line of an import. Each transcript line follows as `{"line": {…}}`, with `subpath` for lines of a
    subagent.
    """

    agent: AgentChoice
    environment_id: Id
    title: Title | None = None
    metadata: Annotated[Metadata, Field(default_factory=dict)]
    context: Context | None = None


def line_of(number: int, value: JsonObject) -> Line:
    body, subpath = value.get("line"), value.get("subpath", "")
    if not isinstance(body, dict) or not isinstance(subpath, str) or not value.keys() <= {"line", "subpath"}:
        raise InvalidRequest(
            f"Line {number} has an unknown format.",
            field=f"lines.{number}",
            help_text=f"{_NOT_OURS} Nothing was stored.",
        )
    return Line(body, subpath)


async def written(export: Leaving, conversation: AsyncIterator[Entry]) -> AsyncIterator[bytes]:
    """Yields the lines of an exported transcript. The last line has their number, so that a truncated export is
    detected.
    """
    yield _dumped({"type": "transcript", "transcript_id": export.transcript_id})
    count = 0
    async for entry in conversation:
        for line in export.lines(entry):
            count += 1
            yield _line(line)
    for line in export.last():
        count += 1
        yield _line(line)
    yield _dumped({"type": "end", "lines": count})


def _line(line: Line) -> bytes:
    return _dumped({"line": line.body, "subpath": line.subpath} if line.subpath else {"line": line.body})


def _dumped(value: JsonObject) -> bytes:
    return orjson.dumps(value) + b"\n"
