"""CI takes at most 20 minutes on two cores, three times in a row, and at most 45 beside two busy loops.

Every run is `.ci/run` in a fresh clone of the last commit. A sample runs only the lane `unit`, once alone and once
beside the loops.
"""

from typing import Final

from bench.ci.fresh_clone import FinishedProcess, busy_loops, run_ci
from bench.prove.figure import Figure, require, time_limit

_RUNS: Final = 3
_LIMIT: Final = 20 * 60
_LIMIT_BUSY: Final = 45 * 60


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    lanes = ("unit",) if quick else ()
    alone_runs = [await _run_passing_ci(*lanes) for _ in range(1 if quick else _RUNS)]
    async with busy_loops(2):
        busy_run = await _run_passing_ci(*lanes)
    minutes = [round(ended.seconds / 60, 1) for ended in alone_runs]
    return Figure(
        headline=f"CI took at most {max(minutes)} minutes (limit {_LIMIT // 60}), "
        f"{busy_run.seconds / 60:.1f} beside busy "
        f"loops (limit {_LIMIT_BUSY // 60})",
        summary=f"{len(alone_runs)} runs of CI in fresh clones passed in {', '.join(map(str, minutes))} minutes (limit "
        f"{_LIMIT // 60}); beside two busy loops in {busy_run.seconds / 60:.1f} (limit {_LIMIT_BUSY // 60})",
        holds=max(ended.seconds for ended in alone_runs) <= time_limit(_LIMIT, quick=quick)
        and busy_run.seconds <= time_limit(_LIMIT_BUSY, quick=quick),
        details={"seconds": [round(ended.seconds) for ended in alone_runs], "seconds_busy": round(busy_run.seconds)},
    )


async def _run_passing_ci(*lanes: str) -> FinishedProcess:
    ended = await run_ci(*lanes, limit=90 * 60)
    print(ended.tail if ended.exit_code == 0 else ended.output, flush=True)
    require(holds=ended.exit_code == 0, otherwise=f"CI failed after {ended.seconds:.0f} s")
    return ended
