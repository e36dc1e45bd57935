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

from footplate.environments.base_environment import BaseEnvironment
from footplate.environments.processes.output_buffer import OutputBuffer

if TYPE_CHECKING:
    from tests.integration.environments.conftest import ProcessMark

Until = Callable[..., Awaitable[float]]
MIB = 1 << 20


def _omission_notice(number: int) -> bytes:
    return f"\n[... {number} bytes omitted ...]\n".encode()


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_memory_and_file_keep_both_ends_of_the_output(pieces: list[bytes]) -> None:
    buffer = OutputBuffer(16, max_spooled=64)
    for piece in pieces:
        buffer.add(piece)
    whole = b"".join(pieces)
    assert buffer.size == len(whole)
    assert buffer.truncated == (len(whole) > 16)
    short = whole if len(whole) <= 16 else whole[:8] + _omission_notice(len(whole) - 16) + whole[-8:]
    assert buffer.excerpt() == short
    assert bool(buffer.spooled_size) == buffer.truncated
    if buffer.truncated:
        longer = whole if len(whole) <= 64 else whole[:32] + _omission_notice(len(whole) - 64) + whole[-32:]
        assert b"".join(buffer.pieces()) == longer


@pytest.mark.parametrize("spool", [True, False], ids=["with_a_file", "without_a_file"])
@pytest.mark.parametrize("size", [10_000, MIB, 16 * MIB])
def test_memory_stays_bounded(monkeypatch: pytest.MonkeyPatch, size: int, *, spool: bool) -> None:
    """A command prints 16 MiB in chunks of any size, of which 64 KiB are buffered in memory."""

    def fail_with_full_disk(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    if not spool:
        monkeypatch.setattr(tempfile, "TemporaryFile", fail_with_full_disk)
    piece = bytes(size)
    buffer = OutputBuffer(64 << 10, max_spooled=MIB)
    tracemalloc.start()
    try:
        for _ in range(16 * MIB // size):
            buffer.add(piece)
        allocated, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert bool(buffer.spooled_size) == spool
    assert buffer.size > 15 * MIB
    assert allocated < MIB


async def test_a_large_output_is_complete_in_a_file(environment: BaseEnvironment) -> None:
    before = psutil.Process().memory_info().rss
    result = await environment.run(["bash", "-c", "seq 1 1300000; seq 1 9 >&2"], timeout=60)
    assert psutil.Process().memory_info().rss - before < 20 * MIB
    expected = b"".join(b"%d\n" % number for number in range(1, 1_300_001))
    assert (result.status, result.exit_code, result.stderr) == ("completed", 0, b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    assert list(result.full_outputs) == ["stdout"]
    assert result.full_outputs["stdout"].size == len(expected)
    assert b"".join(result.full_outputs["stdout"].pieces()) == expected
    assert result.stdout.startswith(b"1\n2\n")
    assert result.stdout.endswith(b"\n1300000\n")


@pytest.mark.parametrize(("command", "status"), [("true", "completed"), ("false", "failed")])
async def test_a_result_has_a_status(environment: BaseEnvironment, command: str, status: str) -> None:
    assert (await environment.shell(command, timeout=10)).status == status


async def test_a_command_that_ended_with_its_shell_has_the_status_ended(
    environment: BaseEnvironment, mark: "ProcessMark", until: Until
) -> None:
    command = asyncio.create_task(environment.shell("sleep 3311", timeout=60))
    await until(lambda: "sleep 3311" in mark.list_command_lines())
    await environment.restart_shell()
    assert (await command).status == "ended"


async def test_a_command_that_reached_its_timeout_has_the_status_timed_out(environment: BaseEnvironment) -> None:
    result = await environment.shell("echo partial; sleep 30", timeout=0.3)
    assert (result.status, result.stdout, result.exit_code) == ("timed_out", b"partial\n", None)


def test_with_a_full_disk_the_output_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_with_full_disk(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "pwrite", fail_with_full_disk)
    buffer = OutputBuffer(8)
    for _ in range(10):
        buffer.add(b"0123456789")
    assert (buffer.spooled_size, buffer.excerpt()) == (0, b"0123" + _omission_notice(92) + b"6789")
