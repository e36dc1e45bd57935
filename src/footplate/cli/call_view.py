r"""Lays a tool call out for the person who decides on it, so that nothing in it passes for another line of the screen.

A field begins with its name. Each further line of its text begins with `|`, and a line that only goes on because the
screen is narrow with `\`. A value that is no string is marked `(json)`. `read_call` recovers the input.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from footplate.domain.call_display import ShownCall, ShownField
from footplate.domain.visible_text import fold, mark_missing, read_shown

_NEXT, _ON = "  | ", "  \\ "
_LEAST_ROOM: Final = 20


def lay_out_call(shown: ShownCall, width: int, most_lines: int | None = None) -> list[str]:
    """All lines, or of each field as many as `most_lines`, with a mark for the characters that are missing."""
    room = max(_LEAST_ROOM, width - len(_NEXT))
    return [line for field in shown.input for line in _lay_out_field(field, room, most_lines)]


def lay_out_text(shown: str, room: int) -> list[str]:
    """Shown text of several lines in a column by itself."""
    lines: list[str] = []
    for number, line in enumerate(shown.split("\n")):
        first, *more = fold(line, room - 2)
        lines += [f"| {first}" if number else first, *(f"\\ {each}" for each in more)]
    return lines


def read_text(lines: Sequence[str]) -> tuple[str, int]:
    """The inverse of `lay_out_text`."""
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
    """Values by the names of their fields, each with the number of characters that are missing at its end."""
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
