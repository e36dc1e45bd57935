"""Prints tables and name-value lists. Untrusted text is escaped, and shortened text is marked: `<+12 more>`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from rich.text import Text

from footplate.cli.render import terminal_io
from footplate.cli.render.tool_call_format import lay_out_text
from footplate.domain.text.visible_text import count_columns, show_block, show_line, wrap_line

_MIN_WIDTH: Final = 18
"""Minimum width of the last column, in characters."""


@dataclass(frozen=True, slots=True)
class UntrustedText:
    """Untrusted text, followed by a trusted suffix."""

    text: str
    suffix: str = ""


Cell = str | UntrustedText
"""A plain string is trusted markup."""


def print_rows(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Prints a table and shortens its last column to fit. If it is still too wide, prints each row as a list."""
    console = terminal_io.out()
    widths = _column_widths(headings, rows)
    last_width = console.width - sum(widths) - 2 * len(widths)
    if last_width < _MIN_WIDTH:
        for row in rows:
            print_details(dict(zip([heading.lower() or "*" for heading in headings], row, strict=True)))
            console.print()
        return
    firsts = [[_full_text(cell) for cell in row[:-1]] for row in rows]
    titles = [Text(heading, style="dim") for heading in headings]
    lasts = [_shorten_text(row[-1], last_width) for row in rows]
    for line in ([*titles], *([*first, last] for first, last in zip(firsts, lasts, strict=True))):
        for cell, width in zip(line[:-1], widths, strict=True):
            cell.append(" " * (width + 2 - count_columns(cell.plain)))
        terminal_io.print_exactly(console, Text.assemble(*line))


def print_widest_rows(*tables: tuple[Sequence[str], Sequence[Sequence[Cell]]]) -> None:
    """Prints the first of the tables that fits on the terminal, or else the last one."""
    for headings, rows in tables:
        widths = _column_widths(headings, rows)
        if terminal_io.out().width - sum(widths) - 2 * len(widths) >= _MIN_WIDTH:
            break
    print_rows(headings, rows)


def print_details(values: Mapping[str, Cell]) -> None:
    """Prints one name and value per line. Empty values are omitted, and long values continue on the next line."""
    console = terminal_io.out()
    shown = {name.replace("_", " "): value for name, value in values.items() if value not in {"", UntrustedText("")}}
    indent = max(map(len, shown), default=0) + 2
    width = max(_MIN_WIDTH, console.width - indent)
    for name, value in shown.items():
        parts = _markup_lines(value, width) if isinstance(value, str) else _untrusted_lines(value, width)
        for part_number, part in enumerate(parts):
            terminal_io.print_exactly(console, Text.assemble((f"{'' if part_number else name:<{indent}}", "dim"), part))


def _column_widths(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[int]:
    """Returns the widths of all columns but the last."""
    cells = [[_full_text(cell).plain for cell in row[:-1]] for row in rows]
    return [max(map(count_columns, column)) for column in zip(headings[:-1], *cells, strict=True)]


def _untrusted_lines(value: UntrustedText, width: int) -> list[Text]:
    return [Text(line) for line in lay_out_text(show_block(value.text) + value.suffix, width)]


def _markup_lines(value: str, width: int) -> list[Text]:
    text = _full_text(value)
    lengths = [len(line) for line in wrap_line(text.plain, width)]
    return list(text.divide(list(accumulate(lengths))[:-1]))


def _full_text(cell: Cell) -> Text:
    if isinstance(cell, str):
        return Text.from_markup(cell, emoji=False)
    return Text(show_line(cell.text) + cell.suffix)


def _shorten_text(cell: Cell, width: int) -> Text:
    if isinstance(cell, str):
        return _full_text(cell)
    return Text(show_line(cell.text, width - len(cell.suffix)) + cell.suffix)
