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
_DATE_ERROR: Final = "does not match the formats"
_DATE_MARKS: Final = {"%Y": "YYYY", "%m": "MM", "%d": "DD", "%H": "HH", "%M": "MM", "%S": "SS"}
_JSON_FORMATS: Final = frozenset({"json", "stream-json"})


def report_usage_error(error: typer.TyperException, arguments: Sequence[str]) -> None:
    if _wants_json(arguments):
        detail = {
            "code": "usage",
            "title": "Invalid command line",
            "message": _plain(error.format_message()),
            "help": "`--help` lists the options of a command.",
        }
        terminal_io.print_json_line({"type": "error", "error": detail, "exit_code": error.exit_code})
        return
    text = io.StringIO()
    shown: Any = error  # typer's own class is private
    shown.show(file=text)
    terminal_io.print_usage_error(_wrap(_plain(text.getvalue())))


def _plain(text: str) -> str:
    """Returns a message without the marks of the libraries that wrote it."""
    if _DATE_ERROR in text:
        text = text.replace(_DATE_ERROR, "has none of the forms")
        for mark, text_form in _DATE_MARKS.items():
            text = text.replace(mark, text_form)
    return text.replace("Value error, ", "")


def _wants_json(arguments: Sequence[str]) -> bool:
    values = {value for option, value in pairwise(arguments) if option in {"--output", "-o"}}
    return not _JSON_OPTIONS.isdisjoint(arguments) or not _JSON_FORMATS.isdisjoint(values)


def _wrap(text: str) -> str:
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = (line if len(line) <= width else textwrap.fill(line, width) for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines)
