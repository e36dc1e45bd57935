"""Tables for people: as wide as the terminal, and without frames, so that they can be copied."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from footplate.cli import wording
from footplate.client import Agent, Environment, Session, Turn

_STATUS = {"running": "green", "rescheduling": "yellow", "failed": "red", "completed": "green"}
_WIDE = 100


def sessions(found: Sequence[Session]) -> None:
    if not found:
        _say('No sessions yet. Start one: footplate run "…"')
        return
    console = _console()
    wide = console.width >= _WIDE or not console.is_terminal
    rows = [
        [
            each.id,
            _coloured("archived" if each.archived_at else each.status),
            wording.age(each.created_at),
            *([escape(each.agent.model.id)] if wide else []),
            _title(each),
        ]
        for each in found
    ]
    _print(console, ["ID", "STATUS", "AGE", *(["MODEL"] if wide else []), "TITLE"], rows)


def session(detail: Session, turns: Sequence[Turn]) -> None:
    console = _console()
    agent = detail.agent
    for name, value in (
        ("id", detail.id),
        ("title", _title(detail)),
        ("status", _coloured("archived" if detail.archived_at else detail.status)),
        ("agent", f"{escape(agent.name)} v{agent.version}"),
        ("agent id", agent.id),
        ("model", escape(agent.model.id)),
        ("environment", detail.environment_id),
        ("created", f"{detail.created_at:%Y-%m-%d %H:%M:%S %Z} · {wording.age(detail.created_at)} ago"),
        ("spent", wording.tokens(detail.usage)),
    ):
        console.print(f"[dim]{name:<12}[/] {value}", soft_wrap=True)
    if not turns:
        return
    console.print()
    _print(console, ["STATUS", "AGE", "TOOK", "IN/OUT", "RESULT"], [_turn(turn) for turn in turns])


def _turn(turn: Turn) -> list[str]:
    took = ""
    if turn.started_at and turn.ended_at:
        took = wording.seconds((turn.ended_at - turn.started_at).total_seconds())
    tokens = f"{turn.usage.input_tokens:,}/{turn.usage.output_tokens:,}"
    result = wording.one_line(turn.result.error or turn.result.text)
    return [_coloured(turn.status), wording.age(turn.created_at), took, tokens, escape(result)]


def agents(found: Sequence[Agent]) -> None:
    if not found:
        _say("No agents yet. `footplate run` makes one, or: footplate agents create --name … --model …")
        return
    rows = [[each.id, f"v{each.version}", wording.age(each.updated_at), escape(each.name)] for each in found]
    _print(_console(), ["ID", "VERSION", "AGE", "NAME"], rows)


def environments(found: Sequence[Environment]) -> None:
    if not found:
        _say("No environments yet. `footplate run` makes one, or: footplate environments create --name …")
        return
    rows = [[each.id, wording.age(each.created_at), escape(each.name)] for each in found]
    _print(_console(), ["ID", "AGE", "NAME"], rows)


def plain(rows: Sequence[Sequence[str]], *headings: str) -> None:
    _print(_console(), headings, [[escape(cell) for cell in row] for row in rows])


def _print(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The last column gives way when there is no room; ids and numbers stay whole, whatever the width."""
    lines = [[Text(heading, style="dim") for heading in headings], *([Text.from_markup(c) for c in r] for r in rows)]
    widths = [max(cell.cell_len for cell in column) for column in zip(*lines, strict=True)]
    taken = sum(widths[:-1]) + 2 * (len(widths) - 1)
    for line in lines:
        for cell, width in zip(line[:-1], widths[:-1], strict=True):
            cell.pad_right(width + 2 - cell.cell_len)
        if console.is_terminal:
            line[-1].truncate(max(8, console.width - taken), overflow="ellipsis")
        console.print(Text.assemble(*line), soft_wrap=True)


def _console() -> Console:
    return Console(highlight=False)


def _say(text: str) -> None:
    Console(stderr=True, highlight=False).print(escape(text))


def _title(detail: Session) -> str:
    return escape(wording.one_line(detail.title or ""))


def _coloured(status: str) -> str:
    colour = _STATUS.get(status)
    return f"[{colour}]{status}[/]" if colour else status
