"""A workspace can say what it likes to git: nothing of it runs on the host, and nothing outside is read or written.

Each trick is planted in a session's tree, and most in the project's own repository too. Then the host does all that it
does with a session's files: placing, snapshots, packs, diffs, the agent's commits, restoring, forks, pushing, merging,
on three hosts.
At last plain git does one command in the same tree, and there the trick has to work: one that could not is none.
"""

from typing import Final

from bench.prove.figure import Figure
from bench.support.hostile_trees import reaching, running
from bench.support.hostile_trees.trial import Outcome, run

_LEAST: Final = 25


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    tricks = (*running.TRICKS, *reaching.TRICKS)
    chosen = tricks[::6] if quick else tricks
    outcomes: list[Outcome] = []
    for trick in chosen:
        outcomes.append(await run(trick))
        for fault in outcomes[-1].faults:
            print(f"  FAULT {fault}", flush=True)
    faults = [fault for outcome in outcomes for fault in outcome.faults]
    worked = sum(outcome.fired for outcome in outcomes)
    operations = sum(outcome.operations for outcome in outcomes)
    text = (
        f"{len(outcomes)} tricks: of {operations} operations of the host (placing, snapshots,"
        " packs, diffs, commits, restoring, forks, pushes, merges) none ran, read or wrote anything outside; with plain"
        f" git in the same tree {worked} of {len(outcomes)} worked"
    )
    return Figure(
        text=faults[0] if faults else text,
        holds=not faults and worked == len(outcomes) and (quick or len(tricks) >= _LEAST),
        details={"tricks": [trick.name for trick in chosen], "operations": operations, "faults": list(faults)},
    )
