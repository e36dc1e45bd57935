"""Diffs and restores are exact: a diff's patch turns the old tree into the new one, byte for byte.

Hypothesis generates the change sets: renames, binary files, modes, links, deletions, files that become directories,
names in Latin-1, emoji and any other bytes, files of 10 MB, nested repositories. The expected content is stored without
git.
"""

import asyncio
from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings

from bench.prove.figure import Figure
from bench.support.changes.change_check import find_change_faults
from bench.support.changes.change_generation import ChangeSet, change_sets

_SEED = 20261115


class _Tally:
    def __init__(self) -> None:
        self.sets = 0
        self.patches = 0
        self.kinds: Counter[str] = Counter()
        self.faults: list[str] = []


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    tally = _Tally()
    await asyncio.to_thread(_run_change_sets, 20 if quick else 500, tally)
    kinds = ", ".join(f"{count} {kind}" for kind, count in tally.kinds.most_common())
    headline = f"{tally.sets} change sets: every patch and every restore exact, byte for byte"
    summary = (
        f"{tally.sets} change sets ({kinds}), patches of {tally.patches / 1e6:.0f} MB in all: each patch "
        f"turned the old "
        "tree into the new one, byte for byte; so did each restore, with the history of nested repositories"
    )
    if tally.faults:
        headline = f"{len(tally.faults)} faults in {tally.sets} change sets"
        summary = f"{headline}, the first: {tally.faults[0]}"
    required_kinds = {"rename", "mode", "link", "delete", "edit", "write", "swap", "nested"} | (
        set() if quick else {"10 MB"}
    )
    if missing := sorted(required_kinds - tally.kinds.keys()):
        headline = f"change sets lack {len(missing)} kinds of changes"
        summary = f"no change set has: {', '.join(missing)}. {summary}"
    return Figure(
        headline=headline,
        summary=summary,
        holds=not tally.faults and not missing and tally.sets >= (20 if quick else 500),
        details={"faults": list(tally.faults), "kinds": dict(tally.kinds), "seed": _SEED},
    )


def _run_change_sets(count: int, tally: _Tally) -> None:
    @seed(_SEED)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(changes=change_sets())
    def check_change_set(changes: ChangeSet) -> None:
        faults, size = asyncio.run(find_change_faults(changes))
        tally.sets += 1
        tally.patches += size
        tally.kinds += changes.kinds
        for fault in faults:
            tally.faults.append(f"set {tally.sets}: {fault}")
            print(f"  {tally.faults[-1]}", flush=True)
        if tally.sets % 50 == 0:
            print(f"  {tally.sets} change sets, {len(tally.faults)} faults", flush=True)

    check_change_set()
