"""Converts lines of the CLI's transcript to entries of the conversation, and back.

A line is stored unchanged. Its entry adds the turn and the SDK's key (project, session, and a subagent's subpath). The
project is derived from a working directory on some host, so loading ignores it. Loading also replaces the session id in
the lines, because a fork's first lines are its parent's.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import claude_agent_sdk as sdk
from claude_agent_sdk._errors import MessageParseError
from claude_agent_sdk._internal.message_parser import parse_message

from footplate.domain.json import Json, JsonObject
from footplate.domain.ports import Entry
from footplate.harness import approvals
from footplate.harness.approvals import Ledger
from footplate.harness.claude import mapping
from footplate.harness.claude.mapping import Answered, Compacted, Fact, Said, Told

LINE: Final = "claude"
SESSION: Final = "claude.session"
"""The CLI's version and session id. Stored whenever one of them changes."""
MARK: Final = "claude.mark"
"""Footplate's mark that the user interrupted the turn here."""

_NAMES: Final = uuid.UUID("5d5f6b1e-3f0c-4d0e-9a53-6b8a7c1f2e90")


@dataclass(frozen=True, slots=True)
class Place:
    project: str
    session: str
    subpath: str = ""

    @classmethod
    def of(cls, key: sdk.SessionKey) -> "Place":
        return cls(key["project_key"], key["session_id"], key.get("subpath", ""))


def own_uuid(name: str) -> str:
    """A uuid derived from a Footplate id. It is the same on every host and in every attempt."""
    return str(uuid.uuid5(_NAMES, name))


def entry(turn_id: str, place: Place, line: JsonObject) -> Entry:
    body: JsonObject = {"turn_id": turn_id, "project": place.project, "session": place.session, "line": line}
    return Entry(LINE, {**body, "subpath": place.subpath} if place.subpath else body)


def session_entry(turn_id: str, session_id: str, version: str) -> Entry:
    return Entry(SESSION, {"turn_id": turn_id, "session_id": session_id, "version": version})


def mark_interrupted(turn_id: str) -> Entry:
    return Entry(MARK, {"turn_id": turn_id, "interrupted": True})


def place_of(kept: Entry) -> Place:
    body = kept.body
    return Place(str(body.get("project")), str(body.get("session")), str(body.get("subpath") or ""))


def line_of(kept: Entry) -> JsonObject:
    line = kept.body["line"]
    assert isinstance(line, dict)
    return line


def fact_of(line: JsonObject, *, inside: bool = False) -> Fact:
    """Parses a line with the SDK, because it has the format of a message. `in_subagent`: the line of a subagent."""
    if line.get("type") == "system" and line.get("subtype") == "compact_boundary":
        return Compacted()
    if line.get("type") not in {"user", "assistant"} or bool(line.get("isSidechain")) is not inside:
        return Told(str(line.get("type")))
    try:
        message = parse_message(dict(line))
    except MessageParseError:
        return Told("unreadable")
    fact = mapping.read(message)
    # If there is no response, the CLI writes a message of its own in its place.
    return Told("synthetic") if isinstance(fact, Said) and fact.synthetic else fact


def fact_in(kept: Entry) -> Fact:
    """Parses an entry of the primary thread. Lines of subagents are ignored."""
    return Told(kept.kind) if kept.kind != LINE or kept.body.get("subpath") else fact_of(line_of(kept))


def counted(line: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], str | None]:
    """The model, the token counts, and the stop reason of a response's line. There is no reason if more lines
    follow.
    """
    message = line.get("message") or {}
    return str(message.get("model")), message.get("usage") or {}, message.get("stop_reason")


def asked_by(line: JsonObject) -> str | None:
    """The id of the call that started the subagent, if this line of its transcript contains it."""
    found = line.get("toolUseId")
    return found if line.get("type") == "agent_metadata" and isinstance(found, str) else None


