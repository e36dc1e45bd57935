"""What a session's start, a snapshot and a diff cost beside bare git, on 10,000 files and on 100,000.

One and the same run, in turns: a change to one file and a snapshot of ours, the same in a copy and `git add -A && git
write-tree` through a copied index; the diff of two snapshots by us and by `git diff-tree`. An 11 MB patch goes through
a process of its own, whose memory is watched. A session starts on the repository beside `git worktree add`.
"""

import asyncio
import statistics
from typing import Final

from bench.prove.figure import Figure
from bench.support.changes.ratios import Measured, diff_memory, measure
from bench.support.changes.starting import Started, measure_starts
from footplate.domain.json import Json

_SNAPSHOT: Final = 1.4
_DIFF: Final = 1.3
_START: Final = 1.2
_LOOSE: Final = 8
"""Times that in a small sample, which has only to be sane."""
_MEMORY: Final = 64 * 1024


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    sizes, rounds, starts = ((2_000,), 10, 3) if quick else ((10_000, 100_000), 60, 7)
    found = [(await measure(files, rounds), await measure_starts(files, starts)) for files in sizes]
    patch, grown = await asyncio.to_thread(diff_memory)
    told = "; ".join(_told(files, *each) for files, each in zip(sizes, found, strict=True))
    loose = _LOOSE if quick else 1
    return Figure(
        text=f"{told}; a diff of {patch / 1e6:.1f} MB was streamed with {grown / 1024:.0f} MB of extra memory, git's "
        f"included (under 64)",
        holds=grown < _MEMORY and all(_holds(*each, loose) for each in found),
        details={"milliseconds": {str(files): _details(*each) for files, each in zip(sizes, found, strict=True)}},
    )


def _holds(it: Measured, started: Started, loose: int) -> bool:
    return (
        _ratio(it.snapshot, it.bare_snapshot) <= _SNAPSHOT * loose
        and _ratio(it.diff, it.bare_diff) <= _DIFF * loose
        and _ratio(started.start, started.worktree) <= _START * loose
    )


def _details(it: Measured, started: Started) -> dict[str, Json]:
    return {
        "snapshot": _ms(it.snapshot),
        "bare snapshot": _ms(it.bare_snapshot),
        "nothing changed": _ms(it.nothing),
        "diff": _ms(it.diff),
        "bare diff": _ms(it.bare_diff),
        "start": _ms(started.start),
        "worktree add": _ms(started.worktree),
        "first snapshot": _ms(started.first_snapshot),
    }


def _told(files: int, it: Measured, started: Started) -> str:
    return (
        f"{files:,} files: a snapshot with one change {_ms(it.snapshot):.0f} ms against {_ms(it.bare_snapshot):.0f} of "
        f"bare git: {_ratio(it.snapshot, it.bare_snapshot):.2f} (at most {_SNAPSHOT}), with none {_ms(it.nothing):.0f} "
        f"ms; a diff {_ms(it.diff):.1f} ms against {_ms(it.bare_diff):.1f}: {_ratio(it.diff, it.bare_diff):.2f} (at "
        f"most {_DIFF}); a session's start {_ms(started.start):.0f} ms against {_ms(started.worktree):.0f} of `git "
        f"worktree add`: {_ratio(started.start, started.worktree):.2f} (at most {_START}), and its first snapshot "
        f"{_ms(started.first_snapshot):.0f} ms"
    )


def _ms(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1000


def _ratio(ours: list[float], bare: list[float]) -> float:
    return statistics.median(ours) / statistics.median(bare)
