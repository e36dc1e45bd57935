"""How much a sandbox may use, and which of it a process can be told by itself, without control groups."""

import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

GIB = 1 << 30
_LEAST_FILES: Final = 512
_SHARE_OF_SOCKETS: Final = 16
BEFORE: Final = {"RLIMIT_CORE": 1}
"""Set outside already: the filter of a sandbox lets nobody change it. With 0 the kernel still feeds a crash to a
handler that the machine may have, as root; with 1 byte it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    memory: int = 4 * GIB
    """Of all processes together, what they write to /tmp and /dev/shm included."""
    pids: int = 1024
    """Processes and threads."""
    cpus: float = 2.0
    disk: int = 10 * GIB
    """What working directory and home may grow to, by measurement."""
    files: int = 65_536
    """Descriptors of one process; fewer where the machine, or the worker, has not enough of them."""

    @property
    def sockets(self) -> int:
        """Memory for the buffers of connections, where the kernel counts it apart."""
        return self.memory // _SHARE_OF_SOCKETS

    def of_a_process(self, *, grouped: bool, may_write: bool = True) -> dict[str, int]:
        """By the names of the `resource` module. Without a control group memory is limited process by process.

        The number of processes is counted by the kernel for the sandbox's own user namespace, so it holds for the
        sandbox as a whole. It does not for root, whom the kernel exempts.
        """
        limits = {
            **BEFORE,
            "RLIMIT_FSIZE": self.disk if may_write else 0,
            "RLIMIT_NOFILE": min(self.files, _fair_files(self.pids)),
            "RLIMIT_NPROC": self.pids,
        }
        if not grouped:
            limits["RLIMIT_DATA"] = self.memory
        return limits


def _fair_files(pids: int) -> int:
    """So that a sandbox with all its processes cannot take more than half of the machine's open files.

    And none of them more than half of the worker's: where both are one user, the kernel counts descriptors that are on
    their way through a socket together, and refuses more to whoever has the lower limit.
    """
    machine = int(Path("/proc/sys/fs/file-max").read_text())
    own = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return max(_LEAST_FILES, min(machine // (2 * pids), own // 2))
