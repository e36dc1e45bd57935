"""The scenarios that are counted, with a client that follows the session's stream."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from bench.support.cluster import open_cluster
from bench.support.counts import pid_namespace
from bench.support.counts.counters import Counters, Counts, Repetitions, Updates, open_counters
from bench.support.minimal_client import MODEL, Frames, MinimalClient, events_path
from bench.support.speed.measurement import ROOT
from footplate.domain.json import JsonObject
from footplate.testing import replies, reply, text, tool

_DONE: Final = reply(text("Yes.", chunks=1), repeat=True)
_TOOLS: Final[JsonObject] = {"type": "agent_toolset_20260401"}
_TOOLS_WITH_APPROVAL: Final[JsonObject] = {
    **_TOOLS,
    "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}],
}
_BASH: Final = {"native": "bash", "claude": "Bash"}
_COMMANDS: Final = {"read": "ls", "write": "date +%N > file"}
_WARM_UP: Final = 3
_IDLE_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class Measured:
    counts: dict[str, Counts]
    """Counts by scenario."""
    updates: Updates


@dataclass(frozen=True, slots=True)
class _Session:
    lean: MinimalClient
    counters: Counters
    id: str
    frames: Frames

    async def run_turn(self, script: str) -> None:
        await self.lean.send(self.id, f"Go. [[script:{script}]]")
        await self.frames.until_idle()

    async def run_approved_turn(self, script: str) -> None:
        await self.lean.send(self.id, f"Go. [[script:{script}]]")
        asked = await self.frames.until_idle()
        await self.counters.wait_until_idle(self.id)
        (call,) = (frame.body["id"] for frame in asked if frame.event == "agent.tool_use")
        allow = {"type": "user.tool_confirmation", "tool_use_id": call, "result": "allow"}
        await self.lean.post(f"/v1/sessions/{self.id}/events", {"events": [allow]})
        await self.frames.until_idle()

    async def fork(self) -> None:
        await self.lean.post(f"/v1/sessions/{self.id}/fork", {})


async def measure(repetitions: Callable[[str], Repetitions], *, all_scenarios: bool = True) -> Measured:
    """Repeats each scenario as often as `repetitions` returns for its name.

    Without `all_scenarios` Claude Code runs only text and write, because each start of its CLI takes seconds.
    """
    environment = {"PYTHONPATH": str(ROOT)}
    counts: dict[str, Counts] = {}
    async with (
        open_cluster(environment=environment, worker_module=pid_namespace.__name__) as cluster,
        open_counters(cluster) as counters,
        MinimalClient(cluster.base_urls[0], cluster.key) as lean,
    ):
        await cluster.model.install("text", replies(_DONE))
        for harness, bash in _BASH.items():
            for kind, command in _COMMANDS.items():
                called = replies([tool(bash, {"command": command})], _DONE)
                await cluster.model.install(f"{harness}-{kind}", called)
        for harness in _BASH:
            plain = _Scenarios(lean, counters, harness, [_TOOLS], repetitions)
            asking = _Scenarios(lean, counters, harness, [_TOOLS_WITH_APPROVAL], repetitions)
            few = harness == "claude" and not all_scenarios
            for kind in ("text", "write") if few else ("text", *_COMMANDS):
                script = "text" if kind == "text" else f"{harness}-{kind}"
                name = f"{harness}: {kind}"
                counts[name] = await plain.count(name, partial(_Session.run_turn, script=script))
            if not few:
                approved = partial(_Session.run_approved_turn, script=f"{harness}-read")
                name = f"{harness}: approval"
                counts[name] = await asking.count(name, approved)
        resting = _Scenarios(lean, counters, "native", [_TOOLS], repetitions)
        counts["fork"] = await resting.count("fork", _Session.fork)
        counts["idle"] = await resting.count("idle", lambda _: asyncio.sleep(_IDLE_SECONDS))
        return Measured(counts, await counters.updates())


@dataclass(frozen=True, slots=True)
class _Scenarios:
    lean: MinimalClient
    counters: Counters
    harness: str
    tools: list[JsonObject]
    repetitions: Callable[[str], Repetitions]

    async def count(self, name: str, work: Callable[[_Session], Awaitable[object]]) -> Counts:
        """Counts the work in a new session."""
        body = {"name": "counted", "model": MODEL, "tools": self.tools, "harness": self.harness}
        agent = await self.lean.post("/v1/agents", body)
        seat = {**await self.lean.create_session_fields(), "agent": agent["id"]}
        session_id = (await self.lean.post("/v1/sessions", seat))["id"]
        async with self.lean.stream(events_path(session_id)) as frames:
            session = _Session(self.lean, self.counters, session_id, frames)
            await session.run_turn("text")
            for _ in range(_WARM_UP):
                await work(session)
            return await self.counters.count(lambda: work(session), self.repetitions(name), session_id=session_id)
