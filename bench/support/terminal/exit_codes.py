"""Produces every exit code that docs/cli.md lists, with `run` and then with `attach` on the same session."""

import asyncio
import json
import re
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.prove.figure import NotHeld, require
from bench.support.terminal.cli_user import CliUser
from footplate.stack.free_ports import LOOPBACK, find_free_port

_PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "cli.md"
_ASK: Final = {"type": "custom", "name": "ask", "description": "Ask.", "input_schema": {"type": "object"}}


def documented_codes() -> set[int]:
    section = _PAGE.read_text().partition("## Exit codes")[2].partition("\n## ")[0]
    return {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}


async def produce_codes(user: CliUser, agent_id: str, wanted: Iterable[int]) -> set[int]:
    """Produces the wanted exit codes in parallel. `asker` is the id of an agent with a custom tool."""
    runs_by_code: Mapping[int, Callable[[], Awaitable[int]]] = {
        0: lambda: _run_and_attach(user, "[[script:hello]]"),
        1: lambda: _run_and_attach(user, "[[script:bad]]"),
        2: lambda: _plain(user, "run", "--max-turns", "none", "hello"),
        3: lambda: _run_and_attach(user, "--agent", agent_id, "[[script:ask]]"),
        4: lambda: _run_and_attach(user, "--timeout", "1", "[[script:slow]]"),
        5: lambda: _ctrl_c(user, times=1),
        6: lambda: _run_and_attach(user, "--max-turns", "1", "[[script:hello]]"),
        7: lambda: _run_without_server(user),
        130: lambda: _ctrl_c(user, times=2),
    }
    runs = {code: runs_by_code[code] for code in wanted}
    codes = await asyncio.gather(*(way() for way in runs.values()))
    for expected, code in zip(runs, codes, strict=True):
        require(holds=code == expected, otherwise=f"exit code {code} where docs/cli.md has {expected}")
    return set(codes)


def custom_tool() -> dict[str, Any]:
    return dict(_ASK)


async def _run_and_attach(user: CliUser, *arguments: str) -> int:
    """Requires that `attach` exits as `run` did. Only `run --timeout` reports its own interrupt as a timeout."""
    done = await user.run("run", "--json", *arguments)
    result = json.loads(done.out)
    require(holds=result["exit_code"] == done.code, otherwise=f"exit code {done.code}, but it prints {result}")
    again = await user.run("attach", "--json", result["session_id"])
    wanted = 5 if done.code == 4 else done.code
    require(holds=again.code == wanted, otherwise=f"`attach` exited with {again.code} instead of {wanted}: {again}")
    return done.code


async def _plain(user: CliUser, *arguments: str, **extra: str) -> int:
    return (await user.run(*arguments, **extra)).code


async def _run_without_server(user: CliUser) -> int:
    unreachable = {"FOOTPLATE_BASE_URL": f"http://{LOOPBACK}:{find_free_port()}"}
    unnamed = {"FOOTPLATE_BASE_URL": "", "FOOTPLATE_DATA_DIR": str(user.home / "no-server")}
    codes: Sequence[int] = [await _plain(user, "ls", **extra) for extra in (unreachable, unnamed)]
    require(holds=len(set(codes)) == 1, otherwise=f"no server and an unreachable one exit with {codes}")
    return codes[0]


async def _ctrl_c(user: CliUser, *, times: int) -> int:
    process = await user.spawn("run", "[[script:slow]]")
    assert process.stdout is not None
    assert process.stderr is not None
    async with asyncio.timeout(60):
        if b"This takes long" not in await process.stdout.readline():
            raise NotHeld("the agent printed nothing")
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            line = await process.stderr.readline()
            while b"Ctrl-C again" not in line and b"Detached" not in line:
                line = await process.stderr.readline()
        await process.communicate()
    return process.returncode or 0
