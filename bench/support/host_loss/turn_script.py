"""Scripts the turn during which the host is lost: ten calls that each change files and print their number."""

import re
from datetime import datetime
from pathlib import Path
from typing import Final

from bench.support.clients import Event
from footplate.testing import Replies, Step, replies, reply, text, tool

CALLS: Final = 10
_NAME: Final = re.compile(r"echo (\d+) ")
HARNESSES: Final = {"native": "bash", "claude": "Bash"}


def script(harness: str) -> Replies:
    """Returns the model's script. Each call adds a line, a file and a link, and removes the previous call's file."""
    return replies(reply(_call(HARNESSES[harness]), repeat=CALLS), [text("All files are there.")])


def _call(name: str) -> Step:
    command = (
        "echo {n} >> lines; mkdir -p d{n} && echo content of {n} > d{n}/file && chmod +x d{n}/file; "
        "ln -s d{n}/file link{n}; rm -f gone*; echo > gone{n}; sleep 0.1; echo done {n}"
    )
    return tool(name, {"command": command})


def completed_calls(events: list[Event]) -> list[int]:
    """Returns the numbers of the calls whose result reports success, in order."""
    results = [event for event in events if event["type"] == "agent.tool_result"]
    outputs = ["".join(block.get("text", "") for block in event["content"]).strip() for event in results]
    return [int(text.removeprefix("done ")) for text in outputs if text.startswith("done ")]


def calls_allowed_after(events: list[Event], time: datetime) -> set[int]:
    """Returns the numbers of the calls that were allowed after this time."""
    uses = [event for event in events if event["type"] == "agent.tool_use"]
    later = [event for event in uses if datetime.fromisoformat(event["processed_at"]) > time]
    named = [_NAME.match(event["input"]["command"]) for event in later]
    return {int(match[1]) for match in named if match is not None}


def find_tree_faults(tree: Path, done: list[int], unsure: set[int]) -> list[str]:
    """Compares the tree with the effects of the completed calls and returns the differences.

    `unsure` are calls of the inspected host that were cut off: they may or may not have taken effect.
    """
    lines = [int(line) for line in (tree / "lines").read_text().split()] if (tree / "lines").exists() else []
    done = sorted({*done, *unsure.intersection(lines)})
    found = [] if lines == done else [f"lines {lines} of calls {done}"]
    wanted = {f"d{n}/file" for n in done} | {f"link{n}" for n in done} | {f"gone{done[-1]}", "lines"}
    there = {
        str(path.relative_to(tree))
        for path in tree.rglob("*")
        if not _is_in_git_directory(path, tree) and _is_file_or_link(path)
    }
    wanted |= {path for path in there if path.startswith("of_project/")}
    found += [f"missing: {sorted(wanted - there)}"] if wanted - there else []
    found += [f"too many: {sorted(there - wanted)}"] if there - wanted else []
    for n in done:
        file = tree / f"d{n}" / "file"
        if file.exists() and (file.read_text() != f"content of {n}\n" or not file.stat().st_mode & 0o100):
            found.append(f"{file.name} of call {n}")
    return found


def _is_file_or_link(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _is_in_git_directory(path: Path, tree: Path) -> bool:
    return ".git" in path.relative_to(tree).parts
