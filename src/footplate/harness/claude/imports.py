"""Transcripts of Claude Code that come from elsewhere, and go there. Pure.

Lines are kept as they are. Those that tell about the machine that they were written on, not about the conversation, are
left out both ways: where its worktree is, what its owner had permitted.

The CLI goes on from the last leaf of the tree that the lines form, and it forgets a call that has no result. So every
open call gets one here; and where the conversation has gone on behind it, the result is put right behind the call: at
the end it would be the last leaf, and all that came after the call would be lost.
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
"""Types of lines that are kept."""
_PROJECT: Final = "imported"
_TOLD: Final = ("uuid", "timestamp", "cwd", "sessionId", "version", "userType", "gitBranch")
"""What the result of a call repeats of the call's line; the rest of the line is not held in memory."""
MOST_OPEN: Final = 1000
MOST_OPEN_BYTES: Final = 32 << 20
"""Calls without a result are held in memory, with their inputs, until the transcript ends."""
_NO_SERVERS: Final = Names(())
"""Whose an MCP tool was is not known: it keeps the CLI's name for it."""
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class ClaudeTranscripts:
    def arriving(self, lines: Lines) -> tuple[Origin, Iterator[Piece]]:
        seen = _Survey()
        for number, line in enumerate(lines(), 1):
            seen.take(number, line)
        if not seen.messages:
            raise InvalidRequest(
                "Nobody says anything in this transcript.",
                field="lines",
                help_text="Send the lines of a session: a .jsonl file below ~/.claude/projects.",
            )
        return Origin(seen.session, seen.version), _pieces(lines(), seen)

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
        """A turn that was stopped leaves calls open until the next one begins; here there is no next one of ours."""
        for call, asked in self._open.values():
            line = transcript.closing_line(call, asked, LEFT_OPEN, timestamp=str(asked.get("timestamp") or _now()))
            yield Line(self._own(line))

    def _own(self, line: JsonObject) -> JsonObject:
        if line.get("type") == "agent_metadata":
            return line
        return {"type": line.get("type"), **line, "sessionId": self.transcript_id}


@dataclass(slots=True)
class _Survey:
    """What has to be known of the whole before its first line is stored."""

    session: str = ""
    version: str = ""
    messages: int = 0
    open: dict[str, tuple[Call, JsonObject]] = field(default_factory=dict)
    """Calls that nothing in the transcript answers, each with its line."""
    passed: set[str] = field(default_factory=set)
    """Those of them behind which the conversation has gone on."""
    _answer: str = ""
    _recent: set[str] = field(default_factory=set)
    """Open calls that the conversation has not gone on behind."""
    _sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of the inputs of open calls."""

    def take(self, number: int, line: Line) -> None:
        check_subpath(line.subpath)
        kind = line.body.get("type")
        if not isinstance(kind, str):
            raise _unsound(number, "it has no type")
        if line.subpath or kind not in CONVERSATION:
            return
        try:
            fact = transcript.fact_of(line.body)
        except Exception as error:
            # Whatever a reader trips over now, a turn would trip over later.
            raise _unsound(number, f"a {kind!r} line of a shape that nobody writes") from error
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
                raise _unsound(number, "too many calls up to here have no result")
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
    """The events of a history. A line that is there twice is told once."""

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
            # A result of a call that nobody made has nothing to stand behind.
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
    """What a person said with a line; nothing where the CLI speaks in a person's place."""
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
    """Never later than now: nothing that is in the log has yet to happen."""
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
        f"Line {number} is no line of a transcript: {why}.",
        field=f"lines.{number}",
        help_text="Take the line out, or import another transcript. Nothing was stored.",
    )
