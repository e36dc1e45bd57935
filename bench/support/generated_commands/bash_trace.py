"""Runs allowed commands in bash and reads from its trace which programs they really ran.

The commands run inside bubblewrap, in an empty tree, with a PATH of programs that do nothing.
"""

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_MARK: Final = "@"
_LINE: Final = re.compile(rf"^{_MARK}+ (.*)$", re.MULTILINE)
_NO_PROGRAM: Final = re.compile(r"[A-Za-z_]\w*\+?=|(?:for|case|select|if|while)\b|'?\[|\[\[")
_DRIVER: Final = """
cd "$1" || exit 9
for file in ../commands/*; do
  rm -rf ./* 2>/dev/null
  mkdir -p src packages/api tests
  PS4='@ ' timeout 5 bash --norc -x -c "$(<"$file")" </dev/null >/dev/null 2>"../traces/${file##*/}"
  ls -A | grep -vxE 'src|packages|tests' > "../files/${file##*/}"
done
"""


async def trace_commands(commands: Sequence[str], programs: Sequence[str]) -> list[tuple[set[str], set[str]]]:
    """Returns for each command the programs that it ran and the files that it created outside of `src`."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name in ("commands", "traces", "files", "tree", "bin"):
            (folder / name).mkdir()
        for name in programs:
            (folder / "bin" / name).symlink_to("/bin/true")
        for index, command in enumerate(commands):
            (folder / "commands" / f"{index:06}").write_text(command)
        await _run_in_bubblewrap(folder)
        return [
            (
                _find_programs((folder / "traces" / f"{index:06}").read_text(errors="replace")),
                _read_created_files(folder / "files" / f"{index:06}"),
            )
            for index in range(len(commands))
        ]


async def _run_in_bubblewrap(folder: Path) -> None:
    tools = {name: shutil.which(name) or name for name in ("bash", "timeout", "rm", "mkdir", "ls", "grep")}
    script = _DRIVER
    for name in ("timeout", "rm", "mkdir", "grep"):
        script = script.replace(f"  {name} ", f"  {tools[name]} ").replace(f"| {name} ", f"| {tools[name]} ")
    script = script.replace("timeout 5 bash", f"{tools['timeout']} 5 {tools['bash']}").replace(
        "  ls -A", f"  {tools['ls']} -A"
    )
    process = await asyncio.create_subprocess_exec(
        *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", str(folder), str(folder)),
        *("--unshare-all", "--die-with-parent", "--clearenv", "--setenv", "PATH", str(folder / "bin")),
        *("--setenv", "HOME", str(folder / "tree"), tools["bash"], "--norc", "-c", script, "x", str(folder / "tree")),
        env={"PATH": os.environ["PATH"]},
    )
    await process.wait()


def _find_programs(trace: str) -> set[str]:
    found = set()
    for line in _LINE.findall(trace):
        if not _NO_PROGRAM.match(line):
            program = line.split(" ", 1)[0]
            found.add(program.strip("'\"").rsplit("/", 1)[-1] if program.startswith("/") else program)
    return found


def _read_created_files(file: Path) -> set[str]:
    return set(file.read_text(errors="replace").splitlines())
