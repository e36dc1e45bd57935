"""A session's start, a snapshot and a diff cost little more than with bare git, on 10,000 files and on 100,000.

One run alternates between both: a change to one file and a snapshot by Footplate, and the same in a copy with `git add
-A && git write-tree` through a copied index; the diff of two snapshots by Footplate and by `git diff-tree`; the start
of a session and `git worktree add`. An 11 MB patch is streamed in a separate process, whose memory is measured.
"""

import asyncio
import statistics
from typing import Final

from bench.prove.figure import Figure
from bench.support.changes.git_comparison import GitComparison, compare_with_git, measure_diff_memory
from bench.support.changes.session_start_times import StartTimes, measure_starts
from footplate.domain.json import Json

_MAX_SNAPSHOT_RATIO: Final = 1.4
_MAX_DIFF_RATIO: Final = 1.3
_MAX_START_RATIO: Final = 1.2
_QUICK_FACTOR: Final = 8
"""The factor for the limits of a small sample."""
_MAX_MEMORY_KB: Final = 64 * 1024


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    sizes, rounds, starts = ((2_000,), 10, 3) if quick else ((10_000, 100_000), 60, 7)
    found = [(await compare_with_git(files, rounds), await measure_starts(files, starts)) for files in sizes]
    patch, grown_kb = await asyncio.to_thread(measure_diff_memory)
    by_size = "; ".join(_describe(files, *each) for files, each in zip(sizes, found, strict=True))
    factor = _QUICK_FACTOR if quick else 1
    snapshot = max(_ratio(it.snapshot, it.bare_snapshot) for it, _ in found)
    diff = max(_ratio(it.diff, it.bare_diff) for it, _ in found)
    headline = f"a snapshot takes {snapshot:.2f} times bare git (limit {_MAX_SNAPSHOT_RATIO}), a diff {diff:.2f}"
    if grown_kb >= _MAX_MEMORY_KB:
        headline = f"streaming a diff took {grown_kb / 1024:.0f} MB of memory (limit 64)"
    return Figure(
        headline=headline,
        summary=f"{by_size}; a diff of {patch / 1e6:.1f} MB was streamed with {grown_kb / 1024:.0f} MB of "
        f"extra memory, "
        f"git's included (limit 64)",
        holds=grown_kb < _MAX_MEMORY_KB and all(_holds(*each, factor) for each in found),
        details={"milliseconds": {str(files): _details(*each) for files, each in zip(sizes, found, strict=True)}},
    )


def _holds(measured: GitComparison, started: StartTimes, factor: int) -> bool:
    return (
        _ratio(measured.snapshot, measured.bare_snapshot) <= _MAX_SNAPSHOT_RATIO * factor
        and _ratio(measured.diff, measured.bare_diff) <= _MAX_DIFF_RATIO * factor
        and _ratio(started.start, started.worktree) <= _MAX_START_RATIO * factor
    )


def _details(measured: GitComparison, started: StartTimes) -> dict[str, Json]:
    return {
        "snapshot": _ms(measured.snapshot),
        "bare snapshot": _ms(measured.bare_snapshot),
        "nothing changed": _ms(measured.nothing),
        "diff": _ms(measured.diff),
        "bare diff": _ms(measured.bare_diff),
        "start": _ms(started.start),
        "worktree add": _ms(started.worktree),
        "first snapshot": _ms(started.first_snapshot),
    }


def _describe(files: int, measured: GitComparison, started: StartTimes) -> str:
    return (
        f"{files:,} files: a snapshot with one change {_ms(measured.snapshot):.0f} ms against "
        f"{_ms(measured.bare_snapshot):.0f} of "
        f"bare git: {_ratio(measured.snapshot, measured.bare_snapshot):.2f} (limit {_MAX_SNAPSHOT_RATIO}), "
        f"with none {_ms(measured.nothing):.0f} "
        f"ms; a diff {_ms(measured.diff):.1f} ms against {_ms(measured.bare_diff):.1f}: "
        f"{_ratio(measured.diff, measured.bare_diff):.2f} (limit "
        f"{_MAX_DIFF_RATIO}); a session's start {_ms(started.start):.0f} ms against "
        f"{_ms(started.worktree):.0f} of `git worktree "
        f"add`: {_ratio(started.start, started.worktree):.2f} (limit {_MAX_START_RATIO}), and its first snapshot "
        f"{_ms(started.first_snapshot):.0f} ms"
    )


def _ms(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1000


def _ratio(ours: list[float], bare: list[float]) -> float:
    return statistics.median(ours) / statistics.median(bare)
