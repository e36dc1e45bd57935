"""Finds free TCP ports on loopback, below the kernel's range of ports for outgoing connections.

A port inside that range is unsafe for a server that may restart. While the server is down, the kernel may
assign its port to an outgoing connection. Even a client of that server may get the port as its own, and would
then connect to itself.
"""

import random
import socket
from pathlib import Path
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_MIN_PORT: Final = 15_000
_DEFAULT_FIRST_EPHEMERAL_PORT: Final = 32_768
_MAX_ATTEMPTS: Final = 200


def find_free_port() -> int:
    highest = _first_ephemeral_port() - 1
    for _ in range(_MAX_ATTEMPTS):
        port = random.randint(min(_MIN_PORT, highest - 1000), highest)  # noqa: S311 - not a secret
        if is_port_free(port):
            return port
    raise OSError(f"No free port found on {LOOPBACK} below {highest}.")


def is_port_free(port: int, host: str = LOOPBACK) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do, so that a port whose old connections are in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def _first_ephemeral_port() -> int:
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _DEFAULT_FIRST_EPHEMERAL_PORT
    # If the whole range is ephemeral, the default limit is the best choice available.
    return first if first > _MIN_PORT + 1000 else _DEFAULT_FIRST_EPHEMERAL_PORT
