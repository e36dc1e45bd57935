"""Scripts the turn that is interrupted: 12 tool calls, which append one line each to a file."""

from pathlib import Path
from typing import Final

from bench.support.cluster import Cluster
from footplate.testing import Replies, Step, replies, reply, text, tool

CALLS: Final = 12
PROMPT: Final = "Leave your lines. [[script:lines]]"
SCRIPT_NAME: Final = "lines"
_ORGANISATION: Final = "default"
# Detached from its shell in every way that a command has: it must die with the turn all the same.
_DAEMON: Final = "(setsid sleep 300 </dev/null >/dev/null 2>&1 &)"


def build_script(name: str = "{n}") -> Replies:
    """Makes single calls and three at once, so that some calls wait for their start when the worker dies.

    `name`: the line that a call writes; it must be unique in the session.
    """
    three = reply(_call(f"{name}.a"), _call(f"{name}.b"), _call(f"{name}.c"))
    return replies(
        [_call(name, _DAEMON)],
        reply(_call(name), repeat=2),
        three,
        reply(_call(name), repeat=3),
        three,
        [text("All lines are there.")],
    )


def _call(name: str, also: str = ":") -> Step:
    return tool("bash", {"command": f"echo {name} >> lines; {also}; sleep 0.05"})


def written_line(command: str) -> str:
    """Returns the line that the command writes."""
    return command.removeprefix("echo ").partition(" ")[0]


def workspace_path(cluster: Cluster, session_id: str) -> Path:
    return cluster.directory / "data" / "workspaces" / _ORGANISATION / session_id


def read_lines(cluster: Cluster, session_id: str) -> list[str]:
    file = workspace_path(cluster, session_id) / "lines"
    return file.read_text().split() if file.is_file() else []
