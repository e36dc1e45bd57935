"""A private docker engine, for tests and proofs: its own data, socket and containerd, no bridge and no firewall rules.

Needs root and Debian's docker.io, or dockerd, containerd and runc from elsewhere.
"""

import asyncio
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from footplate.stack.part import Part, PartFailed

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PING: Final = b"GET /_ping HTTP/1.0\r\n\r\n"


def missing() -> str:
    """Why this machine cannot run one; empty if nothing is known to be in the way."""
    if os.geteuid() != 0:
        return "a private dockerd needs root"
    programs = [name for name in ("dockerd", "containerd", "runc") if shutil.which(name, path=_PATH) is None]
    return f"not installed: {', '.join(programs)}" if programs else ""


class Dockerd(Part):
    title = "docker"

    @property
    def address(self) -> str:
        return f"unix://{self._socket}"

    @property
    def program(self) -> Path:
        found = shutil.which("dockerd", path=_PATH)
        if found is None:
            raise PartFailed("There is no dockerd on this machine.", help_text="apt install docker.io")
        return Path(found)

    def arguments(self) -> Sequence[str]:
        # A machine may have a containerd that dockerd would find and share: then by a name of its own.
        namespace = hashlib.sha256(str(self.directory).encode()).hexdigest()[:12]
        return (
            f"--host={self.address}",
            f"--data-root={self.directory / 'data'}",
            f"--exec-root={self.directory / 'exec'}",
            f"--pidfile={self.directory / 'pid'}",
            f"--containerd-namespace=footplate-{namespace}",
            f"--containerd-plugins-namespace=footplate-plugins-{namespace}",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
        )

    async def prepare(self) -> None:
        """After a SIGKILL it would wait for the containerd that it had, if that process id is anybody's by now."""
        await super().prepare()
        for stale in ("pid", "exec/containerd/containerd.pid"):
            (self.directory / stale).unlink(missing_ok=True)

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "PATH": _PATH}

    async def ready(self) -> bool:
        try:
            reader, writer = await asyncio.open_unix_connection(self._socket)
        except OSError:
            return False
        try:
            writer.write(_PING)
            return (await reader.readline()).split()[1:2] == [b"200"]
        except OSError:
            return False
        finally:
            writer.close()

    async def stop(self) -> None:
        await super().stop()
        await asyncio.to_thread(self._unmount)

    async def remove(self) -> None:
        """Stop it, and leave nothing on disk."""
        await self.stop()
        await asyncio.to_thread(shutil.rmtree, self.directory, ignore_errors=True)

    @property
    def _socket(self) -> Path:
        return self.directory / "docker.sock"

    def _unmount(self) -> None:
        """What is left of containers that were killed with it."""
        mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        below = [point for point in mounted if Path(point).is_relative_to(self.directory)]
        for point in sorted(below, key=len, reverse=True):
            subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)
