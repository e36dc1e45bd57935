"""The output buffer of a command: correct for every size and every chunking."""

import asyncio
import errno
import os
import tempfile
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.environments.guarded import GuardedEnvironment
from footplate.environments.kept import Kept

if TYPE_CHECKING:
    from tests.integration.environments.conftest import Mark

Until = Callable[..., Awaitable[float]]
MIB = 1 << 20


def _left_out(number: int) -> bytes:
    return f"\n[... {number} bytes omitted ...]\n".encode()


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_memory_has_both_ends_and_the_file_more_of_them(pieces: list[bytes]) -> None:
    kept = Kept(16, max_spooled=64)
    for piece in pieces:
        kept.add(piece)
    whole = b"".join(pieces)
    assert kept.size == len(whole)
    assert kept.truncated == (len(whole) > 16)
    short = whole if len(whole) <= 16 else whole[:8] + _left_out(len(whole) - 16) + whole[-8:]
    assert kept.value() == short
    assert bool(kept.spooled) == kept.truncated
    if kept.truncated:
        longer = whole if len(whole) <= 64 else whole[:32] + _left_out(len(whole) - 64) + whole[-32:]
        assert b"".join(kept.pieces()) == longer


@pytest.mark.parametrize("spool", [True, False], ids=["with_a_file", "without_a_file"])
@pytest.mark.parametrize("size", [10_000, MIB, 16 * MIB])
def test_memory_stays_bounded(monkeypatch: pytest.MonkeyPatch, size: int, *, spool: bool) -> None:
    """A command prints 16 MiB in chunks of any size, of which 64 KiB are buffered in memory."""

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    if not spool:
        monkeypatch.setattr(tempfile, "TemporaryFile", full)
    piece = bytes(size)
    kept = Kept(64 << 10, max_spooled=MIB)
    tracemalloc.start()
    try:
        for _ in range(16 * MIB // size):
            kept.add(piece)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert bool(kept.spooled) == spool
    assert kept.size > 15 * MIB
    assert held < MIB


async def test_a_large_output_is_whole_in_a_file(environment: GuardedEnvironment) -> None:
    before = psutil.Process().memory_info().rss
    result = await environment.run(["bash", "-c", "seq 1 1300000; seq 1 9 >&2"], timeout=60)
    assert psutil.Process().memory_info().rss - before < 20 * MIB
    expected = b"".join(b"%d\n" % number for number in range(1, 1_300_001))
    assert (result.status, result.exit_code, result.stderr) == ("completed", 0, b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    assert list(result.whole) == ["stdout"]
    assert result.whole["stdout"].size == len(expected)
    assert b"".join(result.whole["stdout"].pieces()) == expected
    assert result.stdout.startswith(b"1\n2\n")
    assert result.stdout.endswith(b"\n1300000\n")


@pytest.mark.parametrize(("command", "status"), [("true", "completed"), ("false", "failed")])
async def test_a_result_has_a_status(environment: GuardedEnvironment, command: str, status: str) -> None:
    assert (await environment.shell(command, timeout=10)).status == status


async def test_a_command_that_ended_with_its_shell_says_so(
    environment: GuardedEnvironment, mark: "Mark", until: Until
) -> None:
    command = asyncio.create_task(environment.shell("sleep 3311", timeout=60))
    await until(lambda: "sleep 3311" in mark.command_lines())
    await environment.restart_shell()
    assert (await command).status == "ended"


async def test_a_command_that_reached_its_limit_says_so(environment: GuardedEnvironment) -> None:
    result = await environment.shell("echo partial; sleep 30", timeout=0.3)
    assert (result.status, result.stdout, result.exit_code) == ("timed_out", b"partial\n", None)


def test_a_full_disk_leaves_what_memory_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "pwrite", full)
    kept = Kept(8)
    for _ in range(10):
        kept.add(b"0123456789")
    assert (kept.spooled, kept.value()) == (0, b"0123" + _left_out(92) + b"6789")
