"""Parses screens: the calls they show, their input, and how much of it is missing."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from footplate.cli.render.tool_call_format import read_call
from footplate.domain.text.visible_text import neutralise, recover_text

Fields = Mapping[str, tuple[Any, int]]
"""Values by name, each with the number of characters that are missing."""

STYLE: Final = re.compile(r"\x1b\[[0-9;]{1,8}m|\r\x1b\[2K")
_MORE: Final = re.compile(r"^[0-9,]+ more lines\. Press Enter to show them, q to skip: \n", re.MULTILINE)
_LISTED: Final = re.compile(r"^id +(sevt_\w+)\b", re.MULTILINE)
_WAITING: Final = re.compile(r"^needs approval\s+(sevt_\w+)\b", re.MULTILINE)
_ASKED: Final = re.compile(r"^Allow it\? \[.*\] x$", re.MULTILINE)
_TOOL: Final = re.compile(r"^(?:bash|write)$", re.MULTILINE)
_LOGGED: Final = re.compile(r"^  bash  (.*)  needs approval$", re.MULTILINE)


def find_raw(text: str) -> str | None:
    """Returns the first character that could control or deceive a terminal, styles aside."""
    plain = STYLE.sub("", text)
    clean = neutralise(plain)
    if plain == clean:
        return None
    return next(repr(char) for char in plain if char not in "\n\t" and neutralise(char) != char)


def read_list(text: str) -> dict[str, Fields]:
    """Returns the calls on the screen of `approvals`, by id."""
    parts = _LISTED.split(STYLE.sub("", text))
    return {name: _read_fields(part) for name, part in zip(parts[1::2], parts[2::2], strict=True)}


def read_session(text: str) -> dict[str, Fields]:
    parts = _WAITING.split(STYLE.sub("", text))
    parts[2::2] = [part.partition("\n")[2] for part in parts[2::2]]  # the tool's name follows the id
    return {name: _read_fields(part) for name, part in zip(parts[1::2], parts[2::2], strict=True)}


def read_questions(text: str) -> list[Fields]:
    """Returns the calls that the screen asks approval for, in order."""
    plain = _MORE.sub("", STYLE.sub("", text))
    return [_read_fields(_TOOL.split(part)[-1]) for part in _ASKED.split(plain)[:-1]]


def read_shown_calls(text: str) -> list[Fields]:
    """Returns the calls that `approve` showed without a question, in order."""
    return [_read_fields(part) for part in _TOOL.split(STYLE.sub("", text))[1:]]


def read_log(text: str) -> list[tuple[str, int]]:
    """Returns the commands that need approval, in order."""
    return [recover_text(found) for found in _LOGGED.findall(STYLE.sub("", text))]


def read_column(text: str, heading: str) -> Iterator[tuple[str, int]]:
    """Returns the last column of a table, or of its rows as details on a narrow terminal."""
    first, *lines = STYLE.sub("", text).split("\n")
    if heading in first:
        start = first.index(heading)
        yield from (recover_text(line[start:]) for line in lines if line and not line.startswith("No "))
        return
    name = heading.lower()
    value: list[str] | None = None
    for line in [first, *lines, ""]:
        if value is not None and line[:1] == " ":
            value.append(line.lstrip(" "))
            continue
        if value is not None:
            yield _read_value(value)
            value = None
        if re.match(rf"{name}  ", line):
            value = [line[len(name) :].lstrip(" ")]


def _read_value(lines: list[str]) -> tuple[str, int]:
    from footplate.cli.render.tool_call_format import read_text

    return read_text(lines)


def _read_fields(text: str) -> Fields:
    return read_call([line for line in text.split("\n") if line[:2] == "  " and line[2:3] not in {"", " "}])
