"""Converts lines of Claude Code's transcript to entries of the conversation, and back.

A line is stored unchanged. Its entry adds the turn and the SDK's key: project, session and subagent. Loading ignores
the project, because it is derived from a directory on a certain host. Loading also replaces the session id in each
line, because the first lines of a fork come from its parent.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import claude_agent_sdk as sdk
from claude_agent_sdk._errors import MessageParseError
from claude_agent_sdk._internal.message_parser import parse_message

from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.harness import Entry
from footplate.harness import approvals
from footplate.harness.approvals import ApprovalLedger
from footplate.harness.claude.transcripts import sdk_message_parser
from footplate.harness.claude.transcripts.sdk_message_parser import (
    ContextCompacted,
    Fact,
    Ignored,
    ResponseLine,
    ToolResults,
)

LINE: Final = "claude"
SESSION: Final = "claude.session"
"""The CLI's version and session id. Stored whenever one of them changes."""
MARK: Final = "claude.mark"
"""Footplate's mark that the user interrupted the turn here."""

_UUID_NAMESPACE: Final = uuid.UUID("5d5f6b1e-3f0c-4d0e-9a53-6b8a7c1f2e90")


@dataclass(frozen=True, slots=True)
class TranscriptKey:
    project: str
    session: str
    subpath: str = ""

    @classmethod
    def from_session_key(cls, key: sdk.SessionKey) -> "TranscriptKey":
        return cls(key["project_key"], key["session_id"], key.get("subpath", ""))


def derive_uuid(name: str) -> str:
    """A uuid derived from a Footplate id. It is the same on every host and in every attempt."""
    return str(uuid.uuid5(_UUID_NAMESPACE, name))


def line_entry(turn_id: str, key: TranscriptKey, line: JsonObject) -> Entry:
    body: JsonObject = {"turn_id": turn_id, "project": key.project, "session": key.session, "line": line}
    return Entry(LINE, {**body, "subpath": key.subpath} if key.subpath else body)


def session_entry(turn_id: str, session_id: str, version: str) -> Entry:
    return Entry(SESSION, {"turn_id": turn_id, "session_id": session_id, "version": version})


def interrupted_mark(turn_id: str) -> Entry:
    return Entry(MARK, {"turn_id": turn_id, "interrupted": True})


def key_of(entry: Entry) -> TranscriptKey:
    body = entry.body
    return TranscriptKey(str(body.get("project")), str(body.get("session")), str(body.get("subpath") or ""))


def line_of(entry: Entry) -> JsonObject:
    line = entry.body["line"]
    assert isinstance(line, dict)
    return line


def parse_line(line: JsonObject, *, in_subagent: bool = False) -> Fact:
    """Parses a line with the SDK, because it has the format of a message. `in_subagent`: the line of a subagent."""
    if line.get("type") == "system" and line.get("subtype") == "compact_boundary":
        return ContextCompacted()
    if line.get("type") not in {"user", "assistant"} or bool(line.get("isSidechain")) is not in_subagent:
        return Ignored(str(line.get("type")))
    try:
        message = parse_message(dict(line))
    except MessageParseError:
        return Ignored("unreadable")
    fact = sdk_message_parser.read_message(message)
    if isinstance(fact, ToolResults):
        is_rejection = line.get("toolDenialKind") == "user-rejected"
        return replace(fact, is_rejection=is_rejection, details=line.get("toolUseResult"))
    # If there is no response, the CLI writes a message of its own in its place.
    return Ignored("synthetic") if isinstance(fact, ResponseLine) and fact.is_synthetic else fact


def parse_entry(entry: Entry) -> Fact:
    """Parses an entry of the primary thread. Lines of subagents are ignored."""
    return Ignored(entry.kind) if entry.kind != LINE or entry.body.get("subpath") else parse_line(line_of(entry))


def response_metadata(line: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], str | None]:
    """The model, the token counts, and the stop reason of a response's line. There is no reason if more lines
    follow.
    """
    message = line.get("message") or {}
    return str(message.get("model")), message.get("usage") or {}, message.get("stop_reason")


def starting_call_id(line: JsonObject) -> str | None:
    """The id of the call that started the subagent, if this line of its transcript contains it."""
    found = line.get("toolUseId")
    return found if line.get("type") == "agent_metadata" and isinstance(found, str) else None


def is_error_notice(line: JsonObject) -> bool:
    """Whether the line is the CLI's own message about a failed request. It is not stored, because the next attempt
    repeats the request.
    """
    return bool(line.get("isApiErrorMessage"))


