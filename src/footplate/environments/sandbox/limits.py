"""How much a sandbox may use, and which of it a process can be told by itself, without control groups."""

from dataclasses import dataclass

GIB = 1 << 30


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
    """Descriptors of one process."""

    def of_a_process(self, *, grouped: bool) -> dict[str, int]:
        """By the names of the `resource` module. Without a control group memory is limited process by process.

        The number of processes is counted by the kernel for the sandbox's own user namespace, so it holds for the
        sandbox as a whole. It does not for root, whom the kernel exempts.
        """
        limits = {
            "RLIMIT_CORE": 0,
            "RLIMIT_FSIZE": self.disk,
            "RLIMIT_NOFILE": self.files,
            "RLIMIT_NPROC": self.pids,
        }
        if not grouped:
            limits["RLIMIT_DATA"] = self.memory
        return limits
