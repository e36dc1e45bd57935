"""Imports transcripts of Claude Code as sessions, and exports sessions as transcripts.

Lines are stored unchanged. Lines that describe the machine, such as worktree paths and permissions, are skipped in both
directions. Claude Code ignores a tool call without a result, so every open call gets a result.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import orjson

from footplate.domain.agents.mcp_servers import ToolNames
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.harness import Entry
from footplate.domain.ports.transcript_exchange import (
    IMPORTED,
    ImportedLine,
    TranscriptLine,
    TranscriptLines,
    TranscriptOrigin,
    check_subpath,
    is_safe_subpath,
)
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event
from footplate.harness.claude.transcripts import sdk_message_parser, transcript_lines
from footplate.harness.claude.transcripts.sdk_message_parser import Call, Fact, Ignored, ResponseLine, ToolResults
from footplate.harness.claude.transcripts.transcript_lines import TranscriptKey
from footplate.harness.recovery_text import UNFINISHED, UNKNOWN

CONVERSATION_LINE_TYPES: Final = frozenset(
    {
        "user", "assistant", "attachment", "system", "progress", "summary", "custom-title", "ai-title", "last-prompt",
        "content-replacement", "agent_metadata",
    }
)  # fmt: skip
"""Types of lines that are imported and exported."""
_PROJECT: Final = "imported"
_REPEATED_FIELDS: Final = ("uuid", "timestamp", "cwd", "sessionId", "version", "userType", "gitBranch")
"""Fields of a call's line that its result repeats. Only these fields are held in memory."""
MAX_OPEN_CALLS: Final = 1000
MAX_OPEN_CALL_BYTES: Final = 32 << 20
"""Limits for calls without a result, which are held in memory with their inputs until the transcript ends."""
_NO_SERVERS: Final = ToolNames(())
"""The MCP servers of an imported transcript are unknown, so MCP tools keep the CLI's names."""
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class ClaudeTranscripts:
    def parse_import(self, lines: TranscriptLines) -> tuple[TranscriptOrigin, Iterator[ImportedLine]]:
        survey = _TranscriptSurvey()
        for number, line in enumerate(lines(), 1):
            survey.add_line(number, line)
        if not survey.messages:
            raise InvalidRequest(
                "The transcript contains no messages.",
                field="lines",
                help_text="Send the lines of a session's transcript: a .jsonl file below ~/.claude/projects.",
            )
        return TranscriptOrigin(survey.session, survey.version), _imported_lines(lines(), survey)

    def start_export(self, session_id: str) -> "ClaudeTranscriptExport":
        return ClaudeTranscriptExport(transcript_lines.derive_uuid(session_id))


class ClaudeTranscriptExport:
    def __init__(self, transcript_id: str) -> None:
        self.transcript_id = transcript_id
        self._open: dict[str, tuple[Call, JsonObject]] = {}

    def export_entry(self, entry: Entry) -> Iterable[TranscriptLine]:
        if entry.kind != transcript_lines.LINE:
            return
        line, subpath = transcript_lines.line_of(entry), transcript_lines.key_of(entry).subpath
        if line.get("type") not in CONVERSATION_LINE_TYPES or not is_safe_subpath(subpath):
            return
        if not subpath:
            _track_open_calls(self._open, line, transcript_lines.parse_line(line))
        yield TranscriptLine(self._with_session_id(line), subpath)

    def closing_lines(self) -> Iterable[TranscriptLine]:
        """Results for calls that are still open. A stopped turn's calls are usually closed by the next turn, but an
        exported transcript has no next turn.
        """
        for call, call_line in self._open.values():
            line = transcript_lines.closing_line(
                call, call_line, UNFINISHED, timestamp=str(call_line.get("timestamp") or _now())
            )
            yield TranscriptLine(self._with_session_id(line))

    def _with_session_id(self, line: JsonObject) -> JsonObject:
        if line.get("type") == "agent_metadata":
            return line
        return {"type": line.get("type"), **line, "sessionId": self.transcript_id}


