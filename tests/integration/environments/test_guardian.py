"""The guardian alone: descriptors, variables and signals of its commands, and its cleanup."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable

import psutil
import pytest

from footplate.domain.errors import Unavailable
from footplate.environments.processes.guardian_client import Guardian
from footplate.lease_clock import lease_clock

pytestmark = pytest.mark.timing

ENV = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
async def guardian(namespaces: bool) -> AsyncIterator[Guardian]:  # noqa: FBT001 - a fixture
    guardian = await Guardian.start(lease_clock() + 30, namespaces=namespaces)
    yield guardian
    await guardian.close()


async def run_for_output(guardian: Guardian, *argv: str, target: int = 1) -> tuple[int, bytes]:
    reader, writer = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        command = await guardian.spawn(argv, cwd="/", env=ENV, fds={0: null, 1: null, 2: null, target: writer})
        code = await command.wait()
        os.write(writer, b"\0")  # so that the read below never blocks
        return code, os.read(reader, 65536)[:-1]
    finally:
        os.close(writer)
        os.close(reader)
        os.close(null)


async def test_mode(guardian: Guardian, namespaces: bool) -> None:  # noqa: FBT001
    assert guardian.mode == ("namespace" if namespaces else "descendants")


async def test_a_command_has_only_the_given_descriptors_and_variables(
    guardian: Guardian, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of the worker")
    code, printed = await run_for_output(guardian, "bash", "-c", "echo /proc/$$/fd/*; env", target=1)
    fds, *variables = printed.decode().splitlines()
    assert code == 0
    assert {path.rsplit("/")[-1] for path in fds.split()} - {"255"} <= {"0", "1", "2", "3"}  # 3: bash's own listing
    assert {line.split("=")[0] for line in variables} <= {"PATH", "PWD", "SHLVL", "_"}


async def test_extra_descriptor(guardian: Guardian) -> None:
    assert await run_for_output(guardian, "bash", "-c", "echo extra >&7", target=7) == (0, b"extra\n")


async def test_a_command_has_default_signals_and_its_own_session(guardian: Guardian) -> None:
    script = "grep -E 'SigIgn|SigBlk' /proc/self/status; ps -o sid= -p $$; echo $$"
    _, printed = await run_for_output(guardian, "bash", "-c", script)
    blocked, ignored, session, pid = printed.decode().split("\n")[:4]
    own = 1 << 31 | 1 << 32  # reserved by the C library: no program can set or send them
    assert {int(mask.split()[1], 16) & ~own for mask in (blocked, ignored)} == {0}
    assert session.strip() == pid
    assert os.getsid(guardian.pid) == guardian.pid, "the worker's terminal does not reach the guardian"


async def test_exit_codes(guardian: Guardian) -> None:
    assert (await run_for_output(guardian, "bash", "-c", "exit 7"))[0] == 7
    assert (await run_for_output(guardian, "bash", "-c", "kill -KILL $$"))[0] == 137
    code, error_output = await run_for_output(guardian, "no-such-program", target=2)
    assert (code, error_output) == (127, b"cannot run 'no-such-program': No such file or directory\n")


async def test_many_commands_at_once(guardian: Guardian) -> None:
    results = await asyncio.gather(*(run_for_output(guardian, "bash", "-c", f"echo {n}; exit {n}") for n in range(30)))
    assert results == [(n, f"{n}\n".encode()) for n in range(30)]


async def test_a_message_larger_than_the_socket_takes(guardian: Guardian) -> None:
    arguments = ["x" * 100_000] * 10
    spawned = asyncio.gather(*(run_for_output(guardian, "bash", "-c", "echo $#", *arguments) for _ in range(3)))
    guardian.renew(lease_clock() + 30)
    assert await spawned == [(0, b"9\n")] * 3


async def test_a_cancelled_spawn_starts_no_process(guardian: Guardian) -> None:
    task = asyncio.create_task(run_for_output(guardian, "sleep", "3111"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.05)
    below = psutil.Process(guardian.pid).children(recursive=True)
    assert not any("3111" in process.cmdline() for process in below)


async def test_close_is_quick_and_ends_all_processes(namespaces: bool) -> None:  # noqa: FBT001
    guardian = await Guardian.start(lease_clock() + 30, namespaces=namespaces)
    await run_for_output(guardian, "bash", "-c", "setsid sleep 3112 >/dev/null & exit 0")
    began = time.monotonic()
    await guardian.close()
    assert time.monotonic() - began < 10
    assert not psutil.pid_exists(guardian.pid)
    await guardian.close()
    guardian.renew(lease_clock() + 30)
    with pytest.raises(Unavailable):
        await run_for_output(guardian, "true")


async def test_a_guardian_does_not_start_after_its_deadline(children: Callable[[], list[psutil.Process]]) -> None:
    with pytest.raises(Unavailable):
        await Guardian.start(lease_clock() - 1)
    assert children() == []
