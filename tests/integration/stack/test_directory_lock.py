"""One launcher per data directory. A killed launcher releases its lock."""

import subprocess
import sys
from pathlib import Path

import pytest

from footplate.domain.errors import Conflict
from footplate.stack.launcher_lock import LauncherLock

pytestmark = pytest.mark.timing

HOLD = """
import sys, time
from pathlib import Path
from footplate.stack.launcher_lock import LauncherLock
lock = LauncherLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


def test_a_second_launcher_is_refused_with_the_process_id_of_the_holder(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Conflict, match=f"process {holder.pid}"):
            LauncherLock(tmp_path).acquire()
        holder.kill()
        holder.wait()
    lock = LauncherLock(tmp_path)
    lock.acquire()
    lock.release()


def test_a_released_lock_can_be_acquired_again(tmp_path: Path) -> None:
    first, second = LauncherLock(tmp_path), LauncherLock(tmp_path)
    first.acquire()
    first.release()
    second.acquire()
    second.release()
