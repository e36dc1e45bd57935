"""The built-in tools: bash, read, write, edit, glob and grep in the environment, and the web tools in the worker.

A tool that fails raises `ToolFailure` with a message for the model. Unexpected exceptions also become failed results.
Only the loss of the turn or of its environment is raised to the engine.
"""

import asyncio
import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, ValidationError

from footplate.domain.errors import Fenced, Temporary
from footplate.domain.json import Json, JsonObject, clean_text
from footplate.domain.ports.harness import CommandResult, Environment, FileInfo, FullOutput
from footplate.domain.sessions import questions
from footplate.domain.sessions.events import Event, text_block
from footplate.harness.native import content_blocks
from footplate.harness.native.tool_failure_error import ToolFailure
from footplate.harness.native.toolset import glob_match
from footplate.harness.native.toolset.tool_inputs import (
    TOOL_INPUTS,
    AskUser,
    Bash,
    Edit,
    Glob,
    Grep,
    Read,
    WebFetch,
    WebSearch,
    Write,
)
from footplate.harness.native.web.web_tools import WebTools
from footplate.harness.tool_calls import command_details, session_tools
from footplate.harness.tool_calls.command_details import UnfinishedStatus, truncate

OUTPUT_LIMIT: Final = 30_000
DEFAULT_TIMEOUT: Final = 120.0
_ATTACHMENT_LIMIT: Final = 5_000_000
_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_GREP_NO_MATCH: Final = 1
_STRIDE_CHARACTERS: Final = 4096


@dataclass(frozen=True, slots=True)
class ToolOutput:
    content: Sequence[Json]
    is_error: bool = False
    command: JsonObject | None = None
    """Exit code, duration and streams of a command, for the log. None for other tools."""
    full_output: Mapping[str, FullOutput] = field(default_factory=dict)
    """Full output of streams that are too large for the log, by stream name."""


async def execute_tool(
    environment: Environment, enabled: Sequence[str], name: str, arguments: JsonObject, *, web: WebTools
) -> ToolOutput:
    """Runs one tool call. Errors of the model or the tool are returned as error outputs, never raised."""
    if name not in enabled or name not in TOOL_INPUTS:
        return failed_output(f"The tool {name!r} does not exist. Available tools: {', '.join(enabled) or 'none'}.")
    try:
        return await _run_tool(environment, web, name, TOOL_INPUTS[name].model_validate(arguments))
    except ToolFailure as failure:
        return failed_output(str(failure))
    except ValidationError as error:
        return failed_output(session_tools.validation_message(name, error))
    except (Fenced, Temporary):
        raise
    except Exception as error:  # noqa: BLE001 - a tool that raises fails the call, not the turn
        return failed_output(f"{name} failed: {type(error).__name__}: {error}")


async def _run_tool(environment: Environment, web: WebTools, name: str, tool_input: BaseModel) -> ToolOutput:
    match tool_input:
        case WebFetch():
            return _text_output(await web.fetch(tool_input.url))
        case WebSearch():
            return _text_output(await web.search(tool_input.query))
        case AskUser():  # in an interactive session, the turn parks instead
            return _text_output(questions.background_text(tool_input.model_dump(exclude_none=True)))
        case _:
            return await _TOOL_FUNCTIONS[name](environment, tool_input)


def session_output(result: session_tools.SessionToolResult) -> ToolOutput:
    return ToolOutput([text_block(truncate(clean_text(result.text), OUTPUT_LIMIT))], is_error=result.is_error)


def unfinished_output(use: Event, status: UnfinishedStatus, text: str) -> ToolOutput:
    """The output of a call that did not run, or did not run to its end."""
    return replace(failed_output(text), command=command_details.of_unfinished_call(use, status, text))


def failed_output(text: str) -> ToolOutput:
    return ToolOutput([text_block(truncate(clean_text(text), OUTPUT_LIMIT))], is_error=True)


