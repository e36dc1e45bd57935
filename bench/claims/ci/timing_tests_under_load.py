"""Tests that depend on processes or clocks pass twenty times in a row beside two busy loops.

Each round runs every test with the marker `timing`, in the lanes of CI. A sample runs one round of the lane `unit`.
"""

import os
import re
import sys
from collections import Counter
from typing import Final

from bench.ci.fresh_clone import busy_loops, run
from bench.ci.lane_process import PYTEST_OPTIONS
from bench.ci.lanes import ROOT, Lane, load_lanes
from bench.prove.figure import Figure

_ROUNDS: Final = int(os.environ.get("FOOTPLATE_CI_ROUNDS", "20"))
_PASSED: Final = re.compile(r"^(\d+) passed", re.MULTILINE)
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (tests/\S+)", re.MULTILINE)


def _has_timing_tests(lane: Lane) -> bool:
    """Whether one of the lane's tests has the marker: pytest fails when it has no test to run."""
    paths = [ROOT / path for path in lane.test_paths]
    files = [file for place in paths for file in (place.rglob("test_*.py") if place.is_dir() else [place])]
    return any("pytest.mark.timing" in file.read_text() for file in files)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    lanes = ["unit"] if quick else [lane.name for lane in load_lanes().values() if _has_timing_tests(lane)]
    environment = {**os.environ, PYTEST_OPTIONS: "-m timing", "FOOTPLATE_TESTS_NEED_DOCKER": "1"}
    rounds, passed, failures = 1 if quick else _ROUNDS, 0, Counter[str]()
    async with busy_loops(2):
        for number in range(1, rounds + 1):
            ended = await run(sys.executable, "-m", "bench.ci", *lanes, environment=environment, limit=90 * 60)
            failed = _FAILED.findall(ended.output)
            if ended.exit_code != 0:
                print(ended.output, flush=True)
                failed = failed or ["a lane"]
            passed += sum(map(int, _PASSED.findall(ended.output)))
            failures.update(failed)
            print(f"  round {number}: {ended.seconds:.0f} s, failed: {failed or 'none'}", flush=True)
    return Figure(
        headline=f"{rounds} rounds beside two busy loops: {passed:,} tests passed, {failures.total()} failed",
        summary=f"{rounds} rounds beside two busy loops: {passed} tests passed, {failures.total()} failed"
        + "".join(f"; {name} {count} times" for name, count in failures.most_common()),
        holds=passed > 0 and not failures,
        details={"rounds": rounds, "passed": passed, "failures": dict(failures)},
    )
