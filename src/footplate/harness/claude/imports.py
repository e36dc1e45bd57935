"""Imports transcripts of Claude Code into sessions, and exports sessions as transcripts.

Lines are stored unchanged. Lines about the machine instead of the conversation, such as worktree paths and permissions,
are skipped in both directions.

The lines form a tree. The CLI continues from its last leaf, and forgets a call that has no result. So every open call
gets a result here. If the conversation continued after the call, the result is inserted right after the call: at the
end it would become the last leaf, and everything after the call would be lost.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import orjson

from footplate.domain import events as ev
from footplate.domain.errors import InvalidRequest
from footplate.domain.events import Event
from footplate.domain.json import Json, JsonObject
from footplate.domain.mcp import Names
from footplate.domain.ports import Entry
from footplate.domain.transcripts import IMPORTED, Line, Lines, Origin, Piece, check_subpath, is_subpath
from footplate.harness.claude import mapping, transcript
from footplate.harness.claude.mapping import Answered, Call, Fact, Said, Told
from footplate.harness.claude.transcript import Place
from footplate.harness.leftovers import LEFT_OPEN, UNKNOWN

CONVERSATION: Final = frozenset(
    {
        "user", "assistant", "attachment", "system", "progress", "summary", "custom-title", "ai-title", "last-prompt",
        "content-replacement", "agent_metadata",
    }
)  # fmt: skip
"""Types of lines that are imported and exported."""
_PROJECT: Final = "imported"
_TOLD: Final = ("uuid", "timestamp", "cwd", "sessionId", "version", "userType", "gitBranch")
"""Fields of a call's line that its result repeats. Only these fields are held in memory."""
MOST_OPEN: Final = 1000
MOST_OPEN_BYTES: Final = 32 << 20
"""Limits for calls without a result, which are held in memory with their inputs until the transcript ends."""
_NO_SERVERS: Final = Names(())
"""The MCP servers of an imported transcript are unknown, so MCP tools keep the CLI's names."""
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class ClaudeTranscripts:
    def arriving(self, lines: Lines) -> tuple[Origin, Iterator[Piece]]:
        survey = _Survey()
        for number, line in enumerate(lines(), 1):
            survey.take(number, line)
        if not survey.messages:
            raise InvalidRequest(
                "The transcript contains no messages.",
                field="lines",
                help_text="Send the lines of a session, which is a .jsonl file below ~/.claude/projects.",
            )
        return Origin(survey.session, survey.version), _pieces(lines(), survey)

    def leaving(self, session_id: str) -> "ClaudeLeaving":
        return ClaudeLeaving(transcript.own_uuid(session_id))


class ClaudeLeaving:
    def __init__(self, transcript_id: str) -> None:
        self.transcript_id = transcript_id
        self._open: dict[str, tuple[Call, JsonObject]] = {}

    def lines(self, entry: Entry) -> Iterable[Line]:
        if entry.kind != transcript.LINE:
            return
        line, subpath = transcript.line_of(entry), transcript.place_of(entry).subpath
        if line.get("type") not in CONVERSATION or not is_subpath(subpath):
            return
        if not subpath:
            _follow(self._open, line, transcript.fact_of(line))
        yield Line(self._own(line), subpath)

    def last(self) -> Iterable[Line]:
        """Results for calls that are still open. A stopped turn's calls are usually closed by the next turn, but an
        exported transcript has no next turn.
        """
        for call, call_line in self._open.values():
            line = transcript.closing_line(call, call_line, LEFT_OPEN, timestamp=str(call_line.get("timestamp") or _now()))
            yield Line(self._own(line))

    def _own(self, line: JsonObject) -> JsonObject:
        if line.get("type") == "agent_metadata":
            return line
        return {"type": line.get("type"), **line, "sessionId": self.transcript_id}


@dataclass(slots=True)
class _Survey:
    """Facts about the whole transcript that are needed before its first line is stored."""

    session: str = ""
    version: str = ""
    messages: int = 0
    open: dict[str, tuple[Call, JsonObject]] = field(default_factory=dict)
    """Calls without a result in the transcript, each with its line."""
    passed: set[str] = field(default_factory=set)
    """Open calls after which the conversation continued."""
    _answer: str = ""
    _recent: set[str] = field(default_factory=set)
    """Open calls after which the conversation has not continued so far."""
    _sizes: dict[str, int] = field(default_factory=dict)
    """Size of the input of each open call, in bytes."""

    def take(self, number: int, line: Line) -> None:
        check_subpath(line.subpath)
        kind = line.body.get("type")
        if not isinstance(kind, str):
            raise _unsound(number, "its type is missing")
        if line.subpath or kind not in CONVERSATION:
            return
        try:
            fact = transcript.fact_of(line.body)
        except Exception as error:
            # A line that cannot be parsed now would fail the next turn later.
            raise _unsound(number, f"this {kind!r} line has an unknown format") from error
        self.session = _text(line.body, "sessionId") or self.session
        self.version = _text(line.body, "version") or self.version
        self.messages += bool(isinstance(fact, Said | Answered) or _content(line.body))
        _follow(self.open, line.body, fact)
        self._follow_recent(number, fact)
        if isinstance(fact, Said) and fact.message_id != self._answer:
            self._pass(but={call.id for call in fact.calls})
            self._answer = fact.message_id
        elif _content(line.body):
            self._pass(but=set())
            self._answer = ""

    def _pass(self, *, but: set[str]) -> None:
        self.passed |= self._recent - but
        self._recent &= but

    def _follow_recent(self, number: int, fact: Fact) -> None:
        if isinstance(fact, Said):
            self._recent |= {call.id for call in fact.calls}
            self._sizes |= {call.id: len(orjson.dumps(call.input)) for call in fact.calls}
            if len(self.open) > MOST_OPEN or sum(self._sizes.values()) > MOST_OPEN_BYTES:
                raise _unsound(number, "too many calls before it have no result")
        elif isinstance(fact, Answered):
            done = {result.call_id for result in fact.results}
            self._recent -= done
            self.passed -= done
            for call_id in done:
                self._sizes.pop(call_id, None)


