"""Turns of slow tool calls. Each call writes its name into a file, which shows whether it ran once."""

import signal
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import asyncpg

from bench.prove.figure import require
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster
from footplate.domain.sessions import events as ev
from footplate.stack.orphan_processes import wait_until
from footplate.testing import Replies, replies, text, tool
from footplate.testing.model_scripts import Request
from footplate.testing.reply_steps import Step

TIMEOUT_SECONDS: Final = 900.0
COUNTS: Final = ("twice", "missing", "unknown", "errors")
"""The fields of a summary that must be 0."""


def build_script(bash: str, calls: int, seconds: float) -> Replies:
    calls_made = [[tool(bash, {"command": f"echo call-{n} >> ran; sleep {seconds}"})] for n in range(calls)]
    return replies(*calls_made, [tool(bash, {"command": "cat ran"})], [text("Done.")])


class EndlessScript:
    """Calls one after the other, until `is_over` is set."""

    def __init__(self, bash: str, seconds: float) -> None:
        self._bash = bash
        self._seconds = seconds
        self.is_over = False
        self._last_calls: dict[str, int] = {}
        """By session, because a repeated request gets the same reply."""

    def __call__(self, request: Request) -> Sequence[Step]:
        session = request.session or ""
        if self.is_over:
            self._last_calls.setdefault(session, request.n)
        last = self._last_calls.get(session)
        if last is None or request.n < last:
            return [tool(self._bash, {"command": f"echo call-{request.n} >> ran; sleep {self._seconds}"})]
        return [tool(self._bash, {"command": "cat ran"})] if request.n == last else [text("Done.")]


async def run_turn(client: Client, session_id: str, script: str) -> list[Event]:
    return await client.run_turn(session_id, f"Go. [[script:{script}]]", patience=TIMEOUT_SECONDS)


async def wait_until_all_run_a_tool(client: Client, sessions: Sequence[str]) -> None:
    async def all_run_a_tool() -> bool:
        return all([await client.events(each, types=[ev.AGENT_TOOL_USE]) for each in sessions])

    require(holds=await wait_until(all_run_a_tool, TIMEOUT_SECONDS), otherwise="not every turn reached its first tool")


async def restart_gracefully(cluster: Cluster, index: int) -> float:
    """Stops a worker with SIGTERM and starts it again. Returns the seconds that it took to stop."""
    began = time.monotonic()
    await cluster.kill_worker(index, signal.SIGTERM)
    await cluster.workers[index].wait()
    seconds = time.monotonic() - began
    await cluster.restart_worker(index)
    return seconds


def summarise_turn(received: Iterable[Event], turn: dict[str, Any], calls: int | None = None) -> dict[str, Any]:
    """`calls`: how many the turn should have made. None: as many as its log has, without the last one, which prints the
    file.
    """
    events = [*received]
    calls = sum(event["type"] == ev.AGENT_TOOL_USE for event in events) - 1 if calls is None else calls
    results = [event for event in events if event["type"] == ev.AGENT_TOOL_RESULT]
    require(holds=bool(results), otherwise=f"a turn without results: {turn}")
    ran = Counter(results[-1]["content"][0]["text"].split())
    return {
        "status": turn["status"],
        "attempts": turn["attempt"],
        "calls": calls,
        "twice": sum(count > 1 for count in ran.values()),
        "missing": calls - sum(f"call-{n}" in ran for n in range(calls)),
        "unknown": sum("unknown" in event["content"][0]["text"] for event in results),
        "errors": sum(event["type"] == ev.SESSION_ERROR for event in events),
    }


async def measure_delays(database: "asyncpg.Pool[asyncpg.Record]", session_id: str, seconds: float) -> Sequence[float]:
    """Returns how many seconds longer than the calls themselves it took from each result to the next one, and from the
    last one to the end of the turn.
    """
    rows = await database.fetch(
        "select type, created_at from events where session_id = $1 and ref_seq is null and type = any($2) order by seq",
        session_id,
        [ev.AGENT_TOOL_RESULT, ev.STATUS_IDLE],
    )
    times: list[datetime] = [row["created_at"] for row in rows]
    gaps = [(end - begin).total_seconds() for begin, end in pairwise(times)]
    return [*(gap - seconds for gap in gaps[:-2]), *gaps[-2:]]  # the last call only prints the file
