"""Implements `footplate policy replay`: evaluates proposed rules on past calls and reports changed outcomes."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import typer
from rich.table import Table

from footplate.cli import output, rule_files
from footplate.cli.answers import ReplayAnswer
from footplate.cli.connection import talk
from footplate.cli.explaining import COLOURS, coloured
from footplate.cli.output import print_json, quote
from footplate.cli.profiles import Server
from footplate.client import AsyncFootplate, ChangedCall

_PAGE: Final = 1000
_WORDS: Final = {"allow": "allowed", "ask": "asked", "deny": "denied"}
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def replay(
    files: Sequence[Path] | None,
    *,
    layer: str,
    session: str | None,
    project: str | None,
    since: str | None,
    limit: int,
    shown: int,
    as_json: bool,
    profile: str | None,
) -> None:
    asked = {"layer": layer, "session_id": session, "project_id": project, "since": _moment(since)}
    settings = rule_files.chosen(files, as_json=as_json)

    async def work(client: AsyncFootplate, _server: Server) -> ReplayAnswer:
        proposed, notes = await rule_files.imported(client, settings)
        answer = ReplayAnswer(notes=notes)
        async for page in client.policies.replay(proposed, limit=min(limit, _PAGE), **asked):
            answer.add(page, shown)
            if answer.calls + answer.gone >= limit:
                answer.complete = page.next_page is None
                break
        return answer

    answer = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(answer.model_dump(mode="json"))
    else:
        _print(answer)


def _moment(text: str | None) -> str | None:
    """Converts `7d` or a timestamp to an ISO timestamp."""
    if text is None:
        return None
    number, unit = text[:-1], _UNITS.get(text[-1:])
    try:
        if unit is not None and number.isdigit():
            return (datetime.now(UTC) - timedelta(**{unit: int(number)})).isoformat()
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is not a valid time. Examples: 7d, 12h, 2026-11-16T08:00", param_hint="--since"
        ) from None
    return (moment if moment.tzinfo else moment.astimezone()).isoformat()


def _print(answer: ReplayAnswer) -> None:
    console = output.out()
    if answer.changed:
        table = Table(box=None, pad_edge=False)
        for heading in ("", "", "Call", "Why"):
            table.add_column(heading, overflow="fold")
        for call in answer.changed:
            table.add_row(coloured(call.was), f"→ {coloured(call.would)}", _call(call), _why(call))
        console.print(table)
        if answer.not_shown:
            console.print(f"[dim]and {answer.not_shown:,} more; use --show N or --json[/]")
        console.print()
    console.print(f"{answer.calls:,} {'call' if answer.calls == 1 else 'calls'}: {_sum(answer)}.")
    for line in _doubts(answer):
        console.print(f"[dim]{line}[/]")
    for note in answer.notes:
        output.err().print(f"[dim]{quote(note)}[/]")


def _sum(answer: ReplayAnswer) -> str:
    parts = [
        f"{number:,} that had been {_WORDS[was]} would be [{COLOURS[would]}]{_WORDS[would]}[/]"
        for was in _WORDS
        for would in _WORDS
        if was != would and (number := answer.outcomes[was][would])
    ]
    return ", ".join(parts) if parts else "nothing would change"


def _doubts(answer: ReplayAnswer) -> list[str]:
    lines = [
        (
            answer.depend_on_links,
            "depend on symbolic links, whose targets are unknown now. They were evaluated as if there were none.",
        ),
        (answer.depend_on_hooks, "would also be decided by a hook, whose decision is unknown."),
        (answer.gone, "calls were not evaluated, because they were deleted with their session or archived."),
    ]
    told = [f"{number:,} {text}" for number, text in lines if number]
    return told if answer.complete else [*told, "There are older calls. Use --limit to include them."]


def _call(call: ChangedCall) -> str:
    name = f"{call.mcp_server_name} {call.name}" if call.mcp_server_name else call.name
    mark = " [dim](links?)[/]" if call.depends_on_links else ""
    return f"{quote(f'{name} {call.summary}')}{mark}\n[dim]{call.session_id} {call.event_id}[/]"


def _why(call: ChangedCall) -> str:
    rule = f"{call.rule} ({call.layer}): " if call.rule else ""
    return quote(f"{rule}{call.reason}")