def _follow(calls: dict[str, tuple[Call, JsonObject]], line: JsonObject, fact: Fact) -> None:
    if isinstance(fact, Said):
        calls.update({call.id: (call, {name: line[name] for name in _TOLD if name in line}) for call in fact.calls})
    elif isinstance(fact, Answered):
        for result in fact.results:
            calls.pop(result.call_id, None)


def _pieces(lines: Iterable[Line], seen: _Survey) -> Iterator[Piece]:
    place = Place(_PROJECT, seen.session)
    told = _Telling()
    yield Piece([transcript.session_entry(IMPORTED, seen.session, seen.version)])
    ending = {call_id: found for call_id, found in seen.open.items() if call_id not in seen.passed}
    in_main = True
    for line in lines:
        if in_main and line.subpath:
            in_main = False
            yield from _closed(ending, place, told)
        if line.body.get("type") not in CONVERSATION:
            continue
        if line.subpath:
            yield Piece([transcript.entry(IMPORTED, Place(_PROJECT, seen.session, line.subpath), line.body)])
            continue
        fact = transcript.fact_of(line.body)
        entry = transcript.entry(IMPORTED, place, line.body)
        yield Piece([entry], told.events(line.body, fact), _moment(line.body))
        if isinstance(fact, Said):
            open_ids = [call.id for call in fact.calls if call.id in seen.passed and call.id in seen.open]
            passed = {call_id: seen.open[call_id] for call_id in open_ids}
            yield from _closed(passed, place, told)
    if in_main:
        yield from _closed(ending, place, told)


def _closed(open_: dict[str, tuple[Call, JsonObject]], place: Place, told: "_Telling") -> Iterator[Piece]:
    for call, asked in open_.values():
        line = transcript.closing_line(call, asked, UNKNOWN, timestamp=_text(asked, "timestamp") or _now())
        entry = transcript.entry(IMPORTED, place, line)
        yield Piece([entry], told.events(line, transcript.fact_of(line)), _moment(asked))


class _Telling:
    """Creates the events of the imported lines. A line that occurs twice produces its events once."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self._uses: dict[str, Event] = {}

    def events(self, line: JsonObject, fact: Fact) -> list[Event]:
        name = _text(line, "uuid")
        if name and name in self._told:
            return []
        self._told.add(name)
        if isinstance(fact, Said):
            return [*mapping.spoken(fact.parts, {}), *(self._use(call) for call in fact.calls)]
        if isinstance(fact, Answered):
            # A result without a known call is skipped, because its event would refer to no call.
            results = [result for result in fact.results if result.call_id in self._uses]
            return [mapping.tool_result(self._uses.pop(result.call_id), result) for result in results]
        if line.get("type") == "system" and line.get("subtype") == "compact_boundary":
            return [ev.context_compacted()]
        if isinstance(fact, Told) and (content := _content(line)):
            return [Event(ev.USER_MESSAGE, {"content": content})]
        return []

    def _use(self, call: Call) -> Event:
        use = self._uses[call.id] = mapping.tool_use(call, _NO_SERVERS)
        return use


def _content(line: JsonObject) -> list[Json]:
    """The content of a user's message. Empty for lines that the CLI writes in the user's role."""
    attachment = line.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return _blocks(attachment.get("prompt"))
    own = ("isMeta", "isCompactSummary", "isSidechain", "isVisibleInTranscriptOnly", "toolUseResult")
    if line.get("type") != "user" or any(line.get(name) for name in own):
        return []
    message = line.get("message")
    return _blocks(message.get("content")) if isinstance(message, dict) else []


def _blocks(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [ev.text_block(content)] if content else []
    found = [_block(block) for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return [block for block in found if block is not None]


def _block(block: JsonObject) -> JsonObject | None:
    source = block.get("source")
    if block.get("type") == "text" and isinstance(text := block.get("text"), str) and text:
        return ev.text_block(text)
    if block.get("type") == "image" and isinstance(source, dict) and source.get("media_type") in _IMAGES:
        data = source.get("data")
        if source.get("type") == "base64" and isinstance(data, str) and data:
            kept: JsonObject = {"type": "base64", "media_type": source["media_type"], "data": data}
            return {"type": "image", "source": kept}
    return None


def _moment(line: JsonObject) -> datetime | None:
    """The line's timestamp, but never later than now: the log has no events from the future."""
    try:
        moment = datetime.fromisoformat(_text(line, "timestamp"))
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return min(aware.astimezone(UTC), datetime.now(UTC))
    except (ValueError, OverflowError):
        return None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(line: JsonObject, name: str) -> str:
    value = line.get(name)
    return value if isinstance(value, str) else ""


def _unsound(number: int, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"Line {number} is not a valid transcript line: {why}. Nothing was stored.",
        field=f"lines.{number}",
        help_text="Remove the line, or import another transcript.",
    )
