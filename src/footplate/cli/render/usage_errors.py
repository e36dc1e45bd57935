"""Prints the error for an invalid command line, as JSON or as text wrapped to the terminal's width."""

import io
import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import typer

from footplate.cli.render import terminal_io

_JSON_OPTIONS: Final = frozenset({"--json", "--output=json", "--output=stream-json"})
_JSON_FORMATS: Final = frozenset({"json", "stream-json"})


def report_usage_error(error: typer.TyperException, arguments: Sequence[str]) -> None:
    if _wants_json(arguments):
        detail = {
            "code": "usage",
            "title": "Invalid command line",
            "message": error.format_message(),
            "help": "`--help` lists the options of a command.",
        }
        terminal_io.print_json_line({"type": "error", "error": detail, "exit_code": error.exit_code})
        return
    text = io.StringIO()
    shown: Any = error  # typer's own class is private
    shown.show(file=text)
    terminal_io.print_usage_error(_wrap(text.getvalue()))


def _wants_json(arguments: Sequence[str]) -> bool:
    values = {value for option, value in pairwise(arguments) if option in {"--output", "-o"}}
    return not _JSON_OPTIONS.isdisjoint(arguments) or not _JSON_FORMATS.isdisjoint(values)


def _wrap(text: str) -> str:
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = (line if len(line) <= width else textwrap.fill(line, width) for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines)
