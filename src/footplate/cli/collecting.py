"""Implements `footplate gc`: removes unused objects, and reports what is retained and what workers will remove."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.table import Table

from footplate.cli import local, output
from footplate.cli.output import quote

if TYPE_CHECKING:
    from footplate.config import Settings
    from footplate.wiring.collecting import Collected

_SHOWN: Final = 20
_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")
_STEP: Final = 1000


def report(*, dry: bool, as_json: bool) -> None:
    from footplate.wiring.collecting import collect

    settings = local.settings()
    found = output.run(collect(settings, dry=dry))
    if as_json:
        output.print_json(_answer(found, dry=dry))
        return
    _objects(found, dry=dry)
    for line in _workers(settings, found):
        output.out().print(line)


def _answer(found: "Collected", *, dry: bool) -> dict[str, object]:
    def told(*, goes: bool) -> list[dict[str, object]]:
        return [
            {"reason": why.name.lower(), "means": why.text, "objects": count, "bytes": found.bytes[why]}
            for why, count in found.objects.most_common()
            if why.goes is goes
        ]

    return {
        "dry_run": dry,
        "removed": told(goes=True),
        "kept": told(goes=False),
        "objects": [
            {"key": one.stored.key, "bytes": one.stored.size, "reason": one.why.name.lower()} for one in found.going
        ],
        "expired_sessions": found.expired,
        "released_here": found.released,
        "kept_here": [{"session_id": session_id, "reason": why} for session_id, why in found.kept_here],
    }


def _objects(found: "Collected", *, dry: bool) -> None:
    console = output.out()
    if not found.objects:
        console.print("The object store is empty.")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("", "Objects", "Size", "Why"):
        table.add_column(heading, overflow="fold", justify="right" if heading in {"Objects", "Size"} else "left")
    for why, count in sorted(found.objects.items(), key=lambda item: (not item[0].goes, -item[1])):
        done = "[yellow]would be removed[/]" if why.goes and dry else "[yellow]removed[/]" if why.goes else "kept"
        table.add_row(done, str(count), size(found.bytes[why]), quote(why.text))
    console.print(table)
    _listed([one.stored.key for one in found.going])


def _listed(keys: Sequence[str]) -> None:
    console = output.out()
    for key in keys[:_SHOWN]:
        console.print(f"  [dim]{quote(key)}[/]")
    if rest := len(keys) - _SHOWN if len(keys) > _SHOWN else 0:
        console.print(f"  [dim]and {rest} more; --json lists all[/]")


def _workers(settings: "Settings", found: "Collected") -> list[str]:
    """Returns lines about the removals that only workers do."""
    lines = []
    if settings.retention_delete is None:
        lines.append("Sessions: deleted on request only (FOOTPLATE_RETENTION_DELETE is not set).")
    else:
        lines.append(f"Sessions: {len(found.expired)} have expired; a worker deletes them.")
    if settings.retention_trees is None:
        lines.append(
            "This host: session directories stay until the session is deleted (FOOTPLATE_RETENTION_TREES=never)."
        )
    else:
        lines.append(
            f"This host: {len(found.released)} sessions have expired. The worker on this host releases their "
            "directories; the object store has their files."
        )
    lines += [f"  kept: {session_id}, {quote(why)}" for session_id, why in found.kept_here]
    return lines


def size(count: int) -> str:
    value, unit = float(count), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"