@dataclass(slots=True)
class _TranscriptSurvey:
    """Facts about the whole transcript that are needed before its first line is stored."""

    session: str = ""
    version: str = ""
    messages: int = 0
    open: dict[str, tuple[Call, JsonObject]] = field(default_factory=dict)
    """Calls without a result in the transcript, each with its line."""
    passed: set[str] = field(default_factory=set)
    """Open calls after which the conversation continued."""
    _response_id: str = ""
    _recent: set[str] = field(default_factory=set)
    """Open calls after which the conversation has not continued so far."""
    _sizes: dict[str, int] = field(default_factory=dict)
    """Size of the input of each open call, in bytes."""

    def add_line(self, number: int, line: TranscriptLine) -> None:
        check_subpath(line.subpath)
        kind = line.body.get("type")
        if not isinstance(kind, str):
            raise _invalid_line(number, "its type is missing")
        if line.subpath or kind not in CONVERSATION_LINE_TYPES:
            return
        try:
            fact = transcript_lines.parse_line(line.body)
        except Exception as error:
            # A line that cannot be parsed now would fail the next turn later.
            raise _invalid_line(number, f"this {kind!r} line has an unknown format") from error
        self.session = _text(line.body, "sessionId") or self.session
        self.version = _text(line.body, "version") or self.version
        self.messages += bool(isinstance(fact, ResponseLine | ToolResults) or _user_content(line.body))
        _track_open_calls(self.open, line.body, fact)
        self._follow_recent(number, fact)
        if isinstance(fact, ResponseLine) and fact.message_id != self._response_id:
            self._mark_passed(but={call.id for call in fact.calls})
            self._response_id = fact.message_id
        elif _user_content(line.body):
            self._mark_passed(but=set())
            self._response_id = ""

    def _mark_passed(self, *, but: set[str]) -> None:
        self.passed |= self._recent - but
        self._recent &= but

    def _follow_recent(self, number: int, fact: Fact) -> None:
        if isinstance(fact, ResponseLine):
            self._recent |= {call.id for call in fact.calls}
            self._sizes |= {call.id: len(orjson.dumps(call.input)) for call in fact.calls}
            if len(self.open) > MAX_OPEN_CALLS or sum(self._sizes.values()) > MAX_OPEN_CALL_BYTES:
                raise _invalid_line(number, "too many earlier calls have no result")
        elif isinstance(fact, ToolResults):
            done = {result.call_id for result in fact.results}
            self._recent -= done
            self.passed -= done
            for call_id in done:
                self._sizes.pop(call_id, None)


def _track_open_calls(calls: dict[str, tuple[Call, JsonObject]], line: JsonObject, fact: Fact) -> None:
    if isinstance(fact, ResponseLine):
        calls.update(
            {call.id: (call, {name: line[name] for name in _REPEATED_FIELDS if name in line}) for call in fact.calls}
        )
    elif isinstance(fact, ToolResults):
        for result in fact.results:
            calls.pop(result.call_id, None)


def _imported_lines(lines: Iterable[TranscriptLine], survey: _TranscriptSurvey) -> Iterator[ImportedLine]:
    key = TranscriptKey(_PROJECT, survey.session)
    event_maker = _EventMaker()
    yield ImportedLine([transcript_lines.session_entry(IMPORTED, survey.session, survey.version)])
    ending = {call_id: open_call for call_id, open_call in survey.open.items() if call_id not in survey.passed}
    in_main = True
    for line in lines:
        if in_main and line.subpath:
            in_main = False
            yield from _close_calls(ending, key, event_maker)
        if line.body.get("type") not in CONVERSATION_LINE_TYPES:
            continue
        if line.subpath:
            yield ImportedLine(
                [
                    transcript_lines.line_entry(
                        IMPORTED, TranscriptKey(_PROJECT, survey.session, line.subpath), line.body
                    )
                ]
            )
            continue
        fact = transcript_lines.parse_line(line.body)
        entry = transcript_lines.line_entry(IMPORTED, key, line.body)
        yield ImportedLine([entry], event_maker.events(line.body, fact), _timestamp(line.body))
        if isinstance(fact, ResponseLine):
            open_ids = [call.id for call in fact.calls if call.id in survey.passed and call.id in survey.open]
            passed = {call_id: survey.open[call_id] for call_id in open_ids}
            yield from _close_calls(passed, key, event_maker)
    if in_main:
        yield from _close_calls(ending, key, event_maker)


