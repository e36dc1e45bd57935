r"""Formats a tool call for the person who approves it, so that its content cannot imitate other lines on the screen.

Each field starts with its name. Each further line of its text starts with `|`, and a line that was wrapped because the
screen is narrow starts with `\`. A value that is not a string is marked `(json)`. `read_call` recovers the input.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from footplate.domain.text.approval_display import ShownCall, ShownField
from footplate.domain.text.visible_text import mark_missing, recover_text, wrap_line

_NEXT_LINE, _WRAPPED_LINE = "  | ", "  \\ "
_MIN_WIDTH: Final = 20


def lay_out_call(shown: ShownCall, width: int, max_lines: int | None = None) -> list[str]:
    """Returns all lines, or at most `max_lines` lines per field with a mark that counts the omitted characters."""
    text_width = max(_MIN_WIDTH, width - len(_NEXT_LINE))
    return [line for field in shown.input for line in _lay_out_field(field, text_width, max_lines)]


def lay_out_text(shown: str, width: int) -> list[str]:
    """Lays out escaped text of several lines in a column of its own."""
    lines: list[str] = []
    for number, line in enumerate(shown.split("\n")):
        first, *more = wrap_line(line, width - 2)
        lines += [f"| {first}" if number else first, *(f"\\ {each}" for each in more)]
    return lines


def read_text(lines: Sequence[str]) -> tuple[str, int]:
    """Reverses `lay_out_text`: returns the text and the number of omitted characters."""
    text = lines[0]
    for line in lines[1:]:
        text += f"\n{line.removeprefix('| ')}" if line.startswith("| ") else line.removeprefix("\\ ")
    return recover_text(text)


def _lay_out_field(field: ShownField, text_width: int, max_lines: int | None) -> Iterator[str]:
    head = f"{field.name}{' (json)' if field.kind == 'json' else ''}: "
    lines: list[str] = []
    for number, line in enumerate(f"{head}{field.text}".split("\n")):
        first, *more = wrap_line(line, text_width)
        lines += [f"{_NEXT_LINE if number else '  '}{first}", *(f"{_WRAPPED_LINE}{each}" for each in more)]
        if max_lines is not None and len(lines) > max_lines:
            break
    if max_lines is None or len(lines) <= max_lines:
        yield from lines
        return
    visible_lines = lines[:max_lines]
    _, _, text = _join(visible_lines).partition(": ")
    yield from [
        *visible_lines,
        f"{_WRAPPED_LINE}{mark_missing(len(recover_text(field.text)[0]) - len(recover_text(text)[0]))}",
    ]


def read_call(lines: Sequence[str]) -> dict[str, tuple[Any, int]]:
    """Returns the value of each field by its name, with the number of characters omitted at its end."""
    fields: list[list[str]] = []
    for line in lines:
        if line.startswith((_NEXT_LINE, _WRAPPED_LINE)) and fields:
            fields[-1].append(line)
        else:
            fields.append([line])
    return dict(_read_field(_join(field)) for field in fields)


def _read_field(text: str) -> tuple[str, tuple[Any, int]]:
    head, _, shown = text.partition(": ")
    value, missing = recover_text(shown)
    name = head.removesuffix(" (json)")
    return recover_text(name)[0], (json.loads(value) if head != name and not missing else value, missing)


def _join(lines: Sequence[str]) -> str:
    text = lines[0].removeprefix("  ")
    for line in lines[1:]:
        text += (
            f"\n{line.removeprefix(_NEXT_LINE)}" if line.startswith(_NEXT_LINE) else line.removeprefix(_WRAPPED_LINE)
        )
    return text
