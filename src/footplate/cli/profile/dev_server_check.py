"""Verifies that `dev.json` was written by a `footplate dev` that still runs, before a command sends it an API key.

A process id alone proves nothing, because ids and ports are reused. The process must have the recorded start time. The
socket that listens on the port must belong to its child process, the API.
"""

import os
import socket
import stat
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

_LISTENING: Final = "0A"
_TCP_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
_PARENT, _START_TIME = 1, 19  # fields of /proc/PID/stat, counted from the process state


def is_private(path: Path) -> bool:
    """Whether the file belongs to this user, and no other user can write it or replace it in its directory."""
    try:
        file, directory = path.lstat(), path.parent.stat()
    except OSError:
        return False
    writable = stat.S_IWGRP | stat.S_IWOTH
    return (
        stat.S_ISREG(file.st_mode)
        and file.st_uid == os.geteuid()
        and not file.st_mode & writable
        and directory.st_uid == os.geteuid()
        and not directory.st_mode & writable
    )


def start_time(pid: int) -> int:
    """Returns the start time in clock ticks since boot, or 0 if there is no such process."""
    return _number_in_stat(pid, _START_TIME)


def is_child(pid: int, parent: int) -> bool:
    return pid == parent or _number_in_stat(pid, _PARENT) == parent


def listens(pid: int, base_url: str) -> bool:
    """Whether all sockets that listen at this address belong to the process."""
    try:
        split = urlsplit(base_url)
        addresses = socket.getaddrinfo(split.hostname, split.port or 80, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return False
    found = {inode for address in addresses for inode in _listeners(str(address[4][0]), int(address[4][1]))}
    return bool(found) and found <= _socket_inodes(pid)


def _number_in_stat(pid: int, index: int) -> int:
    try:
        # The process name in parentheses may contain spaces and parentheses.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[index])
    except (OSError, ValueError, IndexError):
        return 0


def _listeners(host: str, port: int) -> set[str]:
    wanted = ip_address(host)
    found = set()
    for table in _TCP_TABLES:
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                address, _, number = fields[1].partition(":")
                if fields[3] != _LISTENING or int(number, 16) != port:
                    continue
                bound = ip_address(_decode_address(address))
                if bound == wanted or bound.is_unspecified:
                    found.add(fields[9])
    return found


def _decode_address(address: str) -> bytes:
    """Decodes an address. The kernel prints it as 32-bit words in native byte order."""
    packed = bytes.fromhex(address)
    return b"".join(packed[start : start + 4][::-1] for start in range(0, len(packed), 4))


def _socket_inodes(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                target = os.readlink(entry.path)  # noqa: PTH115 - scandir gives strings
                if target.startswith("socket:["):
                    found.add(target[len("socket:[") : -1])
    return found