def _close_calls(
    open_: dict[str, tuple[Call, JsonObject]], key: TranscriptKey, event_maker: "_EventMaker"
) -> Iterator[ImportedLine]:
    """Adds a result to each open call.

    The lines form a tree, and Claude Code continues from the last leaf. If the conversation continued after a call, the
    result is inserted directly after that call. At the end of the file it would become the last leaf, and Claude Code
    would ignore all lines after the call.
    """
    for call, call_line in open_.values():
        line = transcript_lines.closing_line(
            call, call_line, UNKNOWN, timestamp=_text(call_line, "timestamp") or _now()
        )
        entry = transcript_lines.line_entry(IMPORTED, key, line)
        yield ImportedLine([entry], event_maker.events(line, transcript_lines.parse_line(line)), _timestamp(call_line))


class _EventMaker:
    """Creates the events of the imported lines. A line that occurs twice produces its events once."""

    def __init__(self) -> None:
        self._seen_uuids: set[str] = set()
        self._uses: dict[str, Event] = {}

    def events(self, line: JsonObject, fact: Fact) -> list[Event]:
        name = _text(line, "uuid")
        if name and name in self._seen_uuids:
            return []
        self._seen_uuids.add(name)
        if isinstance(fact, ResponseLine):
            return [*sdk_message_parser.text_events(fact.parts, {}), *(self._use_event(call) for call in fact.calls)]
        if isinstance(fact, ToolResults):
            # A result without a known call is skipped, because its event would refer to no call.
            results = [result for result in fact.results if result.call_id in self._uses]
            return [sdk_message_parser.tool_result_event(self._uses.pop(result.call_id), result) for result in results]
        if line.get("type") == "system" and line.get("subtype") == "compact_boundary":
            return [ev.context_compacted()]
        if isinstance(fact, Ignored) and (content := _user_content(line)):
            return [Event(ev.USER_MESSAGE, {"content": content})]
        return []

    def _use_event(self, call: Call) -> Event:
        use = self._uses[call.id] = sdk_message_parser.tool_use_event(call, _NO_SERVERS)
        return use


def _user_content(line: JsonObject) -> list[Json]:
    """The content of a user's message. Empty for lines that the CLI writes in the user's role."""
    attachment = line.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return _to_blocks(attachment.get("prompt"))
    cli_flags = ("isMeta", "isCompactSummary", "isSidechain", "isVisibleInTranscriptOnly", "toolUseResult")
    if line.get("type") != "user" or any(line.get(name) for name in cli_flags):
        return []
    message = line.get("message")
    return _to_blocks(message.get("content")) if isinstance(message, dict) else []


def _to_blocks(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [ev.text_block(content)] if content else []
    found = [_to_block(block) for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return [block for block in found if block is not None]


def _to_block(block: JsonObject) -> JsonObject | None:
    source = block.get("source")
    if block.get("type") == "text" and isinstance(text := block.get("text"), str) and text:
        return ev.text_block(text)
    if block.get("type") == "image" and isinstance(source, dict) and source.get("media_type") in _IMAGES:
        data = source.get("data")
        if source.get("type") == "base64" and isinstance(data, str) and data:
            image_source: JsonObject = {"type": "base64", "media_type": source["media_type"], "data": data}
            return {"type": "image", "source": image_source}
    return None


def _timestamp(line: JsonObject) -> datetime | None:
    """The line's timestamp, but never later than now: the log has no events from the future."""
    try:
        parsed = datetime.fromisoformat(_text(line, "timestamp"))
        aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        return min(aware.astimezone(UTC), datetime.now(UTC))
    except (ValueError, OverflowError):
        return None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(line: JsonObject, name: str) -> str:
    value = line.get(name)
    return value if isinstance(value, str) else ""


def _invalid_line(number: int, reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"Line {number} is not a valid transcript line: {reason}. Nothing was stored.",
        field=f"lines.{number}",
        help_text="Remove the line, or import another transcript.",
    )
