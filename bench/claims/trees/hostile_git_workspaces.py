"""A hostile git workspace cannot run anything on the host, or read or write anything outside itself.

Each trick is planted in a session's tree, and most in the project's own repository too. Then three hosts do everything
that a host does with a session's files: checkouts, snapshots, packs, diffs, the agent's commits, restores, forks,
pushes, merges. Finally plain git runs one command in the same tree, and there the trick has to work; otherwise it would
prove nothing.
"""

from typing import Final

from bench.prove.figure import Figure
from bench.support.hostile_trees import outside_access_tricks, program_execution_tricks
from bench.support.hostile_trees.trial import TrickOutcome, try_trick

_MIN_TRICKS: Final = 25


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    tricks = (*program_execution_tricks.TRICKS, *outside_access_tricks.TRICKS)
    chosen = tricks[::6] if quick else tricks
    outcomes: list[TrickOutcome] = []
    for trick in chosen:
        outcomes.append(await try_trick(trick))
        for fault in outcomes[-1].faults:
            print(f"  FAULT {fault}", flush=True)
    faults = [fault for outcome in outcomes for fault in outcome.faults]
    effective = sum(outcome.works_on_plain_git for outcome in outcomes)
    operations = sum(outcome.operations for outcome in outcomes)
    headline = f"{len(outcomes)} tricks, {operations:,} operations: nothing ran, read or wrote outside"
    summary = (
        f"{len(outcomes)} tricks: none of {operations} operations of the host (checkouts, snapshots, packs, diffs, "
        "commits, restores, forks, pushes, merges) ran, read or wrote anything outside; with plain git in the same "
        f"tree {effective} of {len(outcomes)} tricks worked"
    )
    if faults:
        headline, summary = f"{len(outcomes)} tricks, {operations:,} operations: {len(faults)} faults", faults[0]
    elif effective != len(outcomes):
        headline = f"only {effective} of {len(outcomes)} tricks work with plain git"
    return Figure(
        headline=headline,
        summary=summary,
        holds=not faults and effective == len(outcomes) and (quick or len(tricks) >= _MIN_TRICKS),
        details={"tricks": [trick.name for trick in chosen], "operations": operations, "faults": list(faults)},
    )
