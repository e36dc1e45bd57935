"""Attempts to reach the host's services, cloud metadata, and sockets with and without a path."""

import fcntl
import socket
import sys
from typing import Final

from bench.support.escape.attempt import Attempt, leaks, reaches
from bench.support.escape.attempt_context import AttemptContext

_OTHER_MTU: Final = 1234


def _mtu(request: int, value: int = 0) -> int:
    """Reads (0x8921) or sets (0x8922) the MTU of the loopback interface in this process's network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        asked = b"lo".ljust(16, b"\0") + value.to_bytes(4, sys.byteorder) + bytes(20)
        return int.from_bytes(fcntl.ioctl(line.fileno(), request, asked)[16:20], sys.byteorder)


def _mtu_changed(_: AttemptContext) -> bool:
    return _mtu(0x8921) == _OTHER_MTU


def _restore_mtu(_: AttemptContext) -> None:
    if _mtu(0x8921) == _OTHER_MTU:
        _mtu(0x8922, 65536)


ATTEMPTS: Final = (
    Attempt(
        name="docker-socket", category="docker socket", tries="connects to a world-writable docker socket.",
        python='for place in ("@{docker}", "/var/run/docker.sock", "/run/docker.sock"): connect(1, place)',
        succeeded=reaches("docker"),
    ),
    Attempt(
        name="docker-socket-through-proc", category="docker socket",
        tries="looks for the docker socket through the roots of other processes.",
        python="""
for pid in os.listdir("/proc"):
    if pid.isdigit(): connect(1, f"/proc/{pid}/root@{docker}")
""",
        succeeded=reaches("docker"), seconds=60,
    ),
    Attempt(
        name="docker-socket-by-search", category="docker socket",
        tries="finds every socket that has a path, and connects.",
        python="""
def search(place, depth=0):
    try: found = list(os.scandir(place))
    except OSError: return
    for entry in found:
        if entry.is_dir(follow_symlinks=False) and depth < 6 and entry.path not in ("/proc", "/sys", "/usr"):
            search(entry.path, depth + 1)
        elif not entry.is_symlink() and (entry.stat(follow_symlinks=False).st_mode & 0o170000) == 0o140000:
            connect(1, entry.path)
for start in ("/run", "/var/run", "/tmp", "/workspace", "/home", "/mnt", "@{directory}"): search(start)
""",
        succeeded=reaches("docker"), seconds=60,
    ),
    *(
        Attempt(
            name=f"metadata-{cloud}", category="metadata addresses",
            tries=f"asks {address}, where {whose} hands out credentials.",
            python=f'connect(2, ("{address}", 80))', succeeded=reaches("metadata"),
        )
        for cloud, address, whose in (
            ("aws", "169.254.169.254", "a cloud"), ("ecs", "169.254.170.2", "a container service"),
            ("azure", "168.63.129.16", "Azure"), ("alibaba", "100.100.100.200", "Alibaba"),
        )
    ),
    Attempt(
        name="loopback-tcp", category="host loopback services", tries="connects to a service on the host's loopback.",
        python='connect(2, ("127.0.0.1", @{loopback_port}))', succeeded=reaches("loopback"),
    ),
    Attempt(
        name="loopback-tcp6", category="host loopback services",
        tries="connects to a service on the host's loopback by IPv6.",
        python='connect(10, ("::1", @{port6}))', succeeded=reaches("loopback6"),
    ),
    Attempt(
        name="loopback-by-other-names", category="host loopback services",
        tries="connects by other loopback addresses, and by IPv4 inside IPv6.",
        python="""
for address in ("127.0.0.2", "127.1.1.1", "0.0.0.0"): connect(2, (address, @{port}))
for address in ("::ffff:127.0.0.1", "::"): connect(10, (address, @{port}))
""",
        succeeded=reaches("everywhere"),
    ),
    Attempt(
        name="port-on-every-address", category="host loopback services",
        tries="connects to a port on 0.0.0.0 by the host's own address.",
        python='connect(2, ("@{own_address}", @{port}))', succeeded=reaches("everywhere"),
    ),
    Attempt(
        name="udp", category="host loopback services", tries="sends a datagram to the host.",
        python='for address in ("127.0.0.1", "@{own_address}"): connect(2, (address, @{udp_port}), kind=2)',
        succeeded=reaches("udp"),
    ),
    Attempt(
        name="join-the-hosts-network", category="host loopback services",
        tries="joins the network namespace of every process that it sees.",
        python="""
for pid in os.listdir("/proc"):
    if pid.isdigit():
        try:
            fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
            if libc.setns(fd, 0x40000000) == 0: connect(2, ("127.0.0.1", @{loopback_port}))
        except OSError: pass
""",
        succeeded=reaches("loopback"), seconds=60, root_only=True,
    ),
    Attempt(
        name="change-an-interface", category="host loopback services", tries="changes the loopback interface.",
        python="""
line = socket.socket(2, 2)
try: fcntl.ioctl(line.fileno(), 0x8922, b"lo".ljust(16, b"\\0") + (1234).to_bytes(4, sys.byteorder) + bytes(20))
except OSError as error: print(error)
""",
        succeeded=_mtu_changed, root_only=True,
        after=_restore_mtu,
    ),
    Attempt(
        name="abstract-stream", category="abstract sockets", tries="connects to a socket of the host that has no path.",
        python='connect(1, b"\\0@{abstract}")', succeeded=reaches("abstract"),
    ),
    Attempt(
        name="abstract-datagram", category="abstract sockets",
        tries="sends a datagram to a socket of the host that has no path.",
        python='connect(1, b"\\0@{abstract}-d", kind=2)', succeeded=reaches("abstract"),
    ),
    Attempt(
        name="abstract-names", category="abstract sockets", tries="lists the host's sockets without a path.",
        shell="cat /proc/net/unix", succeeded=leaks("abstract name"),
    ),
)  # fmt: skip
