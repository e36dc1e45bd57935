r"""Formats a tool call for the person who approves it, so that its content cannot imitate other lines on the screen.

A field starts with its name. Each further line of its text starts with `|`, and a line that was wrapped because the
screen is narrow starts with `\`. A value that is not a string is marked `(json)`. `read_call` recovers the input.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from footplate.domain.call_display import ShownCall, ShownField
from footplate.domain.visible_text import fold, mark_missing, read_shown

_NEXT, _ON = "  | ", "  \\ "
_LEAST_ROOM: Final = 20


def lay_out_call(shown: ShownCall, width: int, most_lines: int | None = None) -> list[str]:
    """Returns all lines, or at most `most_lines` lines per field with a mark that counts the omitted characters."""
    room = max(_LEAST_ROOM, width - len(_NEXT))
    return [line for field in shown.input for line in _lay_out_field(field, room, most_lines)]


def lay_out_text(shown: str, room: int) -> list[str]:
    """Lays out escaped text of several lines in a column of its own."""
    lines: list[str] = []
    for number, line in enumerate(shown.split("\n")):
        first, *more = fold(line, room - 2)
        lines += [f"| {first}" if number else first, *(f"\\ {each}" for each in more)]
    return lines


def read_text(lines: Sequence[str]) -> tuple[str, int]:
    """Reverses `lay_out_text`: returns the text and the number of omitted characters."""
    text = lines[0]
    for line in lines[1:]:
        text += f"\n{line.removeprefix('| ')}" if line.startswith("| ") else line.removeprefix("\\ ")
    return read_shown(text)


def _lay_out_field(field: ShownField, room: int, most_lines: int | None) -> Iterator[str]:
    head = f"{field.name}{' (json)' if field.kind == 'json' else ''}: "
    lines: list[str] = []
    for number, line in enumerate(f"{head}{field.text}".split("\n")):
        first, *more = fold(line, room)
        lines += [f"{_NEXT if number else '  '}{first}", *(f"{_ON}{each}" for each in more)]
        if most_lines is not None and len(lines) > most_lines:
            break
    if most_lines is None or len(lines) <= most_lines:
        yield from lines
        return
    kept = lines[:most_lines]
    _, _, text = _join(kept).partition(": ")
    yield from [*kept, f"{_ON}{mark_missing(len(read_shown(field.text)[0]) - len(read_shown(text)[0]))}"]


def read_call(lines: Sequence[str]) -> dict[str, tuple[Any, int]]:
    """Returns the value of each field by its name, with the number of characters omitted at its end."""
    fields: list[list[str]] = []
    for line in lines:
        if line.startswith((_NEXT, _ON)) and fields:
            fields[-1].append(line)
        else:
            fields.append([line])
    return dict(_read_field(_join(field)) for field in fields)


def _read_field(text: str) -> tuple[str, tuple[Any, int]]:
    head, _, shown = text.partition(": ")
    value, missing = read_shown(shown)
    name = head.removesuffix(" (json)")
    return read_shown(name)[0], (json.loads(value) if head != name and not missing else value, missing)


def _join(lines: Sequence[str]) -> str:
    text = lines[0].removeprefix("  ")
    for line in lines[1:]:
        text += f"\n{line.removeprefix(_NEXT)}" if line.startswith(_NEXT) else line.removeprefix(_ON)
    return text
