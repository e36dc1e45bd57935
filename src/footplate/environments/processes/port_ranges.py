"""Gives each running environment a range of ports, so that the servers of sessions on one host do not collide.

A range is held by a socket with an abstract name. Such a name exists in one network namespace, as ports do, and the
kernel releases it when the process dies.
"""

import socket
import zlib
from dataclasses import dataclass
from typing import Final, Self

PORTS_VARIABLE: Final = "FOOTPLATE_PORTS"
"""The environment variable with the first and the last port, such as `20340-20349`."""
_FIRST: Final = 20_000
"""Below the ports that Linux gives to outgoing connections."""
_SIZE: Final = 10
_COUNT: Final = 1000


@dataclass(frozen=True, slots=True)
class PortRange:
    first: int
    _holder: socket.socket

    @classmethod
    def reserve(cls, key: str) -> Self | None:
        """Reserves a range. The same key gets the same range if it is free. None: all are taken."""
        start = zlib.crc32(key.encode())
        for number in range(_COUNT):
            first = _FIRST + (start + number) % _COUNT * _SIZE
            holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            try:
                holder.bind(f"\0footplate-ports-{first}")
            except OSError:
                holder.close()
            else:
                return cls(first, holder)
        return None

    def __str__(self) -> str:
        return f"{self.first}-{self.first + _SIZE - 1}"

    def release(self) -> None:
        self._holder.close()
