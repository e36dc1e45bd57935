"""Scripts the turn that is interrupted: ten calls of the CLI's Bash, alone and in pairs, which append a line each."""

from collections.abc import Sequence
from typing import Final

import asyncpg
import orjson

from bench.support.cluster import Cluster
from bench.support.crash.session_check import SessionAccount, check_session
from footplate.harness.claude.recovery import NOT_STARTED
from footplate.harness.claude.transcripts.transcript_lines import LINE
from footplate.testing import Replies, Step, replies, reply, text, tool

CALLS: Final = 10
SCRIPT: Final = "claude-lines"
PROMPT: Final = f"Leave your lines. [[script:{SCRIPT}]]"
# Detached from its shell in every way that a command has: it must die with the turn all the same.
_DAEMON: Final = "(setsid sleep 300 </dev/null >/dev/null 2>&1 &)"


def build_script() -> Replies:
    pair = reply(text("Two of them."), _call("{n}.a"), _call("{n}.b"))
    return replies(
        [text("I begin."), _call("{n}", _DAEMON)],
        reply(_call("{n}"), repeat=2),
        pair,
        reply(_call("{n}"), repeat=3),
        pair,
        [text("All lines are there.")],
    )


def _call(name: str, also: str = ":") -> Step:
    return tool("Bash", {"command": f"echo {name} >> lines; {also}; sleep 0.05"})


async def check_interrupted_session(
    cluster: Cluster, session_id: str, seen: Sequence[int]
) -> tuple[SessionAccount, int]:
    """Checks the session. Returns its account, and how many calls were lost before they started."""
    lost = await count_unstarted(cluster, session_id)
    return await check_session(cluster, session_id, seen, calls=CALLS - lost), lost


async def count_unstarted(cluster: Cluster, session_id: str) -> int:
    """Counts the calls that were lost before they started, as reported to the model."""
    connection = await asyncpg.connect(cluster.settings.database_url, timeout=30)
    try:
        rows = await connection.fetch(
            "select body from entries where session_id = $1 and kind = $2 order by idx", session_id, LINE
        )
    finally:
        await connection.close()
    lines = [orjson.loads(row["body"])["line"] for row in rows]
    return sum(NOT_STARTED in str(line.get("message")) for line in lines)
