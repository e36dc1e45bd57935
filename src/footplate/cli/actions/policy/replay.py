"""Implements `footplate policy replay`: evaluates proposed rules against past calls and reports changed decisions."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import typer
from rich.table import Table

from footplate.cli.actions.policy import rule_files
from footplate.cli.actions.policy.explain import OUTCOME_COLOURS, colour_outcome
from footplate.cli.connection import run_with_client
from footplate.cli.json_output_models import ReplayAnswer
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import print_json, quote
from footplate.client import AsyncFootplate, ChangedCall

_PAGE_SIZE: Final = 1000
_PAST_TENSE: Final = {"allow": "allowed", "ask": "held for approval", "deny": "denied"}
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def replay(
    files: Sequence[Path] | None,
    *,
    layer: str,
    session: str | None,
    project: str | None,
    since: str | None,
    limit: int,
    max_shown: int,
    as_json: bool,
    profile: str | None,
) -> None:
    filters = {"layer": layer, "session_id": session, "project_id": project, "since": _parse_since(since)}
    settings = rule_files.load_rule_files(files, as_json=as_json)

    async def work(client: AsyncFootplate, _server: Server) -> ReplayAnswer:
        proposed, notes = await rule_files.import_rules(client, settings)
        result = ReplayAnswer(notes=notes)
        async for page in client.policies.replay(proposed, limit=min(limit, _PAGE_SIZE), **filters):
            result.add(page, max_shown)
            if result.calls + result.gone >= limit:
                result.complete = page.next_page is None
                break
        return result

    result = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(result.model_dump(mode="json"))
    else:
        _print_replay(result)


def _parse_since(text: str | None) -> str | None:
    """Converts `7d` or a timestamp to an ISO timestamp."""
    if text is None:
        return None
    number, unit = text[:-1], _UNITS.get(text[-1:])
    try:
        if unit is not None and number.isdigit():
            return (datetime.now(UTC) - timedelta(**{unit: int(number)})).isoformat()
        time = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is not a valid time. Examples: 7d, 12h, 2026-11-16T08:00", param_hint="--since"
        ) from None
    return (time if time.tzinfo else time.astimezone()).isoformat()


def _print_replay(result: ReplayAnswer) -> None:
    console = terminal_io.out()
    if result.changed:
        table = Table(box=None, pad_edge=False)
        for heading in ("", "", "Call", "Why"):
            table.add_column(heading, overflow="fold")
        for call in result.changed:
            table.add_row(
                colour_outcome(call.was), f"→ {colour_outcome(call.would)}", _format_call(call), _format_reason(call)
            )
        terminal_io.print_table(table)
        if result.not_shown:
            console.print(f"[dim]and {result.not_shown:,} more; use --show N or --json[/]")
        console.print()
    console.print(f"{result.calls:,} {'call' if result.calls == 1 else 'calls'}: {_summarise(result)}.")
    for line in _caveats(result):
        console.print(f"[dim]{line}[/]")
    for note in result.notes:
        terminal_io.err().print(f"[dim]{quote(note)}[/]")


def _summarise(result: ReplayAnswer) -> str:
    parts = [
        f"{number:,} that had been {_PAST_TENSE[was]} would be [{OUTCOME_COLOURS[would]}]{_PAST_TENSE[would]}[/]"
        for was in _PAST_TENSE
        for would in _PAST_TENSE
        if was != would and (number := result.outcomes[was][would])
    ]
    return ", ".join(parts) if parts else "nothing would change"


def _caveats(result: ReplayAnswer) -> list[str]:
    lines = [
        (
            "Calls that depend on symbolic links",
            result.depend_on_links,
            "The targets are no longer known, so these calls were evaluated as if there were no links.",
        ),
        ("Calls that a hook would also decide", result.depend_on_hooks, "The hook's decision is not known."),
        ("Calls that were not evaluated", result.gone, "They were archived, or deleted with their session."),
    ]
    notes = [f"{label}: {number:,}. {text}" for label, number, text in lines if number]
    return notes if result.complete else [*notes, "There are older calls. Use --limit to include them."]


def _format_call(call: ChangedCall) -> str:
    name = f"{call.mcp_server_name} {call.name}" if call.mcp_server_name else call.name
    mark = " [dim](links?)[/]" if call.depends_on_links else ""
    return f"{quote(f'{name} {call.summary}')}{mark}\n[dim]{call.session_id} {call.event_id}[/]"


def _format_reason(call: ChangedCall) -> str:
    rule = f"{call.rule} ({call.layer}): " if call.rule else ""
    return quote(f"{rule}{call.reason}")
