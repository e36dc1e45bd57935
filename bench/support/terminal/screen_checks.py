"""Checks the command line's screens at each width, with and without colour: no broken, torn or missing text."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.prove.figure import require
from bench.support.terminal import cli_commands
from bench.support.terminal.cli_user import PROGRAM, CliUser
from bench.support.terminal.model_scripts import RESPONSE_TEXTS
from bench.support.terminal.tmux import Screen, Tmux

WIDTHS: Final = (60, 80, 140)
COLOUR: Final = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:[34][0-7]|[34]8;[0-9;]+|9[0-7]|10[0-7])m")
"""Escape sequences that set a colour. Bold and dim are no colours, and 39 and 49 reset one."""
_BOX_CHARACTERS: Final = re.compile("[\u2500-\u259f]")
_AT_ONCE: Final = 3


@dataclass(frozen=True, slots=True)
class ScreenCase:
    argv: Sequence[str]
    code: int = 0
    expected_texts: Sequence[str] = ()
    coloured: bool = False
    extra: Mapping[str, str] = field(default_factory=dict)


def screen_cases(session_id: str) -> list[ScreenCase]:
    """Returns commands for each kind of output: a run, tables, details, a log, diagnostics and errors."""
    unreachable = {"FOOTPLATE_BASE_URL": "http://127.0.0.1:9"}
    return [
        ScreenCase(
            ["run", "[[script:looks]]"],
            expected_texts=[*RESPONSE_TEXTS, "bash", "read", "completed", "$0."],
            coloured=True,
        ),
        ScreenCase(["show", session_id], expected_texts=[session_id, "completed"], coloured=True),
        ScreenCase(["ls"], expected_texts=[session_id]),
        ScreenCase(["show", "sesn_none"], code=1, expected_texts=["sesn_none"], coloured=True),
        ScreenCase(["attach", session_id], expected_texts=["> ", "I say hello.", "Done.", "completed"], coloured=True),
        ScreenCase(["logs", session_id], expected_texts=["> ", "I say hello.", "Done."], coloured=True),
        ScreenCase(
            ["run", "[[script:bad]]"], code=1, expected_texts=["that model does not exist", "failed"], coloured=True
        ),
        ScreenCase(["agents", "ls"], expected_texts=["footplate-cli"]),
        ScreenCase(["environments", "ls"], expected_texts=["footplate-cli"]),
        ScreenCase(["config", "list"], expected_texts=["local"]),
        ScreenCase(["steps", "ls", session_id], expected_texts=["completed"]),
        ScreenCase(["limits"], expected_texts=["sessions"]),
        ScreenCase(["members", "ls"]),
        ScreenCase(["questions"]),
        ScreenCase(["doctor"], expected_texts=["PostgreSQL", "Temporal"], coloured=True),
        ScreenCase(["run", "--timeout", "soon", "hello"], code=2, expected_texts=["--timeout"]),
        ScreenCase(
            ["ls"], code=7, expected_texts=["does not respond", "footplate dev"], coloured=True, extra=unreachable
        ),
    ]


async def check_screens(tmux: Tmux, user: CliUser, wanted: Sequence[ScreenCase], widths: Sequence[int]) -> int:
    """Checks all screens and returns their number. Raises `NotHeld` at the first wrong one."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(case: ScreenCase, width: int, environment: Mapping[str, str]) -> None:
        async with limit:
            screen = await tmux.run_to_end([PROGRAM, *case.argv], environment, width=width)
        _check_screen(case, screen, plain="NO_COLOR" in environment)

    async with asyncio.TaskGroup() as group:
        for scene in wanted:
            for width in widths:
                for plain in ({}, {"NO_COLOR": "1"}):
                    group.create_task(one(scene, width, {**user.operator, **scene.extra, **plain}))
    return len(wanted) * len(widths) * 2


def _check_screen(case: ScreenCase, screen: Screen, *, plain: bool) -> None:
    where = f"`{' '.join(case.argv)}` at {screen.width} columns{' without colour' if plain else ''}"
    shown = f"{where} looks like this:\n{screen.text}"
    require_tidy(screen, shown)
    require(holds=screen.code == case.code, otherwise=f"{where} exited with {screen.code}:\n{screen.text}")
    for text in case.expected_texts:
        require(
            holds=" ".join(text.split()) in screen.collapsed_text, otherwise=f"{text!r} is missing or torn. {shown}"
        )
    has_colour = COLOUR.search(screen.raw) is not None
    require(holds=not (plain and has_colour), otherwise=f"there is colour despite NO_COLOR. {shown}")
    require(holds=plain or has_colour >= case.coloured, otherwise=f"there is no colour. {shown}")


