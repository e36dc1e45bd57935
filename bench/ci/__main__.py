"""`python -m bench.ci [LANE…]`: runs the lanes of CI side by side, and checks the CPU budget of each.

Prints the output of each lane when it ends, and at the end wall and CPU seconds by lane and the five slowest tests.
Exits with 0 only if every lane passed, left no process running and stayed within its budget.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from bench.ci.lane_process import LaneResult
from bench.ci.lanes import ROOT, TOLERANCE, Lane, load_lanes, machine_slowdown

_SIDE_BY_SIDE: Final = int(os.environ.get("FOOTPLATE_CI_LANES", "3"))
_SLOWEST_COUNT: Final = 5


def main() -> None:
    lanes = load_lanes()
    unknown = [name for name in sys.argv[1:] if name not in lanes]
    if unknown:
        sys.exit(f"Unknown lane: {', '.join(unknown)}. The lanes are {', '.join(lanes)}.")
    selected = [lanes[name] for name in sys.argv[1:]] or [*lanes.values()]
    with tempfile.TemporaryDirectory(prefix="footplate-ci-") as directory:
        results = run_lanes(selected, Path(directory))
        print("\n".join(["", *format_summary(results), "", *format_slowest_tests(Path(directory))]), flush=True)
    slowdown = machine_slowdown({result.lane: result.cpu_seconds for result in results}, lanes)
    if slowdown > 1:
        print(f"\nThis machine needs {slowdown:.2f} times the CPU time of the budgets; they are raised by as much.")
    problems = [problem for result in results for problem in find_problems(result, lanes[result.lane], slowdown)]
    print("\n".join(["", *problems] if problems else ["", "Every lane passed within its budget."]), flush=True)
    sys.exit(1 if problems else 0)


def run_lanes(lanes: Sequence[Lane], directory: Path) -> list[LaneResult]:
    """Runs the lanes in this order, a few at a time. The longest should come first."""
    started = time.monotonic()
    results: list[LaneResult] = []
    with ThreadPoolExecutor(max_workers=_SIDE_BY_SIDE) as pool:
        running = {pool.submit(_run_lane, lane, directory): lane for lane in lanes}
        for done in as_completed(running):
            result, output = done.result()
            results.append(result)
            header = f"== lane {result.lane}: exit code {result.exit_code}, {result.wall_seconds:.0f} s"
            print(f"\n{header}, at {time.monotonic() - started:.0f} s\n{output}", flush=True)
    return results


def _run_lane(lane: Lane, directory: Path) -> tuple[LaneResult, str]:
    log = directory / f"{lane.name}.log"
    with log.open("wb") as output:
        subprocess.run(
            [sys.executable, "-m", "bench.ci.lane_process", lane.name, str(directory)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    report = directory / f"{lane.name}.json"
    if not report.is_file():
        return LaneResult(lane.name, 1, 0, 0), log.read_text(errors="replace")
    recorded: dict[str, Any] = json.loads(report.read_text())
    recorded["leftovers"] = tuple(recorded["leftovers"])
    return LaneResult(**recorded), log.read_text(errors="replace")


def find_problems(result: LaneResult, lane: Lane, slowdown: float = 1) -> list[str]:
    """Returns the reasons why the lane fails; empty if it passed."""
    found = [] if result.exit_code == 0 else [f"FAILED {lane.name}: exit code {result.exit_code}"]
    found += [f"FAILED {lane.name}: a process is still running: {command}" for command in result.leftovers]
    if result.cpu_seconds > lane.limit(slowdown):
        found.append(
            f"FAILED {lane.name}: used {result.cpu_seconds:.0f} CPU seconds, more than {TOLERANCE} times its budget of "
            f"{lane.cpu_seconds * slowdown:.0f}. Reduce its work, or raise cpu_seconds in bench/ci/lanes.toml."
        )
    return found


def format_summary(results: Sequence[LaneResult]) -> list[str]:
    ordered = sorted(results, key=lambda result: -result.cpu_seconds)
    rows = [f"{each.lane:<16}{each.wall_seconds:>10.0f}{each.cpu_seconds:>10.0f}" for each in ordered]
    total = f"{'all':<16}{'':>10}{sum(each.cpu_seconds for each in results):>10.0f}"
    return [f"{'lane':<16}{'wall s':>10}{'CPU s':>10}", *rows, total]


def format_slowest_tests(directory: Path) -> list[str]:
    cases = [case for report in directory.glob("*.xml") for case in ET.parse(report).iter("testcase")]
    ordered = sorted(cases, key=lambda case: -float(case.get("time", "0")))[:_SLOWEST_COUNT]
    rows = [f"{float(each.get('time', '0')):>8.1f} s  {each.get('classname')}.{each.get('name')}" for each in ordered]
    return ["slowest tests", *rows]


if __name__ == "__main__":
    main()
