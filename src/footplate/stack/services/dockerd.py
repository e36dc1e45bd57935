"""Runs a private Docker daemon for tests and benchmarks, with its own data directory, socket and containerd.

It creates no network bridge and no firewall rules. It needs root, and an installation of dockerd, containerd and runc,
such as Debian's docker.io.
"""

import asyncio
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from footplate.stack.services.service import Service, ServiceFailed

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PING: Final = b"GET /_ping HTTP/1.0\r\n\r\n"


def dockerd_obstacle() -> str:
    """Returns why this machine cannot run a private engine, or an empty string if no obstacle is known."""
    if os.geteuid() != 0:
        return "a private dockerd requires root"
    programs = [name for name in ("dockerd", "containerd", "runc") if shutil.which(name, path=_PATH) is None]
    return f"not installed: {', '.join(programs)}" if programs else ""


class Dockerd(Service):
    title = "docker"

    @property
    def address(self) -> str:
        return f"unix://{self._socket}"

    @property
    def program(self) -> Path:
        path = shutil.which("dockerd", path=_PATH)
        if path is None:
            raise ServiceFailed("dockerd is not installed on this machine.", help_text="Run `apt install docker.io`.")
        return Path(path)

    def arguments(self) -> Sequence[str]:
        # dockerd may find and share a containerd that already runs on the machine, so it gets its own namespace in it.
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
        """Removes stale pid files. Otherwise, if an unrelated process has the old pid after a SIGKILL, dockerd would
        wait for it as if it were its containerd.
        """
        await super().prepare()
        for stale in ("pid", "exec/containerd/containerd.pid"):
            (self.directory / stale).unlink(missing_ok=True)

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "PATH": _PATH}

    async def is_ready(self) -> bool:
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
        """Stops the engine and deletes its directory."""
        await self.stop()
        await asyncio.to_thread(shutil.rmtree, self.directory, ignore_errors=True)

    @property
    def _socket(self) -> Path:
        return self.directory / "docker.sock"

    def _unmount(self) -> None:
        """Unmounts the file systems of containers that were killed together with the engine."""
        mount_points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        own_mounts = [point for point in mount_points if Path(point).is_relative_to(self.directory)]
        for point in sorted(own_mounts, key=len, reverse=True):
            subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)