def require_tidy(screen: Screen, shown: str) -> None:
    require(holds=not screen.wrapped, otherwise=f"the terminal wrapped {screen.wrapped} lines. {shown}")
    require(holds=screen.column == 0, otherwise=f"the cursor stayed in column {screen.column}. {shown}")
    require(holds=not _BOX_CHARACTERS.search(screen.text), otherwise=f"there are box-drawing characters. {shown}")
    require(holds="\ufffd" not in screen.text, otherwise=f"there are undecodable characters. {shown}")
    require(holds="Traceback" not in screen.text, otherwise=f"there is a Python traceback. {shown}")
    waiting = [line for line in screen.lines if re.search(r"… \d+s$", line)]
    require(holds=not waiting, otherwise=f"a status line was not cleared. {shown}")


async def check_help(tmux: Tmux, user: CliUser, wanted: Sequence[cli_commands.Command], widths: Sequence[int]) -> int:
    """Checks `--help` of every command at each width and returns the number of screens."""
    script = user.home / "helps.sh"
    # The shell prints a separator before each command and its exit code after it. Command names need no quoting.
    lines = [f"echo '@@ footplate {each.name}'; '{PROGRAM}' {each.name} --help; echo \"@@ $?\"" for each in wanted]
    script.write_text("\n".join(lines))
    for each in wanted:
        require(holds=not each.undocumented, otherwise=f"`{each.name}` does not explain {each.undocumented}")
    screens = await asyncio.gather(*(_show_help(tmux, user, script, width) for width in widths))
    for screen in screens:
        require_tidy(screen, f"the help at {screen.width} columns:\n{screen.text}")
        parts = screen.text.split("@@ ")[1:]
        require(holds=len(parts) == 2 * len(wanted), otherwise="the help scrolled away")
        for each, shown, ended in zip(wanted, parts[::2], parts[1::2], strict=True):
            usage = " ".join(f"footplate {each.name} Usage: footplate {each.name}".split())
            help_text = " ".join(shown.split())
            require(holds=ended.strip() == "0", otherwise=f"`{each.name} --help` exited with {ended}")
            require(holds=help_text.startswith(usage), otherwise=f"`{each.name} --help` prints {shown}")
            missing = [option for option in each.options if option.startswith("--") and option not in help_text]
            require(holds=not missing, otherwise=f"`{each.name} --help` does not mention {missing}")
            require(holds="..." not in help_text.replace("]...", "").replace("}...", ""), otherwise=f"cut off: {shown}")
    return len(wanted) * len(widths)


async def _show_help(tmux: Tmux, user: CliUser, script: Path, width: int) -> Screen:
    return await tmux.run_to_end(["sh", str(script)], user.environment, width=width)


async def check_pipes(user: CliUser, tmux: Tmux) -> int:
    """Checks output in pipes: only the response on stdout, whole lines on stderr, and no control characters."""
    done = await user.run("run", "[[script:looks]]")
    spoken = "\n\n".join(RESPONSE_TEXTS)
    require(holds=done.out == f"{spoken}\n", otherwise=f"stdout in a pipe is {done.out!r}")
    require(holds="\x1b" not in done.err and "\r" not in done.err, otherwise=f"stderr in a pipe is {done.err!r}")
    require(holds=f"echo {'x' * 300}" in done.err, otherwise="a line in a pipe was cut to a terminal's width")
    listed = await user.run("ls")
    require(holds="\x1b" not in listed.out and listed.code == 0, otherwise=f"`ls` in a pipe is {listed.out!r}")
    # Only stdout is a file: progress stays on the terminal, and the file contains only the response.
    target = user.home / "answer.txt"
    screen = await tmux.run_to_end(
        ["sh", "-c", f"exec '{PROGRAM}' run '[[script:looks]]' > '{target}'"], user.operator, width=WIDTHS[0]
    )
    require_tidy(screen, screen.text)
    require(holds=target.read_text() == f"{spoken}\n", otherwise=f"the file contains {target.read_text()!r}")
    require(
        holds="completed" in screen.collapsed_text and RESPONSE_TEXTS[2] not in screen.collapsed_text,
        otherwise=screen.text,
    )
    return 3
