"""Defines the resource limits of a sandbox, and which of them can be set per process, without control groups."""

import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

GIB = 1 << 30
_MIN_FILES: Final = 512
_SOCKET_MEMORY_DIVISOR: Final = 16
PRESET_LIMITS: Final = {"RLIMIT_CORE": 1}
"""Set before the sandbox starts, because its seccomp filter forbids changes. With a core limit of 0 the kernel still
pipes a crash to a core handler of the machine, which runs as root; with 1 byte it does not.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    memory: int = 4 * GIB
    """Bytes for all processes together, including the files in /tmp and /dev/shm."""
    pids: int = 1024
    """The maximum number of processes and threads."""
    cpus: float = 2.0
    disk: int = 10 * GIB
    """The maximum size in bytes of working directory and home together, enforced by measurement."""
    files: int = 65_536
    """The maximum number of descriptors per process; lower if the machine or the worker does not have enough."""

    @property
    def socket_memory(self) -> int:
        """The memory limit for socket buffers, where the kernel counts it separately."""
        return self.memory // _SOCKET_MEMORY_DIVISOR

    def process_limits(self, *, has_cgroup: bool, may_write: bool = True) -> dict[str, int]:
        """Returns the limits of one process, by their names in the `resource` module. Without a control group, memory
        is limited per process.

        The kernel counts processes per user namespace, so that limit applies to the sandbox as a whole. The kernel
        exempts root from it.
        """
        limits = {
            **PRESET_LIMITS,
            "RLIMIT_FSIZE": self.disk if may_write else 0,
            "RLIMIT_NOFILE": min(self.files, _max_open_files(self.pids)),
            "RLIMIT_NPROC": self.pids,
        }
        if not has_cgroup:
            limits["RLIMIT_DATA"] = self.memory
        return limits


def _max_open_files(pids: int) -> int:
    """Returns a descriptor limit with which all processes of a sandbox together use at most half of the machine's open
    files.

    It is also at most half of the worker's own limit. If sandbox and worker run as the same user, the kernel counts the
    descriptors in flight through sockets together, and refuses more to the process with the lower limit.
    """
    machine_limit = int(Path("/proc/sys/fs/file-max").read_text())
    worker_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return max(_MIN_FILES, min(machine_limit // (2 * pids), worker_limit // 2))
