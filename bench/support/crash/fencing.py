"""Stops a worker at a failpoint, lets another take its turn over, and checks that the first then changes nothing."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg

from bench.prove.figure import require
from bench.support.clients import Client
from bench.support.cluster import Cluster
from bench.support.crash import interrupted_turn
from bench.support.crash.session_check import check_session
from bench.support.crash.stream_watcher import StreamWatcher
from footplate.stack.orphan_processes import wait_until
from footplate.testing import Replies, replies, reply, text, tool

CALLS: Final = 6
_PATIENCE: Final = 60.0
_REACHED_WITHIN: Final = 10.0
_RELEASED_FOR: Final = 0.1
_AWAKE_SECONDS: Final = 1.5
"""Seconds that a woken worker has to do damage: several lease renewals, and long after its next step."""
_BEAT: Final = "do date +%s%N >> beats; sleep 0.02; done"
_INTERRUPTS_CALL: Final = frozenset({"after_intent", "in_tool", "before_result_commit"})
"""Failpoints at which a call has started and has no result."""
_AFTER_TURN: Final = "after_turn_commit"
"""The failpoint after which the turn has no further attempt. The test continues with the next turn."""
_TABLES: Final = ("session_heads", "events", "entries", "steps", "turns")
_IGNORED_COLUMNS: Final = frozenset({"epoch", "claimed_at"})
"""Columns that change without effect: each claim raises the epoch, even without work, for example the workflow's last
check.
"""


def build_scripts(bash: str = "bash") -> dict[str, Replies]:
    """Scripts tools that write a heartbeat to the disk while they live: one in the background, and each call itself.

    `bash`: the name of the shell tool in this harness.
    """
    background = f"(setsid bash -c 'while :; {_BEAT}' </dev/null >/dev/null 2>&1 &)"
    first = tool(bash, {"command": f"echo {{n}} >> lines; {background}; until [ -e beats ]; do sleep 0.01; done"})
    later = tool(bash, {"command": f"echo {{n}} >> lines; until [ -e go ]; {_BEAT}"})
    return {
        "fenced": replies([first], reply(later, repeat=CALLS - 1), [text("Done.")]),
        "short": replies([text("Here I am.")]),
    }


@dataclass(frozen=True, slots=True)
class FencingTrial:
    point: str
    dead_before: float
    """Seconds from the last heartbeat of the stopped worker's tools to the claim of the next attempt."""
    stale_requests: int
    """Model requests that the woken worker still sent."""
    faults: Sequence[str]


async def stop_at_failpoint(
    cluster: Cluster,
    client: Client,
    agent: str,
    point: str,
    *,
    wake_early: bool,
    unstarted: Callable[[Cluster, str], Awaitable[int]] | None = None,
) -> FencingTrial:
    """Stops a worker at the failpoint and returns what happened.

    `wake_early`: wakes it while the next attempt runs, not only at the end. `unstarted`: counts the calls of a session
    that were lost before they started, for a harness that does not run them again.
    """
    session_id = await client.session(agent)
    files = interrupted_turn.workspace_path(cluster, session_id)
    files.mkdir(parents=True, exist_ok=True)  # a prewarmed session has it already
    if point != "in_tool":
        (files / "go").touch()  # The calls are short. Only at `in_tool` a call must run until it is killed.
    turns = 2 if point == _AFTER_TURN else 1
    connection = await asyncpg.connect(cluster.settings.database_url)
    try:
        async with StreamWatcher(client, session_id) as watcher:
            await client.send_text(session_id, "Leave your lines. [[script:fenced]]")
            stopped = await _wait_stopped(cluster, point, files)
            epoch = await connection.fetchval("select epoch from session_heads where session_id = $1", session_id)
            if turns > 1:
                await client.send_text(session_id, "Are you there? [[script:short]]")
            claimed = await _next_claim(connection, session_id, epoch)
            (files / "go").touch()
            if wake_early:
                await cluster.kill_worker(stopped, signal.SIGCONT)
            await watcher.wait_for_turns(turns)
            calm = await _read_state(connection, session_id, files)
            asked = len(await cluster.model.requests(bodies=False))
            await cluster.kill_worker(stopped, signal.SIGCONT)
            await asyncio.sleep(_AWAKE_SECONDS)
            stale = len(await cluster.model.requests(bodies=False)) - asked
            changed = _describe_changes(calm, await _read_state(connection, session_id, files))
            calls = CALLS - (await unstarted(cluster, session_id) if unstarted else 0)
            found = await check_session(cluster, session_id, watcher.seen, turns=turns, calls=calls)
    finally:
        await connection.close()
    beats = [int(line) / 1e9 for line in (files / "beats").read_text().split()]
    faults = [*found.faults, *(f"{session_id}: the woken worker changed {change}" for change in changed)]
    if point in _INTERRUPTS_CALL and not found.unknown:
        faults.append(f"{session_id}: no result reports that the outcome of the interrupted call is unknown")
    if max(beats) >= claimed:
        faults.append(f"{session_id}: its tool lived {max(beats) - claimed:.3f} s into the next attempt")
    return FencingTrial(point, claimed - max(beats), stale, faults)


async def _wait_stopped(cluster: Cluster, point: str, files: Path) -> int:
    """Arms the failpoint once the turn's first tool runs, and returns the number of the worker that stopped there."""

    async def alive() -> bool:
        return (files / "beats").exists()

    async def stopped() -> bool:
        return any(_is_stopped(worker.pid) for worker in cluster.workers)

    require(holds=await wait_until(alive, _PATIENCE), otherwise="the turn's first tool did not start")
    (cluster.failpoints / point).write_text("stop")
    if point == "in_tool" and not await wait_until(stopped, _REACHED_WITHIN):
        # The call started before the failpoint was armed, and waits for `go`. The next call reaches it.
        (files / "go").touch()
        await asyncio.sleep(_RELEASED_FOR)
        (files / "go").unlink()
    require(holds=await wait_until(stopped, _PATIENCE), otherwise=f"no worker reached {point}")
    return next(number for number, worker in enumerate(cluster.workers) if _is_stopped(worker.pid))


def _is_stopped(pid: int | None) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("T")


async def _next_claim(connection: "asyncpg.Connection[asyncpg.Record]", session_id: str, epoch: int) -> float:
    """Returns when the next attempt started, by the database's clock, which is this machine's."""
    claims: list[float] = []

    async def claimed() -> bool:
        row = await connection.fetchrow(
            "select claimed_at from session_heads where session_id = $1 and epoch > $2", session_id, epoch
        )
        if row is not None:
            claims.append(row["claimed_at"].timestamp())
        return bool(claims)

    require(holds=await wait_until(claimed, _PATIENCE), otherwise="no worker took the turn over")
    return claims[0]


async def _read_state(connection: "asyncpg.Connection[asyncpg.Record]", session_id: str, files: Path) -> dict[str, Any]:
    """Returns the whole state of the session, in the database and on the disk."""
    rows = {}
    for table in _TABLES:
        found = await connection.fetch(f"select * from {table} where session_id = $1", session_id)
        rows[table] = sorted(str([item for item in row.items() if item[0] not in _IGNORED_COLUMNS]) for row in found)
    return {**rows, **_contents(files)}


def _contents(directory: Path) -> dict[str, bytes]:
    return {f"the file {file.name}": file.read_bytes() for file in directory.iterdir()}


def _describe_changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [
        f"{name} from {old.get(name)} to {new.get(name)}" for name in {**old, **new} if old.get(name) != new.get(name)
    ]
