"""Describes what a `Bash` call of the Claude Code CLI did, with the fields that the other harnesses report.

The CLI reports a failed command only as text, which starts with its exit code. It writes both streams of a command to
one file, so everything that the command printed is in `stdout`.
"""

import re
from dataclasses import dataclass
from typing import Final

import structlog

from footplate.domain.errors import FootplateError, Unavailable
from footplate.domain.json import Json, JsonObject, as_object, clean_text
from footplate.domain.ports.harness import TurnContext
from footplate.harness.claude.transcripts.sdk_message_parser import ToolResult
from footplate.harness.tool_calls import command_details

log = structlog.get_logger(__name__)

_FAILURE: Final = re.compile(
    r"Exit code (?P<code>\d{1,3})(?:\n(?P<timeout>Command timed out after [^\n]{1,40}))?(?:\n|$)"
)
_EXPECTED_FAILURE: Final = 1
"""The exit code that the CLI interprets instead of reporting it, such as that of a `grep` without a match."""
_READ_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """Output that the CLI did not return in full, but wrote to a file of the environment."""

    path: str
    stream: JsonObject
    """The stream in the result's event, which gets the name of the object."""

    async def upload(self, turn: TurnContext) -> None:
        """Copies the file to the object store. If that fails, the result is recorded without it."""
        try:
            self.stream["object"] = await self._copy(turn)
        except FootplateError as error:
            log.warning("full output of a command could not be stored", action="output.lost", reason=error.message)
            self.stream["object"] = None

    async def _copy(self, turn: TurnContext) -> str:
        """The path comes from the CLI, so the file is read inside the environment, with the privileges of the agent."""
        result = await turn.environment.run(["cat", "--", self.path], timeout=_READ_SECONDS)
        if result.exit_code != 0:
            raise Unavailable("The file with the full output of a command could not be read.")
        full_output = result.full_outputs.get("stdout") or command_details.BytesOutput(result.stdout)
        return await turn.log.store_output(full_output)


def describe_command(
    result: ToolResult, details: Json, duration_ms: int | None
) -> tuple[JsonObject, StoredOutput | None]:
    """`details`: the CLI's own fields of the result (`toolUseResult`), which only a command that succeeded has."""
    returned = "\n".join(str(block.get("text") or "") for block in result.content)
    fields = as_object(details)
    code: int | None = _EXPECTED_FAILURE if fields.get("returnCodeInterpretation") else 0
    status, error, printed, stderr = (
        "completed",
        None,
        str(fields.get("stdout", returned)),
        str(fields.get("stderr") or ""),
    )
    if fields.get("interrupted"):
        status, code = "interrupted", None
    elif result.is_error and (failure := _FAILURE.match(returned)) is None:
        status, code, error, printed = "failed", None, returned, ""
    elif result.is_error and failure is not None:
        status, code, error, printed = "failed", int(failure["code"]), failure["timeout"], returned[failure.end() :]
        if error is not None:
            status, code = "timed_out", None
    elif code:
        status = "failed"
    stdout = _describe_stream(printed)
    stored = None
    if isinstance(path := fields.get("persistedOutputPath"), str):
        size = fields.get("persistedOutputSize")
        stored = StoredOutput(path, stdout)
        stdout["bytes"] = size if isinstance(size, int) else stdout["bytes"]
    command = command_details.describe_command(
        status, code, duration_ms=duration_ms, error=error, stdout=stdout, stderr=_describe_stream(stderr)
    )
    return command, stored


def _describe_stream(text: str) -> JsonObject:
    return command_details.describe_stream(clean_text(text), len(text.encode("utf-8", "replace")))