def input_uuid(line: JsonObject) -> str | None:
    """The uuid of the input that a line adds to the conversation: a prompt, or a message that joined a running turn."""
    attachment = line.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        source = attachment.get("source_uuid")
        return source if isinstance(source, str) else None
    if line.get("isCompactSummary"):
        return None  # the CLI's own summary of the conversation
    found = line.get("uuid")
    return found if line.get("type") == "user" and isinstance(found, str) else None


class Transcript:
    """The entries of this harness in a conversation. Entries of other harnesses are skipped."""

    def __init__(self, history: Sequence[Entry]) -> None:
        self.entries = [entry for entry in history if entry.kind == LINE]
        self.primary_entries = [entry for entry in self.entries if not entry.body.get("subpath")]
        self.inputs = {input_id for entry in self.primary_entries if (input_id := input_uuid(line_of(entry)))}
        self._interrupted_turns = {entry.body.get("turn_id") for entry in history if entry.kind == MARK}
        self.approvals = ApprovalLedger()
        for entry in history:
            if entry.kind == approvals.MARK:
                self.approvals.add_mark(entry)
        named = [entry.body for entry in history if entry.kind == SESSION]
        self.session_id = str(named[-1].get("session_id")) if named else None
        self.version = str(named[-1].get("version")) if named else None

    def lines_of_turn(self, turn_id: str) -> list[JsonObject]:
        return [line_of(entry) for entry in self.primary_entries if entry.body.get("turn_id") == turn_id]

    def was_interrupted(self, turn_id: str) -> bool:
        return turn_id in self._interrupted_turns

    def open_calls(self) -> list[tuple[sdk_message_parser.Call, JsonObject]]:
        """Calls without a result, each with its line. A turn first closes the calls of the previous one, so only the
        last two turns can have open calls.
        """
        calls: dict[str, tuple[sdk_message_parser.Call, JsonObject]] = {}
        last = {*[*dict.fromkeys(entry.body.get("turn_id") for entry in self.primary_entries)][-2:]}
        for entry in (entry for entry in self.primary_entries if entry.body.get("turn_id") in last):
            fact = parse_line(line_of(entry))
            if isinstance(fact, ResponseLine):
                calls.update({call.id: (call, line_of(entry)) for call in fact.calls})
            elif isinstance(fact, ToolResults):
                for result in fact.results:
                    calls.pop(result.call_id, None)
        return [*calls.values()]

    def subpaths(self) -> list[str]:
        return sorted({key_of(entry).subpath for entry in self.entries} - {""})

    def files(self, session_id: str) -> dict[str, bytes]:
        """The transcript's files, by subpath."""
        return {subpath: self.file(session_id, subpath) for subpath in ("", *self.subpaths()) if self.primary_entries}

    def file(self, session_id: str, subpath: str = "") -> bytes:
        """One file of the transcript, in the CLI's format."""
        lines = (line_of(entry) for entry in self.entries if key_of(entry).subpath == subpath)
        return b"".join(_encode_line({**line, "sessionId": session_id}) for line in lines)


def closing_line(
    call: sdk_message_parser.Call, call_line: JsonObject, result: Json, *, timestamp: str, is_error: bool = True
) -> JsonObject:
    """The transcript line of a result for a call that has none, where the CLI would have put its own."""
    content: list[Json] = [{"type": "tool_result", "tool_use_id": call.id, "content": result, "is_error": is_error}]
    copied: JsonObject = {
        name: call_line[name] for name in ("cwd", "sessionId", "version", "userType", "gitBranch") if name in call_line
    }
    return {
        **copied,
        "parentUuid": call_line.get("uuid"),
        "isSidechain": False,
        "type": "user",
        "message": {"role": "user", "content": content},
        "uuid": derive_uuid(f"{call_line.get('uuid')} {call.id}"),
        "timestamp": timestamp,
        "sourceToolAssistantUUID": call_line.get("uuid"),
    }


def filter_new_lines(lines: Iterable[Any], known: set[str]) -> list[JsonObject]:
    """The lines whose uuid is new. Their uuids are added to `known`."""
    new_lines = []
    for line in lines:
        name = line.get("uuid")
        if not isinstance(name, str):
            new_lines.append(line)
        elif name not in known:
            known.add(name)
            new_lines.append(line)
    return new_lines


def _encode_line(line: JsonObject) -> bytes:
    """Encodes a line with its type first, because the CLI finds some lines by how they start."""
    ordered = {"type": line["type"], **line} if "type" in line else line
    return json.dumps(ordered, separators=(",", ":")).encode() + b"\n"