def is_error_notice(line: JsonObject) -> bool:
    """Whether the line is the CLI's own message about a failed request. It is not stored, because the next attempt
    repeats the request.
    """
    return bool(line.get("isApiErrorMessage"))


def inputs_of(line: JsonObject) -> str | None:
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
        self.main = [kept for kept in self.entries if not kept.body.get("subpath")]
        self.inputs = {input_id for kept in self.main if (input_id := inputs_of(line_of(kept)))}
        self._marked = {kept.body.get("turn_id") for kept in history if kept.kind == MARK}
        self.approvals = Ledger()
        for kept in history:
            if kept.kind == approvals.MARK:
                self.approvals.note(kept)
        named = [kept.body for kept in history if kept.kind == SESSION]
        self.session_id = str(named[-1].get("session_id")) if named else None
        self.version = str(named[-1].get("version")) if named else None

    def of_turn(self, turn_id: str) -> list[JsonObject]:
        return [line_of(entry) for entry in self.main if entry.body.get("turn_id") == turn_id]

    def interrupted(self, turn_id: str) -> bool:
        return turn_id in self._marked

    def open_calls(self) -> list[tuple[mapping.Call, JsonObject]]:
        """Calls without a result, each with its line. A turn first closes the calls of the previous one, so only the
        last two turns can have open calls.
        """
        calls: dict[str, tuple[mapping.Call, JsonObject]] = {}
        last = {*[*dict.fromkeys(entry.body.get("turn_id") for entry in self.main)][-2:]}
        for kept in (kept for kept in self.main if kept.body.get("turn_id") in last):
            fact = fact_of(line_of(kept))
            if isinstance(fact, Said):
                calls.update({call.id: (call, line_of(kept)) for call in fact.calls})
            elif isinstance(fact, Answered):
                for result in fact.results:
                    calls.pop(result.call_id, None)
        return [*calls.values()]

    def subpaths(self) -> list[str]:
        return sorted({place_of(entry).subpath for entry in self.entries} - {""})

    def files(self, session_id: str) -> dict[str, bytes]:
        """The transcript's files, by subpath."""
        return {subpath: self.file(session_id, subpath) for subpath in ("", *self.subpaths()) if self.main}

    def file(self, session_id: str, subpath: str = "") -> bytes:
        """One file of the transcript, in the CLI's format."""
        lines = (line_of(entry) for entry in self.entries if place_of(entry).subpath == subpath)
        return b"".join(_dumped({**line, "sessionId": session_id}) for line in lines)


def closing_line(
    call: mapping.Call, asked: JsonObject, result: Json, *, timestamp: str, is_error: bool = True
) -> JsonObject:
    """The transcript line of a result for a call that has none, where the CLI would have put its own."""
    content: list[Json] = [{"type": "tool_result", "tool_use_id": call.id, "content": result, "is_error": is_error}]
    kept: JsonObject = {
        name: asked[name] for name in ("cwd", "sessionId", "version", "userType", "gitBranch") if name in asked
    }
    return {
        **kept,
        "parentUuid": asked.get("uuid"),
        "isSidechain": False,
        "type": "user",
        "message": {"role": "user", "content": content},
        "uuid": own_uuid(f"{asked.get('uuid')} {call.id}"),
        "timestamp": timestamp,
        "sourceToolAssistantUUID": asked.get("uuid"),
    }


def fresh(lines: Iterable[Any], known: set[str]) -> list[JsonObject]:
    """The lines whose uuid is new. Their uuids are added to `known`."""
    found = []
    for line in lines:
        name = line.get("uuid")
        if not isinstance(name, str):
            found.append(line)
        elif name not in known:
            known.add(name)
            found.append(line)
    return found


def _dumped(line: JsonObject) -> bytes:
    """Encodes a line with its type first, because the CLI finds some lines by how they start."""
    ordered = {"type": line["type"], **line} if "type" in line else line
    return json.dumps(ordered, separators=(",", ":")).encode() + b"\n"
