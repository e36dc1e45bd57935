"""Checks the command line's screens at each width, with and without colour: no broken, torn or missing text."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.prove.figure import require
from bench.support.terminal import commands
from bench.support.terminal.person import PROGRAM, Person
from bench.support.terminal.stories import SAID
from bench.support.terminal.tmux import Screen, Tmux

WIDTHS: Final = (60, 80, 140)
COLOUR: Final = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:[34][0-7]|[34]8;[0-9;]+|9[0-7]|10[0-7])m")
"""Escape sequences that set a colour. Bold and dim are no colours, and 39 and 49 reset one."""
_BOXES: Final = re.compile("[\u2500-\u259f]")
_AT_ONCE: Final = 3


@dataclass(frozen=True, slots=True)
class Look:
    argv: Sequence[str]
    code: int = 0
    says: Sequence[str] = ()
    coloured: bool = False
    extra: Mapping[str, str] = field(default_factory=dict)


def scenes(session_id: str) -> list[Look]:
    """Returns commands for each kind of output: a run, tables, details, a log, diagnostics and errors."""
    nobody = {"FOOTPLATE_BASE_URL": "http://127.0.0.1:9"}
    return [
        Look(["run", "[[script:looks]]"], says=[*SAID, "bash", "read", "completed", "$0."], coloured=True),
        Look(["show", session_id], says=[session_id, "completed"], coloured=True),
        Look(["ls"], says=[session_id]),
        Look(["show", "sesn_none"], code=1, says=["sesn_none"], coloured=True),
        Look(["attach", session_id], says=["> ", "I say hello.", "Done.", "completed"], coloured=True),
        Look(["logs", session_id], says=["> ", "I say hello.", "Done."], coloured=True),
        Look(["run", "[[script:bad]]"], code=1, says=["that model does not exist", "failed"], coloured=True),
        Look(["agents", "ls"], says=["footplate-cli"]),
        Look(["environments", "ls"], says=["footplate-cli"]),
        Look(["config", "list"], says=["local"]),
        Look(["doctor"], says=["PostgreSQL", "Temporal"], coloured=True),
        Look(["run", "--timeout", "soon", "hello"], code=2, says=["--timeout"]),
        Look(["ls"], code=7, says=["does not respond", "footplate dev"], coloured=True, extra=nobody),
    ]


async def look(tmux: Tmux, person: Person, wanted: Sequence[Look], widths: Sequence[int]) -> int:
    """Checks all screens and returns their number. Raises `NotHeld` at the first wrong one."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(scene: Look, width: int, environment: Mapping[str, str]) -> None:
        async with room:
            screen = await tmux.show([PROGRAM, *scene.argv], environment, width=width)
        _check(scene, screen, plain="NO_COLOR" in environment)

    async with asyncio.TaskGroup() as group:
        for scene in wanted:
            for width in widths:
                for plain in ({}, {"NO_COLOR": "1"}):
                    group.create_task(one(scene, width, {**person.operator, **scene.extra, **plain}))
    return len(wanted) * len(widths) * 2


def _check(scene: Look, screen: Screen, *, plain: bool) -> None:
    where = f"`{' '.join(scene.argv)}` at {screen.width} columns{' without colour' if plain else ''}"
    shown = f"{where} looks like this:\n{screen.text}"
    tidy(screen, shown)
    require(holds=screen.code == scene.code, otherwise=f"{where} exited with {screen.code}:\n{screen.text}")
    for said in scene.says:
        require(holds=" ".join(said.split()) in screen.words, otherwise=f"{said!r} is missing or torn. {shown}")
    has_colour = COLOUR.search(screen.raw) is not None
    require(holds=not (plain and has_colour), otherwise=f"there is colour despite NO_COLOR. {shown}")
    require(holds=plain or has_colour >= scene.coloured, otherwise=f"there is no colour. {shown}")


