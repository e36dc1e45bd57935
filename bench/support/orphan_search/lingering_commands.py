"""Scripts commands that leave processes behind by every means that a shell has."""

from typing import Final

from bench.support.cluster import Cluster
from footplate.testing import Replies, replies, text, tool

READY: Final = "ready"
PROCESSES_PER_COMMAND: Final = 6
"""How many processes each command leaves behind."""
_TIMEOUT_MS: Final = 1500
_LINGER_SECONDS: Final = 2.0


def process_marker(cluster: Cluster) -> str:
    """Returns the process name (argv[0]) of the processes: they are found by it whatever else they drop."""
    return f"stays-{cluster.id}"


def scripts(mark: str) -> dict[str, Replies]:
    """Returns the model's scripts, by name.

    `leaves`: the command exits by itself. `stays`: it does not. `times_out`: it ignores signals and has a time limit.
    After the command the turn continues for two seconds, while the processes that it left behind are alive.
    """
    ignoring_signals = f"trap '' TERM INT HUP; touch {READY}; {_named_sleep(mark)}"
    exiting, staying = (
        f"{_background(mark)}\n{_named_sleep(mark)} &\ntouch {READY}",
        f"{_background(mark)}\n{ignoring_signals}",
    )
    calls: dict[str, dict[str, object]] = {
        "leaves": {"command": exiting},
        "stays": {"command": staying},
        "times_out": {"command": staying, "timeout_ms": _TIMEOUT_MS},
    }
    return {
        name: replies([tool("bash", call)], [text("Done.", start_delay=_LINGER_SECONDS)])
        for name, call in calls.items()
    }


def _background(mark: str) -> str:
    """Returns a script that starts background processes.

    In order: a daemon by double fork without directory, variables and output; one in its own session that ignores
    signals; one with nohup; a child that ignores signals; and one that keeps every inherited pipe open.
    """
    return f"""
(setsid bash -c '(cd /; env -i bash -c "exec -a {mark} sleep 3600" </dev/null >/dev/null 2>&1 &)' &)
(setsid bash -c 'trap "" TERM INT HUP; exec -a {mark} sleep 3600' </dev/null &)
nohup {_named_sleep(mark)} >/dev/null 2>&1 &
(trap '' TERM INT HUP; {_named_sleep(mark)} >/dev/null &)
({_named_sleep(mark)} &)
"""


def _named_sleep(mark: str) -> str:
    return f"bash -c 'exec -a {mark} sleep 3600'"
