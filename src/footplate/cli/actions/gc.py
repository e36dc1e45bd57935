"""Implements `footplate gc`: deletes unused objects from the object store. It also reports which objects are retained,
and which data the workers will delete.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.table import Table

from footplate.cli.profile import dev_server
from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import quote

if TYPE_CHECKING:
    from footplate.config import Settings
    from footplate.wiring.garbage_collection import GcReport

_MAX_LISTED: Final = 20
_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")
_STEP: Final = 1000


def run_gc(*, dry: bool, as_json: bool) -> None:
    from footplate.wiring.garbage_collection import collect_garbage

    settings = dev_server.load_settings()
    found = terminal_io.run_async(collect_garbage(settings, dry_run=dry))
    if as_json:
        terminal_io.print_json(_to_json(found, dry=dry))
        return
    _print_objects(found, dry=dry)
    for line in _describe_worker_tasks(settings, found):
        terminal_io.out().print(line)


def _to_json(found: "GcReport", *, dry: bool) -> dict[str, object]:
    def group_by_reason(*, removed: bool) -> list[dict[str, object]]:
        return [
            {"reason": why.name.lower(), "means": why.text, "objects": count, "bytes": found.bytes[why]}
            for why, count in found.objects.most_common()
            if why.is_deletable is removed
        ]

    return {
        "dry_run": dry,
        "removed": group_by_reason(removed=True),
        "kept": group_by_reason(removed=False),
        "objects": [
            {"key": one.stored.key, "bytes": one.stored.size, "reason": one.reason.name.lower()}
            for one in found.removed
        ],
        "expired_sessions": found.expired,
        "released_here": found.released,
        "kept_here": [{"session_id": session_id, "reason": why} for session_id, why in found.retained_directories],
    }


def _print_objects(found: "GcReport", *, dry: bool) -> None:
    console = terminal_io.out()
    if not found.objects:
        console.print("The object store is empty.")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("", "Objects", "Size", "Why"):
        table.add_column(heading, overflow="fold", justify="right" if heading in {"Objects", "Size"} else "left")
    for reason, count in sorted(found.objects.items(), key=lambda item: (not item[0].is_deletable, -item[1])):
        done = (
            "[yellow]would be removed[/]"
            if reason.is_deletable and dry
            else "[yellow]removed[/]"
            if reason.is_deletable
            else "kept"
        )
        table.add_row(done, str(count), format_size(found.bytes[reason]), quote(reason.text))
    terminal_io.print_table(table)
    _print_keys([one.stored.key for one in found.removed])


def _print_keys(keys: Sequence[str]) -> None:
    console = terminal_io.out()
    for key in keys[:_MAX_LISTED]:
        console.print(f"  [dim]{quote(key)}[/]")
    if rest := len(keys) - _MAX_LISTED if len(keys) > _MAX_LISTED else 0:
        console.print(f"  [dim]and {rest} more; --json lists all[/]")


def _describe_worker_tasks(settings: "Settings", found: "GcReport") -> list[str]:
    """Returns lines about the removals that only workers do."""
    lines = []
    if settings.retention_delete is None:
        lines.append("Sessions: deleted on request only (FOOTPLATE_RETENTION_DELETE is not set).")
    else:
        lines.append(f"Sessions: {len(found.expired)} have expired; a worker deletes them.")
    if settings.retention_trees is None:
        lines.append(
            "This host: session directories are kept until the session is deleted (FOOTPLATE_RETENTION_TREES=never)."
        )
    else:
        lines.append(
            f"This host: the directories of {len(found.released)} sessions have expired. The worker on this host "
            "removes them; the files remain in the object store."
        )
    lines += [f"  kept: {session_id}, {quote(why)}" for session_id, why in found.retained_directories]
    return lines


def format_size(count: int) -> str:
    value, unit = float(count), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"
