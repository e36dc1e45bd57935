"""Builds the field `command` of a tool result: what a command did, for programs that read the log."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from footplate.domain.json import JsonObject
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event

BASH: Final = "bash"
LOGGED_STREAM_CHARACTERS: Final = 4000

UnfinishedStatus: TypeAlias = Literal["denied", "interrupted", "unknown"]


@dataclass(frozen=True, slots=True)
class BytesOutput:
    """A stream that is complete, but too long for the log."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def pieces(self) -> Iterator[bytes]:
        yield self.data


def describe_command(
    status: str,
    exit_code: int | None,
    *,
    duration_ms: int | None,
    error: str | None,
    stdout: JsonObject,
    stderr: JsonObject,
) -> JsonObject:
    return {
        "status": status,
        "exit_code": exit_code,
        "duration_ms": duration_ms,
        "error": error,
        "stdout": stdout,
        "stderr": stderr,
    }


def describe_stream(text: str, size: int, *, logged_characters: int = LOGGED_STREAM_CHARACTERS) -> JsonObject:
    """`size`: how many bytes the command printed."""
    return {"text": truncate(text, logged_characters), "bytes": size}


def without_exit_code(status: UnfinishedStatus, error: str) -> JsonObject:
    """Describes a command that did not run, or whose end was not observed."""
    return {"status": status, "exit_code": None, "duration_ms": None, "error": error}


def of_unfinished_call(use: Event, status: UnfinishedStatus, error: str) -> JsonObject | None:
    """As `without_exit_code`. None if the call is not one of `bash`."""
    return without_exit_code(status, error) if is_command(use) else None


def is_command(use: Event) -> bool:
    return use.type == ev.AGENT_TOOL_USE and use.body.get("name") == BASH


def truncate(text: str, limit: int) -> str:
    """Truncates long text in the middle, because the start and end of an output are the most useful parts."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n\n[… {len(text) - 2 * half} characters omitted …]\n\n{text[-half:]}"
