"""The death watch: a process next to each worker that removes the worker's processes and files if the worker is killed.

The death watch waits until the kernel closes the pipe from the worker, which happens however the worker dies. Then it
runs the reaper until no lease of that worker remains, and exits. Without the death watch, control groups and sockets
would stay until the next worker starts on the host.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from footplate.environments.processes.process_identity import ProcessIdentity, current_process
from footplate.environments.reaper.expired_lease_reaper import Reaper

# It may import only the standard library and Footplate: it runs without site packages and environment variables.
_PROGRAM: Final = f"""
import sys
sys.path.append({str(Path(__file__).parents[3])!r})
from footplate.environments.reaper import death_watch
death_watch.main()
"""
_REAP_INTERVAL: Final = 0.05
_MAX_SECONDS: Final = 60.0
"""The maximum time in seconds. By then every lease has expired; the next worker removes what remains."""
_STOP_TIMEOUT: Final = 5.0


class DeathWatch:
    """The worker's side of the death watch."""

    def __init__(self, data: Path, groups: Sequence[Path]) -> None:
        self._arguments = [str(data), *(str(group) for group in groups)]
        self._process: subprocess.Popen[bytes] | None = None

    def ensure_running(self) -> None:
        """Starts the process if it does not run, for example after it was killed."""
        if self._process is None or self._process.poll() is not None:
            self.stop()
            me = current_process()
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, str(me.pid), str(me.started), *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )

    def stop(self) -> None:
        """Ends the process. After an orderly exit of the worker it finds no lease and exits by itself."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    worker = ProcessIdentity(int(sys.argv[1]), int(sys.argv[2]))
    reaper = Reaper(Path(sys.argv[3]), [Path(group) for group in sys.argv[4:]])
    while os.read(0, 1):
        pass
    until = time.monotonic() + _MAX_SECONDS
    reaper.reap()
    while reaper.has_leases_of(worker) and time.monotonic() < until:
        time.sleep(_REAP_INTERVAL)
        reaper.reap()
