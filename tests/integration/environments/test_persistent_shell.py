"""The persistent shell: state that lasts between commands, output limits, timeouts, cancellation and restarts."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.environments.conftest import ALL_BACKENDS

from footplate import failpoints
from footplate.domain.sessions.shell_state import NEW_SHELL
from footplate.environments.base_environment import BaseEnvironment

if TYPE_CHECKING:
    from tests.integration.environments.conftest import EnvironmentOpener, ProcessMark

pytestmark = pytest.mark.timing

Until = Callable[..., Awaitable[float]]


async def run_for_output(environment: BaseEnvironment, command: str) -> str:
    return (await environment.shell(command, timeout=10)).stdout.decode()


async def test_result(environment: BaseEnvironment) -> None:
    result = await environment.shell("echo out; echo err >&2; (exit 3)", timeout=10)
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert not result.timed_out
    assert not result.truncated
    assert 0 < result.duration < 10


async def test_shell_state_lasts_between_commands(environment: BaseEnvironment) -> None:
    await run_for_output(
        environment, "mkdir -p sub && cd sub; X=5; export Y=6; f() { echo f $1; }; declare -A map=([k]=v)"
    )
    assert await run_for_output(environment, 'basename "$PWD"; echo $X; bash -c "echo \\$Y"; f 1; echo ${map[k]}') == (
        "sub\n5\n6\nf 1\nv\n"
    )


@pytest.mark.parametrize(
    "command", ["echo 'unclosed", "if then", "break", "continue", "return", "fi", ")", "}", "<<EOF"]
)
async def test_broken_commands_do_not_break_the_shell(environment: BaseEnvironment, command: str) -> None:
    await run_for_output(environment, "X=kept")
    result = await environment.shell(command, timeout=5)
    assert result.exit_code is not None
    assert await run_for_output(environment, "echo $X") == "kept\n"


async def test_standard_input_is_empty(environment: BaseEnvironment) -> None:
    assert await run_for_output(environment, "cat; read -r line || echo none; ls /proc/self/fd | wc -l") == "none\n4\n"


async def test_home_and_directory_are_the_root(environment: BaseEnvironment, tmp_path: Path) -> None:
    assert await run_for_output(environment, 'echo "$HOME $PWD $TERM"') == f"{tmp_path} {tmp_path} dumb\n"


@pytest.mark.parametrize(
    ("command", "code"), [("exit 4", 4), ("set -e; false", 1), ("kill -9 $$", 137), ("exec true", 0)]
)
async def test_a_command_may_end_the_shell(environment: BaseEnvironment, command: str, code: int) -> None:
    await run_for_output(environment, "cd /; X=1")
    result = await environment.shell(f"echo before; {command}", timeout=10)
    assert (result.exit_code, result.stdout) == (code, b"before\n")
    assert await run_for_output(environment, 'echo "$PWD:$X"') == f"{environment.root}:\n"


async def test_a_shell_killed_between_commands_is_replaced(environment: BaseEnvironment, until: Until) -> None:
    await run_for_output(environment, "(sleep 0.1; kill -9 $$) &")
    assert environment._shell is not None
    shell = environment._shell
    await until(lambda: not shell.alive)
    assert await run_for_output(environment, "echo again") == "again\n"


async def test_background_jobs_continue(environment: BaseEnvironment, mark: ProcessMark, until: Until) -> None:
    began = time.monotonic()
    await run_for_output(environment, "sleep 3201 & nohup sleep 3202 >/dev/null 2>&1 &")
    assert time.monotonic() - began < 10
    await until(lambda: mark.list_command_lines() >= {"sleep 3201", "sleep 3202"})
    await run_for_output(environment, "exit 0")
    await run_for_output(environment, "true")
    assert {"sleep 3201", "sleep 3202"} <= mark.list_command_lines()


async def test_background_output_never_blocks_and_comes_with_the_next_command(
    environment: BaseEnvironment, until: Until, tmp_path: Path
) -> None:
    first = await run_for_output(
        environment, "(sleep 0.1; head -c 1000000 /dev/zero | tr '\\0' x; touch printed) & echo first"
    )
    assert first == "first\n"
    await until((tmp_path / "printed").exists)
    result = await environment.shell("echo next", timeout=10)
    assert b"".join(result.full_outputs["stdout"].pieces()) == b"x" * 1_000_000 + b"next\n"


async def test_background_job_that_prints_survives_its_shell(
    environment: BaseEnvironment, until: Until, tmp_path: Path
) -> None:
    await run_for_output(environment, "(sleep 0.2; head -c 500000 /dev/zero; touch printed) & exit 0")
    assert await run_for_output(environment, "echo new") == "new\n"
    await until((tmp_path / "printed").exists)


async def test_endless_background_output_does_not_delay_a_result(environment: BaseEnvironment) -> None:
    await run_for_output(environment, "yes &")
    result = await environment.shell("echo mine >&2", timeout=10)
    assert (result.exit_code, result.stderr) == (0, b"mine\n")


async def test_output_is_bounded(open_environment: EnvironmentOpener) -> None:
    environment = open_environment(output_limit=1000)
    result = await environment.shell("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo last", timeout=30)
    assert result.truncated
    assert result.stdout.startswith(b"first\nxxx")
    assert result.stdout.endswith(b"xxxlast\n")
    assert b"\n[... 2999011 bytes omitted ...]\n" in result.stdout
    assert len(result.stdout) < 1100
    assert not (await environment.shell("echo short", timeout=10)).truncated


async def test_a_large_command_runs(environment: BaseEnvironment, tmp_path: Path) -> None:
    content = 'it\'s "quoted" $HOME `x` \\n\u00e9\n' * 6000
    result = await environment.shell(f"cat > file <<'END'\n{content}END\n", timeout=30)
    assert result.exit_code == 0
    assert (tmp_path / "file").read_text() == content


async def test_nul_in_a_command_is_a_failed_result(environment: BaseEnvironment) -> None:
    assert (await environment.shell("echo a\0b", timeout=5)).exit_code == 2


@pytest.mark.parametrize("prefix", ["", "trap '' TERM; "])
@pytest.mark.requirement("C3")
async def test_timeout(environment: BaseEnvironment, mark: ProcessMark, prefix: str) -> None:
    result = await environment.shell(f"{prefix}echo partial; setsid sleep 3203 & sleep 3204", timeout=0.3)
    assert (result.exit_code, result.timed_out, result.stdout) == (None, True, b"partial\n")
    assert result.duration < 20
    assert mark.find_processes() == []
    assert await run_for_output(environment, "pwd") == f"{environment.root}\n"


async def test_timeout_lets_a_command_clean_up(open_environment: EnvironmentOpener, tmp_path: Path) -> None:
    environment = open_environment(grace=30)
    result = await environment.shell("bash -c 'trap \"touch cleaned; exit\" TERM; sleep 3205 & wait'", timeout=0.3)
    assert result.timed_out
    assert result.duration < 20
    assert (tmp_path / "cleaned").exists()


@ALL_BACKENDS
async def test_cancellation_kills_the_command(
    open_environment: EnvironmentOpener, mark: ProcessMark, until: Until
) -> None:
    environment = open_environment()
    command = asyncio.create_task(environment.shell("trap '' TERM; setsid sleep 3206 & sleep 3207", timeout=60))
    await until(lambda: mark.list_command_lines() >= {"sleep 3206", "sleep 3207"})
    command.cancel()
    with pytest.raises(asyncio.CancelledError):
        await command
    assert mark.find_processes() == []
    assert await run_for_output(environment, "echo on") == "on\n"


async def test_restart_ends_a_running_command(environment: BaseEnvironment, mark: ProcessMark, until: Until) -> None:
    command = asyncio.create_task(environment.shell("X=1; echo partial; sleep 3208", timeout=60))
    await until(lambda: "sleep 3208" in mark.list_command_lines())
    await environment.restart_shell()
    result = await command
    assert (result.exit_code, result.timed_out, result.stdout) == (None, False, b"partial\n")
    assert await run_for_output(environment, "echo [$X]") == "[]\n"


async def test_one_command_at_a_time(environment: BaseEnvironment) -> None:
    both = await asyncio.gather(*(run_for_output(environment, f"echo {n}; sleep 0.05; echo {n}") for n in "ab"))
    assert both == ["a\na\n", "b\nb\n"]


async def test_failpoint_in_the_tool(
    environment: BaseEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    points = tmp_path / "points"
    points.mkdir()
    (points / "in_tool").write_text("0.5")
    monkeypatch.setattr(failpoints, "_directory", str(points))
    command = asyncio.create_task(environment.shell("echo started > effect", timeout=10))
    await until((points / "in_tool.hit").exists)
    await until((tmp_path / "effect").exists)
    assert not command.done(), "the command has its effect while the worker is held at the point"
    assert (await command).exit_code == 0


AWKWARD = {
    "PLAIN": "x",
    "EMPTY": "",
    "QUOTES": 'it\'s "a" $HOME `x` \\ back\\n',
    "LINES": 'a\nexport EVIL=1\ndeclare -x EVIL="1"\n',
    "CONTROL": "tab\tescape\x1b bell\a",
    "TEXT": "é☃",
}


@ALL_BACKENDS
@pytest.mark.requirement("K7")
async def test_another_shell_continues_with_directory_and_exported_variables(
    open_environment: EnvironmentOpener,
) -> None:
    first = open_environment()
    await run_for_output(first, "mkdir -p 'sub/a b'; cd 'sub/a b'; X=not-exported; f() { :; }")
    for name, value in AWKWARD.items():
        await run_for_output(first, f"export {name}={shlex.quote(value)}")
    state = first.shell_state
    assert (state.directory, state.variables) == ("sub/a b", AWKWARD)

    second = open_environment()
    second.restore_shell(state)
    assert await second.shell_directory() == f"{second.root}/sub/a b"
    printed = " ".join(f'"${name}"' for name in AWKWARD)
    assert await run_for_output(second, f'printf "%s|" {printed} "$X"') == "|".join([*AWKWARD.values(), "", ""])
    assert second.shell_state == state
    await run_for_output(second, "rmdir '../a b'")
    third = open_environment()
    third.restore_shell(state)
    assert await third.shell_directory() == third.root, "the directory no longer exists"
    await run_for_output(third, "exit")
    assert third.shell_state == NEW_SHELL
    third.restore_shell(state)
    await third.restart_shell()
    assert third.shell_state == NEW_SHELL


async def test_exported_variables_do_not_choose_the_shell_that_continues(open_environment: EnvironmentOpener) -> None:
    """The shell starts before the gate decides on a command."""
    first = open_environment()
    write = "mkdir fake; printf '#!/bin/sh\\ntouch ran; exec /bin/bash \"$@\"' > fake/bash; chmod +x fake/bash"
    await run_for_output(first, f"{write}; cp fake/bash fake/sh; export PATH=$PWD/fake:$PATH X=1")
    second = open_environment()
    second.restore_shell(first.shell_state)
    assert await second.shell_directory() == second.root
    assert await run_for_output(second, "test -e ran || printf %s$X clean") == "clean1"


async def test_a_repeated_report_is_stored_again_after_a_new_shell(environment: BaseEnvironment) -> None:
    await run_for_output(environment, "mkdir -p sub; cd sub")
    state = environment.shell_state
    await environment.restart_shell()
    await run_for_output(environment, "cd sub")
    assert environment.shell_state == state != NEW_SHELL


async def test_settings_of_the_shell_do_not_disturb_its_report(environment: BaseEnvironment) -> None:
    result = await environment.shell(
        "set -eux; mkdir gone; cd gone; rmdir ../gone; printf() { :; }; export() { :; }", timeout=10
    )
    assert result.exit_code == 0
    assert b"pwd" not in result.stderr
    assert (await environment.shell("builtin echo on; set -r", timeout=10)).stdout == b"on\n"
    assert (await environment.shell("builtin echo restricted", timeout=10)).stdout == b"restricted\n"
    assert environment.shell_state == NEW_SHELL
