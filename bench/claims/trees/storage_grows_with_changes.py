"""Storage grows with the changes only: turn 1,000 adds as many bytes to the object store as turn 10.

A session with a project changes one line of one file in each turn. After each turn, the bytes added to the object store
are measured, and the turn's duration, which includes sending the growing conversation to the model.
"""

import asyncio
import os
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression, mean, median
from typing import Final

from bench.prove.figure import Figure, require
from bench.support.cluster import Cluster, open_cluster
from bench.support.host_loss.trial import make_git_project
from bench.support.minimal_client import MinimalClient, events_path, message
from footplate.testing import replies, reply, text, tool

_TURNS: Final = 1000
_WINDOW: Final = 50
_TURNS_QUICK: Final = 12
_WINDOW_QUICK: Final = 4
_MAX_RATIO: Final = 1.2
_MAX_RATIO_QUICK: Final = 1.5
"""The limit for a sample of a few turns, whose packs differ by a few bytes."""
_CHANGE: Final = "head -c 30 /dev/urandom | base64 > of_project/$((RANDOM % 50))"
_LONG_LEASES: Final = {"FOOTPLATE_LEASE": "30", "FOOTPLATE_HEARTBEAT_TIMEOUT": "60"}


@dataclass(slots=True)
class _Measured:
    bytes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    turns, window = (_TURNS_QUICK, _WINDOW_QUICK) if quick else (_TURNS, _WINDOW)
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-"))
    try:
        await asyncio.to_thread(make_git_project, root)
        environment = {**_LONG_LEASES, "FOOTPLATE_PROJECTS_ROOT": str(root)}
        async with open_cluster(environment=environment) as cluster:
            change = tool("bash", {"command": _CHANGE})
            await cluster.model.install("change", replies([change], reply(text("Changed."), repeat=True)))
            found = await _measure_turns(cluster, turns)
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
    first, last = sum(found.bytes[:window]), sum(found.bytes[-window:])
    slope = linear_regression(range(turns), found.bytes).slope if turns > 1 else 0.0
    ratio = last / first
    max_ratio = _MAX_RATIO_QUICK if quick else _MAX_RATIO
    early, late = (median(some) * 1000 for some in (found.seconds[:window], found.seconds[-window:]))
    return Figure(
        headline=f"{mean(found.bytes):,.0f} bytes per turn; the last {window} turns add {ratio:.2f} times the first "
        f"{window}",
        summary=f"{turns} turns with one small change each: {mean(found.bytes):,.0f} bytes per turn in the object "
        f"store; the last {window} turns added {ratio:.2f} times the bytes of the first {window} (limit "
        f"{max_ratio}), and the "
        f"bytes change by {slope:+.3f} from one turn to the next; a turn took {early:.0f} ms at the beginning and "
        f"{late:.0f} ms at the end, with its model request",
        holds=ratio <= max_ratio,
        details={"bytes": [*found.bytes], "seconds": [round(each, 4) for each in found.seconds], "slope": slope},
    )


async def _measure_turns(cluster: Cluster, turns: int) -> _Measured:
    objects = cluster.directory / "data" / "objects"
    found = _Measured()
    async with MinimalClient(cluster.base_urls[0], cluster.key) as lean:
        project = await lean.post("/v1/projects", {"path": "app"})
        agent = await lean.post(
            "/v1/agents",
            {"name": "changer", "model": "claude-sonnet-4-5", "tools": [{"type": "agent_toolset_20260401"}]},
        )
        seat = {**await lean.create_session_fields(), "agent": agent["id"], "project_ids": [project["id"]]}
        session_id = (await lean.post("/v1/sessions", seat))["id"]
        await _run_turn(lean, session_id)  # also stores the project's files
        before = await asyncio.to_thread(_stored_bytes, objects)
        for _ in range(turns):
            began = time.perf_counter()
            await _run_turn(lean, session_id)
            found.seconds.append(time.perf_counter() - began)
            now = await asyncio.to_thread(_stored_bytes, objects)
            found.bytes.append(now - before)
            before = now
    require(holds=min(found.bytes) > 0, otherwise="a turn changed a file and stored no object")
    return found


async def _run_turn(lean: MinimalClient, session_id: str) -> None:
    async with lean.stream(events_path(session_id)) as frames:
        await lean.post(f"/v1/sessions/{session_id}/events", {"events": [message("Go on. [[script:change]]")]})
        await frames.until_idle()


def _stored_bytes(root: Path) -> int:
    total = 0
    for parent, _, names in os.walk(root):
        total += sum(Path(parent, name).stat().st_size for name in names)
    return total
