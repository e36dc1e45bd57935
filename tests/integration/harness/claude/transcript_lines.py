"""Builds transcript lines as the CLI writes them."""

from collections.abc import Sequence

from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.harness import Entry
from footplate.harness.claude.transcripts import transcript_lines
from footplate.harness.claude.transcripts.transcript_lines import TranscriptKey

FILE = TranscriptKey("-workspace", "5d5f6b1e-0000-4000-8000-000000000000")


def make_line(kind: str, uuid: str, content: Sequence[Json], **message: Json) -> JsonObject:
    content_message: JsonObject = {"role": kind, "content": [*content], **message}
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": None,
        "isSidechain": False,
        "sessionId": "s",
        "message": content_message,
    }


def prompt_line(turn_id: str, text: str = "Hello") -> JsonObject:
    return make_line("user", transcript_lines.derive_uuid(turn_id), [{"type": "text", "text": text}])


def response_line(uuid: str, message_id: str, text: str) -> JsonObject:
    return make_line("assistant", uuid, [{"type": "text", "text": text}], id=message_id, model="claude-sonnet-5")


def call_line(uuid: str, message_id: str, call_id: str, command: str = "ls", name: str = "Bash") -> JsonObject:
    block: JsonObject = {"type": "tool_use", "id": call_id, "name": name, "input": {"command": command}}
    return make_line("assistant", uuid, [block], id=message_id, model="claude-sonnet-5")


def result_line(uuid: str, call_id: str, text: str = "out") -> JsonObject:
    return make_line(
        "user", uuid, [{"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": False}]
    )


def make_entries(turn_id: str, *lines: JsonObject) -> list[Entry]:
    return [transcript_lines.line_entry(turn_id, FILE, item) for item in lines]
