"""Fails every unit test that starts a process or a server."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

_PROCESSES = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.exec", "os.system"}
)
_HERE = Path(__file__).parent
_running: list[str] = []
"""The running unit test, if any. An audit hook cannot be removed, so it checks this list."""


def _forbid(event: str, arguments: tuple[object, ...]) -> None:
    if not _running:
        return
    if event in _PROCESSES:
        pytest.fail(f"{_running[0]} starts a process ({event}). Move it to tests/integration.")
    if event == "socket.bind":
        pytest.fail(f"{_running[0]} starts a server at {arguments[1]}. Move it to tests/integration.")


sys.addaudithook(_forbid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Watches a test from before its first fixture until after its last."""
    if not item.path.is_relative_to(_HERE):
        return (yield)
    _running.append(item.nodeid)
    try:
        return (yield)
    finally:
        _running.pop()
