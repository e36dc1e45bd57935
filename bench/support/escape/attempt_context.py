"""The environment of one attempt, the host around it, and what was observed of both."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from bench.support.escape.host_fixture import HostFixture
from footplate.domain.ports.engine import OpenEnvironment
from footplate.environments.isolation.resource_limits import SandboxLimits

MARK: Final = "FOOTPLATE_ESCAPE"
MIB: Final = 1 << 20
LIMITS: Final = SandboxLimits(memory=512 * MIB, pids=256, cpus=1.0, disk=64 * MIB)


@dataclass(slots=True, kw_only=True)
class AttemptContext:
    host: HostFixture
    environment: OpenEnvironment
    mark: str
    tree: Path
    """The path of its tree on the host."""
    output: bytes = b""
    peak: int = 0
    survivors: list[psutil.Process] = field(default_factory=list)
    """Processes that are still alive after the turn."""
    earlier_counts: dict[str, int] = field(default_factory=dict)
    """The listeners' counts before the attempt."""

    def has_received(self, name: str) -> bool:
        return self.host.received[name] > self.earlier_counts.get(name, 0)

    def list_processes(self) -> list[psutil.Process]:
        """Returns the running processes of the attempt, as the host sees them. They inherit its mark."""
        wanted = f"{MARK}={self.mark}".encode()
        found = []
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                try:
                    if wanted in Path(entry.path, "environ").read_bytes().split(b"\0"):
                        found.append(psutil.Process(int(entry.name)))
                except (OSError, psutil.NoSuchProcess):
                    continue
        return found

    def stored_bytes(self) -> int:
        """Returns the bytes on the host's disk, in blocks."""
        total = 0
        for directory, _, files in os.walk(self.tree):
            for name in files:
                try:
                    total += Path(directory, name).lstat().st_blocks * 512
                except OSError:
                    continue
        return total

    def count_files(self) -> int:
        return sum(len(files) for _, _, files in os.walk(self.tree))