def tidy(screen: Screen, shown: str) -> None:
    require(holds=not screen.wrapped, otherwise=f"the terminal wrapped {screen.wrapped} lines. {shown}")
    require(holds=screen.column == 0, otherwise=f"the cursor stayed in column {screen.column}. {shown}")
    require(holds=not _BOXES.search(screen.text), otherwise=f"there are box-drawing characters. {shown}")
    require(holds="\ufffd" not in screen.text, otherwise=f"there are undecodable characters. {shown}")
    require(holds="Traceback" not in screen.text, otherwise=f"there is a Python traceback. {shown}")
    waiting = [line for line in screen.lines if re.search(r"… \d+s$", line)]
    require(holds=not waiting, otherwise=f"a status line was not cleared. {shown}")


async def helps(tmux: Tmux, person: Person, wanted: Sequence[commands.Command], widths: Sequence[int]) -> int:
    """Checks `--help` of every command at each width and returns the number of screens."""
    script = person.home / "helps.sh"
    # The shell prints a separator before each command and its exit code after it. Command names need no quoting.
    lines = [f"echo '@@ footplate {each.name}'; '{PROGRAM}' {each.name} --help; echo \"@@ $?\"" for each in wanted]
    script.write_text("\n".join(lines))
    for each in wanted:
        require(holds=not each.undocumented, otherwise=f"`{each.name}` does not explain {each.undocumented}")
    screens = await asyncio.gather(*(_helps(tmux, person, script, width) for width in widths))
    for screen in screens:
        tidy(screen, f"the help at {screen.width} columns:\n{screen.text}")
        parts = screen.text.split("@@ ")[1:]
        require(holds=len(parts) == 2 * len(wanted), otherwise="the help scrolled away")
        for each, shown, ended in zip(wanted, parts[::2], parts[1::2], strict=True):
            usage = " ".join(f"footplate {each.name} Usage: footplate {each.name}".split())
            told = " ".join(shown.split())
            require(holds=ended.strip() == "0", otherwise=f"`{each.name} --help` exited with {ended}")
            require(holds=told.startswith(usage), otherwise=f"`{each.name} --help` prints {shown}")
            missing = [option for option in each.options if option.startswith("--") and option not in told]
            require(holds=not missing, otherwise=f"`{each.name} --help` does not mention {missing}")
            require(holds="..." not in told.replace("]...", "").replace("}...", ""), otherwise=f"cut off: {shown}")
    return len(wanted) * len(widths)


async def _helps(tmux: Tmux, person: Person, script: Path, width: int) -> Screen:
    return await tmux.show(["sh", str(script)], person.environment, width=width)


async def piped(person: Person, tmux: Tmux) -> int:
    """Checks output in pipes: only the response on stdout, whole lines on stderr, and no control characters."""
    done = await person.run("run", "[[script:looks]]")
    spoken = "\n\n".join(SAID)
    require(holds=done.out == f"{spoken}\n", otherwise=f"stdout in a pipe is {done.out!r}")
    require(holds="\x1b" not in done.err and "\r" not in done.err, otherwise=f"stderr in a pipe is {done.err!r}")
    require(holds=f"echo {'x' * 300}" in done.err, otherwise="a line in a pipe was cut to a terminal's width")
    listed = await person.run("ls")
    require(holds="\x1b" not in listed.out and listed.code == 0, otherwise=f"`ls` in a pipe is {listed.out!r}")
    # Only stdout is a file: progress stays on the terminal, and the file contains only the response.
    target = person.home / "answer.txt"
    screen = await tmux.show(
        ["sh", "-c", f"exec '{PROGRAM}' run '[[script:looks]]' > '{target}'"], person.operator, width=WIDTHS[0]
    )
    tidy(screen, screen.text)
    require(holds=target.read_text() == f"{spoken}\n", otherwise=f"the file contains {target.read_text()!r}")
    require(holds="completed" in screen.words and SAID[2] not in screen.words, otherwise=screen.text)
    return 3