async def _bash(environment: Environment, tool_input: Bash) -> ToolOutput:
    if tool_input.restart:
        await environment.restart_shell()
        return _text_output("The shell was restarted.")
    if not tool_input.command:
        raise ToolFailure("The input must contain a command, or restart: true.")
    timeout = tool_input.timeout_ms / 1000 if tool_input.timeout_ms else DEFAULT_TIMEOUT
    return describe_command(await environment.shell(tool_input.command, timeout=timeout), timeout)


def describe_command(
    result: CommandResult, command_timeout: float, *, logged_characters: int = command_details.LOGGED_STREAM_CHARACTERS
) -> ToolOutput:
    """Describes a finished command, for the model and for the log."""
    notes = [_decode(result.stdout), _decode(result.stderr)]
    if result.truncated:
        notes.append("[the output was too long and was truncated]")
    if result.timed_out:
        notes.append(
            f"[timed out after {command_timeout:g} s; the shell was killed, and the next command starts in a new one]"
        )
    elif result.exit_code is None:
        notes.append("[the shell exited; the next command starts in a new one]")
    elif result.exit_code != 0:
        notes.append(f"[exit code {result.exit_code}]")
    if result.error:
        notes.append(f"[{result.error}]")
    return ToolOutput(
        _text_output(_join_output(notes)).content,
        is_error=result.exit_code != 0,
        command=_command_details(result, logged_characters),
        full_output=result.full_outputs,
    )


def _command_details(result: CommandResult, logged_characters: int) -> JsonObject:
    """The command's result for the log, with stdout and stderr separate."""

    def describe_stream(name: str, printed: bytes) -> JsonObject:
        full_output = result.full_outputs.get(name)
        size = full_output.size if full_output else len(printed)
        return command_details.describe_stream(_decode(printed), size, logged_characters=logged_characters)

    return command_details.describe_command(
        result.status,
        result.exit_code,
        duration_ms=round(result.duration * 1000),
        error=result.error or None,
        stdout=describe_stream("stdout", result.stdout),
        stderr=describe_stream("stderr", result.stderr),
    )


async def _read(environment: Environment, tool_input: Read) -> ToolOutput:
    data = await _read_file(environment, tool_input.file_path)
    if media_type := _media_type(data):
        if len(data) > _ATTACHMENT_LIMIT:
            raise ToolFailure(
                f"{tool_input.file_path} has {len(data)} bytes. An attachment may have at most "
                f"{_ATTACHMENT_LIMIT} bytes."
            )
        return ToolOutput([content_blocks.binary_block(data, media_type)])
    if b"\x00" in data[:8192]:
        raise ToolFailure(f"{tool_input.file_path} is a binary file of {len(data)} bytes and cannot be shown.")
    text = _decode(data)
    if tool_input.view_range is not None:
        text = _select_lines(text, *tool_input.view_range)
    elif len(text) > OUTPUT_LIMIT:
        text = f"[{text.count(chr(10)) + 1} lines; use view_range to read the omitted part]\n{text}"
    return _text_output(text or "[empty]")


async def _write(environment: Environment, tool_input: Write) -> ToolOutput:
    data = tool_input.content.encode("utf-8", "replace")
    await environment.write(tool_input.file_path, data)
    return _text_output(f"Wrote {len(data)} bytes to {tool_input.file_path}.")


async def _edit(environment: Environment, tool_input: Edit) -> ToolOutput:
    """Edits bytes, so that the file keeps its encoding and line endings."""
    data = await _read_file(environment, tool_input.file_path)
    old = tool_input.old_string.encode("utf-8", "replace")
    count = data.count(old)
    if count == 0:
        raise ToolFailure(
            f"old_string does not occur in {tool_input.file_path}. Read the file and copy the text exactly."
        )
    if count > 1 and not tool_input.replace_all:
        raise ToolFailure(
            f"old_string occurs {count} times in {tool_input.file_path}. Add context, or use replace_all."
        )
    await environment.write(tool_input.file_path, data.replace(old, tool_input.new_string.encode("utf-8", "replace")))
    return _text_output(f"Replaced {count} occurrence{'s' if count > 1 else ''} in {tool_input.file_path}.")


