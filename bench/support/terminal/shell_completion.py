"""Tests shell completion: with bash's completion function, and with the Tab key in an interactive shell."""

import asyncio
import math
from collections.abc import Sequence
from typing import Final

from bench.prove.figure import require
from bench.support.terminal.cli_user import PROGRAM, CliUser
from bench.support.terminal.tmux import Tmux

_COMPLETION_SCRIPT: Final = r"""
export PATH="$(dirname '{program}'):$PATH"
source <(_FOOTPLATE_COMPLETE=source_bash footplate)
COMP_WORDS=(footplate {words} "")
COMP_CWORD={place}
for _ in $(seq {times}); do
  before=$EPOCHREALTIME
  _footplate_completion footplate
  after=$EPOCHREALTIME
  echo "$before $after"
done
printf '%s\n' "${{COMPREPLY[@]}}"
"""


async def measure_completion(user: CliUser, arguments: str, *, times: int) -> tuple[list[float], set[str]]:
    """Returns the seconds of each completion by the shell's clock, and the offered values.

    The first call is skipped, because its files are not cached yet.
    """
    script = _COMPLETION_SCRIPT.format(
        program=PROGRAM, words=arguments, place=len(arguments.split()) + 1, times=times + 1
    )
    process = await asyncio.create_subprocess_exec(
        *("bash", "--norc", "-c", script),
        env=dict(user.environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    lines = out.decode().splitlines()
    spent = [float(after) - float(before) for before, after in (line.split() for line in lines[: times + 1])]
    return spent[1:], set(lines[times + 1 :])


def p95(values: Sequence[float]) -> float:
    return sorted(values)[math.ceil(len(values) * 0.95) - 1]


async def check_tab_key(tmux: Tmux, user: CliUser, session_id: str) -> None:
    """Types the start of a session id in an interactive shell and requires that Tab completes it."""
    rc = user.home / "completion.rc"
    rc.write_text(
        f"PATH=\"$(dirname '{PROGRAM}'):$PATH\"\nsource <(_FOOTPLATE_COMPLETE=source_bash footplate)\nPS1='ready> '\n"
    )
    pane = await tmux.open_pane(["bash", "--rcfile", str(rc), "-i"], user.environment, width=120)
    try:
        await pane.wait_for_text("ready>")
        await pane.press_keys(f"footplate show {session_id[:-3]}", "Tab")
        screen = await pane.wait_for_text(session_id, within=10)
        require(holds=f"footplate show {session_id}" in screen.collapsed_text, otherwise=screen.text)
    finally:
        await pane.close()
