"""A tool call costs little more than its command alone in the sandbox, whether it writes a file or not.

Twelve calls in each turn, in a small repository and in one of 10,000 files, with a snapshot after each call. Half of
the calls that write make a new file, half change one.

Time is from `agent.tool_use` to `agent.tool_result` in a client's stream. It is compared with the same command in the
persistent shell of a sandbox with the same settings and an empty directory, without a server.

CPU time is that of the worker and all its child processes, minus that of the same turns with every call refused. This
removes the model requests, the log rows, and the scans of every file at the start and the end of a turn. It is compared
with bubblewrap itself, started for the same command with the same arguments.

Claude Code's own Bash, Edit and Write calls are compared with the same CLI without Footplate (`speed/claude_calls.py`).
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.prove.figure import Figure
from bench.support.cluster import Cluster, open_cluster
from bench.support.escape.attacked_backends import SANDBOX, UID
from bench.support.minimal_client import MODEL, MinimalClient, Received, events_path
from bench.support.speed import claude_calls
from bench.support.speed.measurement import median, milliseconds
from bench.support.speed.process_cpu import process_tree_cpu_seconds
from bench.support.speed.sample_repository import make_repository
from bench.support.speed.sandbox_overhead import open_sandbox, spawn_bare
from footplate.domain.json import JsonObject
from footplate.environments.factory import SandboxFactory
from footplate.environments.sandbox import probe
from footplate.environments.sandbox.environment import SandboxEnvironment
from footplate.proxy.model_proxy import ModelProxy
from footplate.testing import replies, reply, text, tool

_CALLS: Final = 12
_LIMIT_MS: Final = {1: 15, 8: 50}
"""Milliseconds, by how many sessions run at once."""
_FIRST_LIMIT_MS: Final = 60
_CPU_RATIO_LIMIT: Final = 2.0
_COMMANDS: Final = {
    "write": ("date +%N > file-{n}", "date +%N > new-$(date +%s%N)"),
    "read": ("cat README.md", "ls"),
}
_IN_TMP: Final = "cd /tmp; echo > README.md; "
_FILES: Final = {"small": 20, "large": 10_000}
_TOOLS: Final[JsonObject] = {"type": "agent_toolset_20260401"}
_NO_BASH: Final[JsonObject] = {**_TOOLS, "configs": [{"name": "bash", "enabled": False}]}


@dataclass(frozen=True, slots=True)
class _Cost:
    """The time and CPU time of one call."""

    seconds: float
    cpu_seconds: float


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    turns = 1 if quick else 4
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-"))
    rows: dict[str, dict[str, float]] = {}
    try:
        for name, files in _FILES.items():
            await asyncio.to_thread(make_repository, root / name, min(files, 500) if quick else files)
        async with open_cluster(environment={"FOOTPLATE_PROJECTS_ROOT": str(root)}) as cluster:
            for kind, commands in _COMMANDS.items():
                calls = [tool("bash", {"command": commands[n % 2].format(n=n)}) for n in range(_CALLS)]
                script = replies(*[[call] for call in calls], reply(text("Done."), repeat=True))
                await cluster.model.install(kind, script)
                for sessions in _LIMIT_MS:
                    bare = await _measure_bare(root / "bare", commands, sessions, turns)
                    for name in _FILES:
                        ours, first = await _measure_calls(cluster, name, kind, sessions, turns)
                        refused, _ = await _measure_calls(cluster, name, kind, sessions, turns, tools=_NO_BASH)
                        row = f"{kind}, {name} repository, {sessions} at once"
                        rows[row] = {
                            "bare_ms": milliseconds(bare.seconds),
                            "ours_ms": milliseconds(ours.seconds),
                            "added_ms": milliseconds(ours.seconds - bare.seconds),
                            "first_added_ms": milliseconds(first - bare.seconds),
                            "bare_cpu_ms": milliseconds(bare.cpu_seconds),
                            "ours_cpu_ms": milliseconds(ours.cpu_seconds - refused.cpu_seconds),
                            "refused_cpu_ms": milliseconds(refused.cpu_seconds),
                            "cpu_ratio": round((ours.cpu_seconds - refused.cpu_seconds) / bare.cpu_seconds, 2),
                            "limit_ms": _LIMIT_MS[sessions],
                        }
                        print(f"  {row}: {rows[row]}", flush=True)
            async with MinimalClient(cluster.base_urls[0], cluster.key) as lean:
                project_id = await _find_or_add_project(lean, "small")
            claude = await claude_calls.measure_claude_calls(cluster, project_id, turns)
            for row, figures in claude.items():
                print(f"  {row}: {figures}", flush=True)
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
    worst = max(rows.values(), key=lambda row: row["added_ms"] / row["limit_ms"])
    first = max(row["first_added_ms"] for name, row in rows.items() if name.endswith(" 1 at once"))
    cpu = max(row["cpu_ratio"] for row in rows.values())
    worst_claude = max(claude.values(), key=lambda row: row["added_ms"])
    return Figure(
        headline=f"a call adds {worst['added_ms']:.0f} ms (limit {worst['limit_ms']}), a Claude Code call "
        f"{worst_claude['added_ms']:.0f} ms (limit {claude_calls.LIMIT_MS})",
        summary=f"in the row closest to its limit, the median call adds {worst['added_ms']:.0f} ms to the bare command "
        f"(limit {worst['limit_ms']}); the first call of a session that runs alone adds {first:.0f} ms (limit "
        f"{_FIRST_LIMIT_MS}); CPU {cpu:.2f} times that of bare bubblewrap (limit {_CPU_RATIO_LIMIT:g}); "
        f"Claude Code's own calls add up to {worst_claude['added_ms']:.0f} ms (limit {claude_calls.LIMIT_MS}), "
        f"of which {worst_claude['transcript_wait_ms']:.0f} ms are spent waiting for the CLI to write its transcript",
        holds=quick
        or (
            worst["added_ms"] <= worst["limit_ms"]
            and first <= _FIRST_LIMIT_MS
            and cpu <= _CPU_RATIO_LIMIT
            and worst_claude["added_ms"] <= claude_calls.LIMIT_MS
        ),
        details={name: {**row} for name, row in (rows | claude).items()},
    )


async def _measure_calls(
    cluster: Cluster, project: str, kind: str, sessions: int, turns: int, tools: JsonObject = _TOOLS
) -> tuple[_Cost, float]:
    """Returns the median call, its share of the worker's CPU time, and the median first call of a session."""
    firsts: list[float] = []
    calls: list[float] = []
    used = 0.0
    worker = cluster.workers[0].pid
    assert worker is not None
    async with MinimalClient(cluster.base_urls[0], cluster.key) as lean, AsyncExitStack() as exits:
        project_id = await _find_or_add_project(lean, project)
        agent = await lean.post("/v1/agents", {"name": kind, "model": MODEL, "tools": [tools]})
        seat = {**await lean.create_session_fields(), "agent": agent["id"], "project_ids": [project_id]}
        streams = []
        for _ in range(sessions):
            session_id = (await lean.post("/v1/sessions", seat))["id"]
            streams.append((session_id, await exits.enter_async_context(lean.stream(events_path(session_id)))))
        for turn in range(turns + 1):
            before = process_tree_cpu_seconds(worker)
            for session_id, _ in streams:
                await lean.send(session_id, f"Go. [[script:{kind}]]")
            turned = await asyncio.gather(*(frames.until_idle() for _, frames in streams))
            if turn:
                used += process_tree_cpu_seconds(worker) - before
                calls += [took for frames in turned for took in _call_seconds(frames)]
            else:
                firsts += [_call_seconds(frames)[0] for frames in turned]
    return _Cost(median(calls), used / len(calls)), median(firsts)


