"""One command that leaves processes behind by every means that a shell has."""

from typing import Final

from bench.support.cluster import Cluster
from footplate.testing import Replies, replies, text, tool

READY: Final = "ready"
STAYING: Final = 6
"""Processes that each command leaves."""
_TIMEOUT_MS: Final = 1500
_LINGERING: Final = 2.0


def marker(cluster: Cluster) -> str:
    """What each of them calls itself: whatever else it drops, it is found by that."""
    return f"stays-{cluster.id}"


def scripts(mark: str) -> dict[str, Replies]:
    """`leaves`: the command ends by itself. `stays`: it does not. `times_out`: it has a limit, and is deaf.

    The turn goes on for a moment after the command, with all that the command left.
    """
    deaf = f"trap '' TERM INT HUP; touch {READY}; {_named(mark)}"
    leaves, stays = f"{_background(mark)}\n{_named(mark)} &\ntouch {READY}", f"{_background(mark)}\n{deaf}"
    calls: dict[str, dict[str, object]] = {
        "leaves": {"command": leaves},
        "stays": {"command": stays},
        "times_out": {"command": stays, "timeout_ms": _TIMEOUT_MS},
    }
    return {
        name: replies([tool("bash", call)], [text("Done.", start_delay=_LINGERING)]) for name, call in calls.items()
    }


def _background(mark: str) -> str:
    """In turn: a daemon by double fork, without directory, variables and output; a session of its own, deaf; nohup;
    deaf children; one that keeps every pipe that it was given.
    """
    return f"""
(setsid bash -c '(cd /; env -i bash -c "exec -a {mark} sleep 3600" </dev/null >/dev/null 2>&1 &)' &)
(setsid bash -c 'trap "" TERM INT HUP; exec -a {mark} sleep 3600' </dev/null &)
nohup {_named(mark)} >/dev/null 2>&1 &
(trap '' TERM INT HUP; {_named(mark)} >/dev/null &)
({_named(mark)} &)
"""


def _named(mark: str) -> str:
    return f"bash -c 'exec -a {mark} sleep 3600'"