async def _glob(environment: Environment, tool_input: Glob) -> ToolOutput:
    base = tool_input.path or "."
    pattern = tool_input.pattern
    if pattern.startswith("/"):
        start = posixpath.join(environment.working_directory, base).rstrip("/.") + "/"
        if not pattern.startswith(start):
            raise ToolFailure(f"An absolute pattern must start with {start}.")
        pattern = pattern.removeprefix(start)
    found = await asyncio.to_thread(
        _match_files, await environment.list_files(base), glob_match.compile_pattern(pattern)
    )
    return _text_output(
        "\n".join(posixpath.normpath(posixpath.join(base, path)) for path in found) or "No file matches."
    )


def _match_files(files: Sequence[FileInfo], pattern: glob_match.Glob) -> list[str]:
    """Matching paths, newest first. Runs in a thread, because a tree may have very many files."""
    found = sorted((-file.modified, file.path) for file in files if pattern.match(file.path))
    return [path for _, path in found]


async def _grep(environment: Environment, tool_input: Grep) -> ToolOutput:
    path = tool_input.path or "."
    command = ["grep", "-rnIE", "--exclude-dir=.git", "-e", tool_input.pattern, "--", path]
    if environment.working_directory != environment.root:
        command = ["sh", "-c", 'cd -- "$0" && exec "$@"', environment.working_directory, *command]
    result = await environment.run(command, timeout=DEFAULT_TIMEOUT)
    if result.timed_out:
        raise ToolFailure("grep took too long. Search a smaller directory.")
    if result.exit_code == _GREP_NO_MATCH:
        return _text_output("No match.")
    return ToolOutput(
        _text_output(_join_output([_decode(result.stdout), _decode(result.stderr)])).content,
        is_error=_has_grep_failed(result),
    )


def _has_grep_failed(result: CommandResult) -> bool:
    """Whether grep failed. It also exits with 2 if one file is unreadable; with matches, that is not a failure."""
    return result.exit_code != 0 and not result.stdout


async def _read_file(environment: Environment, path: str) -> bytes:
    try:
        return await environment.read(path)
    except FileNotFoundError:
        raise ToolFailure(f"The file {path} does not exist.") from None
    except IsADirectoryError:
        raise ToolFailure(f"{path} is a directory.") from None
    except PermissionError:
        raise ToolFailure(f"Permission denied: {path} cannot be read.") from None


def _media_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for magic, media_type in _MAGIC if data.startswith(magic)), None)


def _select_lines(text: str, first: int, last: int) -> str:
    """The requested lines, without splitting the whole text: a file may have millions of lines."""
    if first < 1 or (0 < last < first):
        raise ToolFailure(f"view_range [{first}, {last}] is not a valid range of lines.")
    count = text.count("\n") + (not text.endswith("\n") and bool(text))
    if first > count:
        raise ToolFailure(f"view_range starts at line {first}, but the file has only {count} lines.")
    start = _line_start(text, 0, first - 1)
    return text[start:] if last <= 0 else text[start : _line_start(text, start, last - first + 1)]


def _line_start(text: str, start: int, lines: int) -> int:
    """The offset that is `lines` lines after `start`. Skips ahead in large strides first, then line by line."""
    while start < len(text) and (passed := text.count("\n", start, start + _STRIDE_CHARACTERS)) < lines:
        start, lines = start + _STRIDE_CHARACTERS, lines - passed
    for _ in range(lines):
        start = text.find("\n", start) + 1
        if start == 0:
            return len(text)
    return start


def _decode(data: bytes) -> str:
    return clean_text(data.decode("utf-8", "replace"))


def _join_output(texts: Sequence[str]) -> str:
    return "\n".join(text.rstrip("\n") for text in texts if text.strip()) or "[no output]"


def _text_output(text: str) -> ToolOutput:
    return ToolOutput([text_block(truncate(text, OUTPUT_LIMIT))])


_Tool: TypeAlias = Callable[[Environment, Any], Awaitable[ToolOutput]]
_TOOL_FUNCTIONS: Final[dict[str, _Tool]] = {
    "bash": _bash,
    "read": _read,
    "write": _write,
    "edit": _edit,
    "glob": _glob,
    "grep": _grep,
}