async def _find_or_add_project(lean: MinimalClient, path: str) -> str:
    listed = (await lean.get("/v1/projects"))["data"]
    found = next((each for each in listed if each["name"] == path), None)
    return str((found or await lean.post("/v1/projects", {"path": path}))["id"])


def _call_seconds(frames: Sequence[Received]) -> list[float]:
    began = {frame.body["id"]: frame.at for frame in frames if frame.event == "agent.tool_use"}
    return [frame.at - began[frame.body["tool_use_id"]] for frame in frames if frame.event == "agent.tool_result"]


async def _measure_bare(root: Path, commands: Sequence[str], sessions: int, turns: int) -> _Cost:
    """Returns the time of a command in the persistent shell, and the CPU time of bubblewrap started for it."""
    await asyncio.to_thread(root.mkdir, exist_ok=True)
    await asyncio.to_thread(root.chmod, 0o755)
    found = await probe.probe_sandbox(UID)
    sandboxed = SandboxFactory(root, SANDBOX, found.host, uid=UID)
    took: list[float] = []
    async with ModelProxy({}) as proxy, AsyncExitStack() as exits:
        names = [f"bare-{time.monotonic_ns()}-{number}" for number in range(sessions)]
        environments = [await exits.enter_async_context(open_sandbox(sandboxed, proxy, name)) for name in names]
        for environment in environments:
            await environment.shell("echo > README.md", timeout=60)

        async def run(environment: SandboxEnvironment) -> None:
            for call in range(turns * _CALLS):
                began = time.monotonic()
                await environment.shell(commands[call % 2].format(n=call % _CALLS), timeout=60)
                took.append(time.monotonic() - began)

        await asyncio.gather(*map(run, environments))
        spawned = [
            await asyncio.to_thread(
                spawn_bare, environments[0], ["bash", "-c", _IN_TMP + commands[call % 2].format(n=call)]
            )
            for call in range(turns * _CALLS)
        ]
    return _Cost(median(took), sum(each.cpu_seconds for each in spawned) / len(spawned))
