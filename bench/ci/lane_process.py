"""Runs one lane in its own process, and measures the CPU time of everything that the lane started.

The process is a child subreaper: orphans of the lane become its children, so the kernel adds their CPU time to the
lane's when they end. A process that still runs after the lane's command has ended was left behind by a test. It is
killed, and the lane fails.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil

from bench.ci.lanes import ROOT, Lane, load_lanes

PYTEST_OPTIONS: Final = "FOOTPLATE_CI_PYTEST"
"""The environment variable with further options for pytest."""
PR_SET_CHILD_SUBREAPER: Final = 36
_LEFTOVERS_END_WITHIN: Final = 15.0
_POLL_INTERVAL: Final = 0.05
_MAX_SECONDS: Final = 60 * 60.0
"""Seconds after which a hanging lane is stopped and fails."""


@dataclass(frozen=True, slots=True)
class LaneResult:
    lane: str
    exit_code: int
    wall_seconds: float
    cpu_seconds: float
    leftovers: tuple[str, ...] = ()
    """Command lines of processes that outlived the lane's command."""


class _Usage:
    """Reaps children and adds up their CPU time."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0
        self.exit_codes: dict[int, int] = {}

    def reap(self, options: int = 0) -> bool:
        """Waits for one child. Returns False if there is none, or with `WNOHANG` none that has ended."""
        try:
            pid, status, usage = os.wait4(-1, options)
        except ChildProcessError:
            return False
        if pid == 0:
            return False
        self.cpu_seconds += usage.ru_utime + usage.ru_stime
        self.exit_codes[pid] = os.waitstatus_to_exitcode(status)
        return True


def run_lane(lane: Lane, results: Path) -> LaneResult:
    """Runs the lane's command with its output on ours, and writes the result to a file in `results`."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # A shell starts background jobs with SIGINT ignored, and children inherit that: tests that send it would hang.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    usage, started = _Usage(), time.monotonic()
    options = f"--junitxml={results / f'{lane.name}.xml'} {os.environ.get(PYTEST_OPTIONS, '')}"
    process = subprocess.Popen(lane.command, cwd=ROOT, env={**os.environ, "PYTEST_ADDOPTS": options})
    stopping = threading.Timer(_MAX_SECONDS, process.kill)
    stopping.daemon = True
    stopping.start()
    while process.pid not in usage.exit_codes:
        usage.reap()
    stopping.cancel()
    wall = time.monotonic() - started
    leftovers = _end_leftovers(usage)
    result = LaneResult(lane.name, usage.exit_codes[process.pid], wall, usage.cpu_seconds, leftovers)
    (results / f"{lane.name}.json").write_text(json.dumps(asdict(result)))
    return result


def _end_leftovers(usage: _Usage) -> tuple[str, ...]:
    deadline = time.monotonic() + _LEFTOVERS_END_WITHIN
    while time.monotonic() < deadline and psutil.Process().children():
        if not usage.reap(os.WNOHANG):
            time.sleep(_POLL_INTERVAL)
    leftovers: dict[int, str] = {}
    deadline = time.monotonic() + _LEFTOVERS_END_WITHIN
    while time.monotonic() < deadline and (found := psutil.Process().children(recursive=True)):
        for process in found:
            with suppress(psutil.NoSuchProcess):  # it has just ended
                leftovers.setdefault(process.pid, " ".join(process.cmdline())[:200])
                process.kill()
        while usage.reap(os.WNOHANG):
            pass
        time.sleep(_POLL_INTERVAL)
    return tuple(leftovers.values())


if __name__ == "__main__":
    finished = run_lane(load_lanes()[sys.argv[1]], Path(sys.argv[2]))
    sys.exit(0 if finished.exit_code == 0 and not finished.leftovers else 1)
