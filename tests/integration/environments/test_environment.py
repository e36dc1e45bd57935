"""Programs and files of an environment, apart from its shell, in every backend."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from footplate.domain.errors import Unavailable
from footplate.environments.base_environment import BaseEnvironment
from footplate.environments.processes.output_capture import DEFAULT_OUTPUT_LIMIT

if TYPE_CHECKING:
    from tests.integration.environments.conftest import EnvironmentOpener, ProcessMark

Until = Callable[..., Awaitable[float]]


def list_names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


async def test_run(environment: BaseEnvironment) -> None:
    result = await environment.run(["bash", "-c", "pwd; cat; echo err >&2; exit 5"], stdin=b"given")
    assert (result.exit_code, result.stdout, result.stderr) == (5, f"{environment.root}\ngiven".encode(), b"err\n")


async def test_run_with_much_input_and_output(environment: BaseEnvironment) -> None:
    content = os.urandom(3_000_000)
    result = await environment.run(["cat"], stdin=content)
    assert b"".join(result.full_outputs["stdout"].pieces()) == content
    assert len(result.stdout) < DEFAULT_OUTPUT_LIMIT + 100
    assert result.truncated
    del result  # also deletes its file
    assert (await environment.run(["true"], stdin=content)).exit_code == 0


async def test_run_a_missing_program(environment: BaseEnvironment) -> None:
    result = await environment.run(["no-such-program"])
    assert result.exit_code == 127
    assert b"no-such-program" in result.stderr


async def test_run_beside_the_shell(environment: BaseEnvironment) -> None:
    shell = asyncio.create_task(environment.shell("sleep 0.5; echo shell", timeout=10))
    assert (await environment.run(["echo", "beside"])).stdout == b"beside\n"
    assert not shell.done()
    assert (await shell).stdout == b"shell\n"


async def test_run_does_not_wait_for_background_processes(
    environment: BaseEnvironment, mark: ProcessMark, until: Until
) -> None:
    result = await environment.run(["bash", "-c", "sleep 3301 & echo done"])
    assert result.stdout == b"done\n"
    await until(lambda: "sleep 3301" in mark.list_command_lines())


@pytest.mark.parametrize("prefix", ["", "trap '' TERM; "])
@pytest.mark.requirement("C3")
async def test_run_timeout(environment: BaseEnvironment, mark: ProcessMark, prefix: str) -> None:
    result = await environment.run(["bash", "-c", f"{prefix}echo partial; setsid sleep 3302 & sleep 3303"], timeout=0.3)
    assert (result.exit_code, result.timed_out, result.stdout) == (None, True, b"partial\n")
    assert mark.find_processes() == []


async def test_run_cancelled(environment: BaseEnvironment, mark: ProcessMark, until: Until) -> None:
    command = asyncio.create_task(environment.run(["bash", "-c", "trap '' TERM; sleep 3304; true"]))
    await until(lambda: "sleep 3304" in mark.list_command_lines())
    command.cancel()
    with pytest.raises(asyncio.CancelledError):
        await command
    assert mark.find_processes() == []


@pytest.mark.parametrize("backend", ["unsandboxed"], indirect=True)
async def test_no_guardian_without_a_command(environment: BaseEnvironment) -> None:
    await environment.write("a", b"1")
    await environment.read("a")
    await environment.list_files()
    assert environment._guardian is None


async def test_first_commands_share_one_guardian(
    environment: BaseEnvironment, children: Callable[[], list[psutil.Process]]
) -> None:
    results = await asyncio.gather(*(environment.run(["readlink", "/proc/self/ns/pid"]) for _ in range(5)))
    assert len({result.stdout for result in results}) == 1
    assert {result.exit_code for result in results} == {0}
    assert len([child for child in children() if child.status() != psutil.STATUS_ZOMBIE]) == 1


async def test_a_closed_environment_is_unavailable(open_environment: EnvironmentOpener) -> None:
    environment = open_environment()
    await environment.aclose()
    with pytest.raises(Unavailable):
        await environment.shell("true", timeout=5)
    with pytest.raises(Unavailable):
        await environment.write("a", b"")


async def test_write_and_read(environment: BaseEnvironment, tmp_path: Path) -> None:
    await environment.write("deep/er/file", b"\x00\xff")
    assert await environment.read("deep/er/file") == b"\x00\xff"
    assert await environment.read(str(tmp_path / "deep/er/file")) == b"\x00\xff"
    assert list_names(tmp_path / "deep/er") == ["file"]


async def test_write_keeps_the_mode_and_follows_links(environment: BaseEnvironment, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("old")
    script.chmod(0o751)
    (tmp_path / "link").symlink_to("script")
    before = script.stat().st_ino
    await environment.write("link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert script.read_bytes() == b"new"
    assert stat.S_IMODE(script.stat().st_mode) == 0o751
    assert script.stat().st_ino != before, "replaced as a whole, not written over"


async def test_file_errors(environment: BaseEnvironment, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await environment.read("absent")
    with pytest.raises(IsADirectoryError):
        await environment.read(".")
    with pytest.raises(IsADirectoryError):
        await environment.write(".", b"")
    with pytest.raises(FileNotFoundError):
        await environment.list_files("absent")
    assert list_names(tmp_path) == []


async def test_list_files(environment: BaseEnvironment, tmp_path: Path) -> None:
    for path in ("b/c", "a", ".git/config", "sub/.git", ".hidden"):
        await environment.write(path, b"123")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "loop").symlink_to(".")
    os.mkfifo(tmp_path / "fifo")
    found = await environment.list_files()
    assert [(file.path, file.size) for file in found] == [(".hidden", 3), ("a", 3), ("b/c", 3)]
    assert found[1].modified == (tmp_path / "a").stat().st_mtime
    assert [file.path for file in await environment.list_files("b")] == ["c"]


@pytest.mark.requirement("K7")
async def test_each_running_environment_has_ports_of_its_own(open_environment: EnvironmentOpener) -> None:
    environments = [open_environment() for _ in range(3)]
    ranges = [(await one.run(["sh", "-c", "echo $FOOTPLATE_PORTS"])).stdout.decode().strip() for one in environments]
    firsts = [int(found.split("-")[0]) for found in ranges]
    assert ranges == [f"{first}-{first + 9}" for first in firsts]
    assert len({*firsts}) == 3
    assert all(first % 10 == 0 and 20_000 <= first < 30_000 for first in firsts)
    await environments[0].aclose()
    again = open_environment()
    assert (await again.run(["sh", "-c", "echo $FOOTPLATE_PORTS"])).stdout.decode().strip() == ranges[0]
