"""Lets the user edit the input of a pending tool call as JSON, in their own editor or on one line."""

import asyncio
import json
import os
import shlex
import signal
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from footplate.cli.render import terminal_io


async def edit_input(current: Mapping[str, Any], read_line: Callable[[], Awaitable[str]]) -> dict[str, Any]:
    """Returns the edited input. Uses `$VISUAL` or `$EDITOR`, or else asks for one line. Raises `ValueError` if the
    result is not a JSON object. Unusual characters are JSON escape sequences, so that they are visible.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if editor:
        text = await _run_editor(editor, json.dumps(current, indent=2))
    else:
        screen = terminal_io.err()
        terminal_io.print_exactly(screen, json.dumps(current))
        screen.print("New input as JSON: ", end="")
        screen.file.flush()
        text = await read_line()
    try:
        return parse_input(text)
    except ValueError as error:
        raise ValueError(f"The new input {error}") from None


def parse_input(text: str) -> dict[str, Any]:
    """Parses the input of a call. Raises `ValueError`."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError("must be a JSON object")  # noqa: TRY004 - the caller reports one kind of error
    return found


async def _run_editor(editor: str, text: str) -> str:
    """Runs the editor on a file with the text. Ctrl-C belongs to the editor. If the call is decided meanwhile, the
    editor still has the terminal until the user closes it.
    """
    with tempfile.TemporaryDirectory(prefix="footplate-") as folder:
        file = Path(folder) / "input.json"
        file.write_text(f"{text}\n")
        previous_handler = signal.signal(signal.SIGINT, lambda _number, _frame: None)
        try:
            process = await asyncio.create_subprocess_exec(
                *shlex.split(editor), str(file), stdout=terminal_io.err().file
            )
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                await process.wait()
                raise
        except OSError as error:
            raise ValueError(f"The editor {editor} cannot be started: {error}") from None
        finally:
            signal.signal(signal.SIGINT, previous_handler)
        if code != 0:
            raise ValueError(f"The editor {editor} ended with exit code {code}")
        return file.read_text()
