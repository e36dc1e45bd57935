"""Wire format of transcripts: JSON lines. The first line describes the session; each further line wraps one transcript
line.
"""

from collections.abc import AsyncIterator
from typing import Annotated, Final

import orjson
from pydantic import Field

from footplate.api.wire.request_base import Body, Context, Id, Metadata
from footplate.api.wire.session.sessions import AgentChoice, Title
from footplate.api.wire.visibility import TeamId, VisibilityName
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import Entry
from footplate.domain.ports.transcript_exchange import TranscriptExport, TranscriptLine

JSON_LINES: Final = "application/x-ndjson"
_LINE_FORMAT: Final = 'Each line must be {"line": {…}}, with a "subpath" for lines of a subagent.'


class SessionImport(Body):
    """The first line of an import. Each transcript line follows as `{"line": {…}}`, with `subpath` for lines of a
    subagent.
    """

    agent: AgentChoice
    environment_id: Id
    title: Title | None = None
    metadata: Annotated[Metadata, Field(default_factory=dict)]
    context: Context | None = None
    visibility: VisibilityName = "organisation"
    team_id: TeamId = None


def parse_transcript_line(number: int, value: JsonObject) -> TranscriptLine:
    body, subpath = value.get("line"), value.get("subpath", "")
    if not isinstance(body, dict) or not isinstance(subpath, str) or not value.keys() <= {"line", "subpath"}:
        raise InvalidRequest(
            f"Line {number} is not a valid transcript line.",
            field=f"lines.{number}",
            help_text=f"{_LINE_FORMAT} Nothing was stored.",
        )
    return TranscriptLine(body, subpath)


async def export_lines(export: TranscriptExport, conversation: AsyncIterator[Entry]) -> AsyncIterator[bytes]:
    """Yields the lines of an exported transcript. The last line has their number, so that a truncated export is
    detected.
    """
    yield _encode({"type": "transcript", "transcript_id": export.transcript_id})
    count = 0
    async for entry in conversation:
        for line in export.export_entry(entry):
            count += 1
            yield _encode_line(line)
    for line in export.closing_lines():
        count += 1
        yield _encode_line(line)
    yield _encode({"type": "end", "lines": count})


def _encode_line(line: TranscriptLine) -> bytes:
    return _encode({"line": line.body, "subpath": line.subpath} if line.subpath else {"line": line.body})


def _encode(value: JsonObject) -> bytes:
    return orjson.dumps(value) + b"\n"
