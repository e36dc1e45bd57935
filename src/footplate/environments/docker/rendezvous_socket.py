"""The unix socket through which the init process of a container connects to the worker.

Each start of a container uses a new socket, which is mounted into the container before any process of the agent runs.
The worker stops listening as soon as the init process has made its two connections. After that, no process in the
container can reach the worker through this socket.
"""

import asyncio
import os
import secrets
import socket
import struct
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from footplate.environments.docker import container_owner

_CREDENTIALS: Final = struct.Struct("3i")


class RendezvousSocket:
    def __init__(self, directory: Path, owner: str, *, user: int) -> None:
        """`user` is the uid of the init process, which may be root at first. Connections of other users are
        rejected.
        """
        self._users = frozenset({0, os.geteuid(), user})
        self.path = directory / f"{owner}-{secrets.token_hex(4)}"
        self._directory = directory
        self._listener = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> Self:
        self._listener.setblocking(False)
        # Through the directory's descriptor: a socket path may have about 100 characters, and this one is longer.
        directory = os.open(self._directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._listener.bind(f"/proc/self/fd/{directory}/{self.path.name}")
        finally:
            os.close(directory)
        self.path.chmod(0o666)
        self._listener.listen(2)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.path.unlink(missing_ok=True)

    async def accept(self) -> socket.socket:
        while True:
            connection, _ = await asyncio.get_running_loop().sock_accept(self._listener)
            if _credentials(connection)[1] in self._users:
                connection.setblocking(False)
                return connection
            connection.close()


def peer_pid(connection: socket.socket) -> int:
    """Returns the pid of the connected process; 0 if this worker cannot see it."""
    return _credentials(connection)[0]


def _credentials(connection: socket.socket) -> tuple[int, int, int]:
    """Returns process, user and group of the connected process."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, group = _CREDENTIALS.unpack(found)
    return process, user, group


def remove_abandoned(directory: Path) -> int:
    """Removes the sockets whose owner died while waiting. Returns how many it removed."""
    removed = 0
    with suppress(FileNotFoundError):
        for path in directory.iterdir():
            if container_owner.is_alive(path.name.rpartition("-")[0]) is False:
                path.unlink(missing_ok=True)
                removed += 1
    return removed
