"""A snapshot and a diff cost little more than bare git's own, on 10,000 files and on 100,000; a large diff is streamed.

One and the same run, in turns: a change to one file and a snapshot of ours, the same in a copy and `git add -A && git
write-tree` through a copied index; the diff of two snapshots by us and by `git diff-tree`. An 11 MB patch goes through
a process of its own, whose memory is watched.
"""

import asyncio
import statistics
from typing import Final

from bench.prove.changes.ratios import Measured, diff_memory, measure
from bench.prove.figure import Figure

_SNAPSHOT: Final = 1.4
_DIFF: Final = 1.3
_LOOSE: Final = 3
"""Times that in a small sample, which has only to be sane."""
_MEMORY: Final = 64 * 1024


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    sizes, rounds = ((2_000,), 10) if quick else ((10_000, 100_000), 60)
    found = [await measure(files, rounds) for files in sizes]
    patch, grown = await asyncio.to_thread(diff_memory)
    told = "; ".join(_told(files, it) for files, it in zip(sizes, found, strict=True))
    loose = _LOOSE if quick else 1
    holds = grown < _MEMORY and all(
        _ratio(it.snapshot, it.bare_snapshot) <= _SNAPSHOT * loose and _ratio(it.diff, it.bare_diff) <= _DIFF * loose
        for it in found
    )
    return Figure(
        text=f"{told}; a diff of {patch / 1e6:.1f} MB was streamed with {grown / 1024:.0f} MB of extra memory, git's "
        f"included (under 64)",
        holds=holds,
        details={
            "milliseconds": {
                str(files): {
                    "snapshot": _ms(it.snapshot),
                    "bare snapshot": _ms(it.bare_snapshot),
                    "nothing changed": _ms(it.nothing),
                    "diff": _ms(it.diff),
                    "bare diff": _ms(it.bare_diff),
                }
                for files, it in zip(sizes, found, strict=True)
            }
        },
    )


def _told(files: int, it: Measured) -> str:
    return (
        f"{files:,} files: a snapshot with one change {_ms(it.snapshot):.0f} ms against {_ms(it.bare_snapshot):.0f} of "
        f"bare git: {_ratio(it.snapshot, it.bare_snapshot):.2f} (at most {_SNAPSHOT}), with none {_ms(it.nothing):.0f} "
        f"ms; a diff {_ms(it.diff):.1f} ms against {_ms(it.bare_diff):.1f}: {_ratio(it.diff, it.bare_diff):.2f} (at "
        f"most {_DIFF})"
    )


def _ms(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1000


def _ratio(ours: list[float], bare: list[float]) -> float:
    return statistics.median(ours) / statistics.median(bare)
