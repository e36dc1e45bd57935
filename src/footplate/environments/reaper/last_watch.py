"""The last watch: a small process beside each worker that cleans up after it when it was killed.

Without it a host's only worker would leave its control groups and sockets to the next one. It waits for the end of its
pipe, which the kernel sees to whatever the worker died of, reaps until no lease of that worker is left, and goes.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from footplate.environments.reaper.processes import Process, itself
from footplate.environments.reaper.reaping import Reaper

# Nothing but the standard library and what is ours: it is started with neither site packages nor variables.
_PROGRAM: Final = f"""
import sys
sys.path.append({str(Path(__file__).parents[3])!r})
from footplate.environments.reaper import last_watch
last_watch.main()
"""
_ROUND: Final = 0.05
_LONGEST: Final = 60.0
"""By then every lease has run out long ago; what is left is for the next worker."""
_END_LIMIT: Final = 5.0


class LastWatch:
    """The worker's side."""

    def __init__(self, data: Path, groups: Sequence[Path]) -> None:
        self._arguments = [str(data), *(str(group) for group in groups)]
        self._process: subprocess.Popen[bytes] | None = None

    def keep(self) -> None:
        """Start it, also anew if somebody killed it."""
        if self._process is None or self._process.poll() is not None:
            self.end()
            me = itself()
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, str(me.pid), str(me.started), *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )

    def end(self) -> None:
        """A worker that ends in order has left nothing: its watch finds that and goes."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_END_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    worker = Process(int(sys.argv[1]), int(sys.argv[2]))
    reaper = Reaper(Path(sys.argv[3]), [Path(group) for group in sys.argv[4:]])
    while os.read(0, 1):
        pass
    until = time.monotonic() + _LONGEST
    reaper.reap()
    while reaper.left_by(worker) and time.monotonic() < until:
        time.sleep(_ROUND)
        reaper.reap()
