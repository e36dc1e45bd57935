"""A lane's CPU time includes every process that it started. A process that outlives the lane fails it."""

import json
import subprocess
import sys
from pathlib import Path

import psutil
from bench.ci.lanes import ROOT

_RUN = """
import sys
from pathlib import Path
from bench.ci.lane_process import run_lane
from bench.ci.lanes import Lane
import bench.ci.lane_process as module
module._LEFTOVERS_END_WITHIN = float(sys.argv[2])
run_lane(Lane("x", sys.argv[3:], 1), Path(sys.argv[1]))
"""
_BUSY = "import os, time\nend = time.process_time() + 1\nwhile time.process_time() < end: pass"
_ORPHAN = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {_BUSY!r}], start_new_session=True)"


def _lane(tmp_path: Path, *command: str, patience: float) -> dict[str, object]:
    run = [sys.executable, "-c", _RUN, str(tmp_path), str(patience), *command]
    subprocess.run(run, cwd=ROOT, check=True, timeout=120)
    found = json.loads((tmp_path / "x.json").read_text())
    assert isinstance(found, dict)
    return found


def test_orphans_are_counted(tmp_path: Path) -> None:
    found = _lane(tmp_path, sys.executable, "-c", _ORPHAN, patience=60)
    assert found["exit_code"] == 0
    assert found["leftovers"] == []
    assert 1 <= float(str(found["cpu_seconds"])) < 5


def test_a_process_that_outlives_the_command_is_reported_and_killed(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    found = _lane(tmp_path, "sh", "-c", f"setsid sleep 4321 & echo $! > {started}; exit 3", patience=1)
    assert (found["exit_code"], found["leftovers"]) == (3, ["sleep 4321"])
    assert not psutil.pid_exists(int(started.read_text()))
