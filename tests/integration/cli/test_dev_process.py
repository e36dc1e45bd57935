"""Finds the process that listens on a port, as the kernel reports it."""

import os
import socket
import subprocess
import sys

import pytest

from footplate.cli.profile import dev_server_check

pytestmark = pytest.mark.timing


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_listener_is_known_by_its_process(family: socket.AddressFamily, host: str) -> None:
    with socket.create_server((host, 0), family=family) as listener:
        port = listener.getsockname()[1]
        url = f"http://[{host}]:{port}" if family == socket.AF_INET6 else f"http://{host}:{port}"
        assert dev_server_check.listens(os.getpid(), url)
        assert not dev_server_check.listens(os.getppid(), url)
    assert not dev_server_check.listens(os.getpid(), url)


def test_a_wildcard_listener_counts_for_loopback() -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:
        assert dev_server_check.listens(os.getpid(), f"http://127.0.0.1:{listener.getsockname()[1]}")


def test_an_address_of_another_host_has_no_process() -> None:
    assert not dev_server_check.listens(os.getpid(), "http://192.0.2.1:80")
    assert not dev_server_check.listens(os.getpid(), "nonsense")


def test_children_and_start_times_are_found() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert dev_server_check.is_child(child.pid, os.getpid())
        assert not dev_server_check.is_child(1, os.getpid())
        assert dev_server_check.start_time(child.pid) >= dev_server_check.start_time(os.getpid()) > 0
        child.communicate(b"\n")
    assert dev_server_check.start_time(child.pid) == 0
