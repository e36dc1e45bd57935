"""Free ports are free, and outside the range of outgoing connections."""

import socket
from pathlib import Path

from footplate.stack.free_ports import LOOPBACK, find_free_port, is_port_free


def test_a_free_port_can_be_listened_on() -> None:
    with socket.socket() as server:
        server.bind((LOOPBACK, find_free_port()))
        server.listen(1)


def test_a_taken_port_is_not_free() -> None:
    with socket.socket() as server:
        server.bind((LOOPBACK, 0))
        server.listen(1)
        assert not is_port_free(server.getsockname()[1])


def test_ports_are_not_those_of_outgoing_connections() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(find_free_port() < first for _ in range(20))
