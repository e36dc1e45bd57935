"""Measures one system: time to first token, rate of one-call sessions, and state after a SIGKILL in a tool call.

Every system gets the same prompts, the same scripted model in Anthropic's wire format, and the same HTTP client.
"""

import asyncio
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from bench.compare.footplate import Footplate, FootplateProject
from bench.compare.langgraph import LangGraph
from bench.compare.opencode import OpenCode
from bench.compare.openhands import OpenHands
from bench.compare.peer import CallRecord, Peer
from bench.prove.figure import require
from bench.support.speed.measurement import median, milliseconds
from footplate.domain.json import JsonObject
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, reply, text

SYSTEMS: Final[tuple[type[Peer], ...]] = (Footplate, FootplateProject, OpenHands, OpenCode, LangGraph)
AT_ONCE: Final = 8
_ECHO: Final = "echo ran-$((40 + 2))"
_ECHOED: Final = b"ran-42"
"""Only a shell turns the command into this output, so a model request that contains it proves that the tool ran."""
_TOOL_SECONDS: Final = 300
_TOOL_STARTS_WITHIN: Final = 60.0
_KILL_AFTER: Final = 12.0
"""Seconds of the tool's run before the kill. `langgraph dev` writes its state to disk every 10 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured."""

    two_turn_sessions: int
    tool_sessions: int
    tool_ends_within: float
    """Seconds after the kill in which the tool's process is watched."""
    continues_within: float
    """Seconds after the restart in which the model is watched for the next request of the session."""

    @classmethod
    def of(cls, *, quick: bool) -> "Plan":
        if quick:
            return cls(two_turn_sessions=2, tool_sessions=8, tool_ends_within=5, continues_within=60)
        return cls(two_turn_sessions=20, tool_sessions=100, tool_ends_within=20, continues_within=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class KillResult:
    """The state of a tool call and its session after the SIGKILL."""

    tool_ended_after: float | None
    """Seconds after the kill; None if the process was still alive when the watch ended."""
    continued_after: float | None
    """Seconds from the start of the restart to the session's next model request; None if there was none."""
    ran_again: bool
    record: CallRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemResult:
    """All figures of one system."""

    name: str
    version: str
    first_token_ms: tuple[float, float]
    """The median of turn 1 and of turn 2."""
    sessions_per_second: float
    cpu_ms_per_session: float
    kill: KillResult

    def to_json(self) -> JsonObject:
        return {
            "version": self.version,
            "first_token_ms": list(self.first_token_ms),
            "sessions_per_second": round(self.sessions_per_second, 2),
            "cpu_ms_per_session": round(self.cpu_ms_per_session),
            "tool_ended_after_seconds": self.kill.tool_ended_after,
            "continued_after_seconds": self.kill.continued_after,
            "ran_again": self.kill.ran_again,
            "call_after_restart": self.kill.record.text,
        }


async def measure_system(kind: type[Peer], plan: Plan) -> SystemResult:
    system = kind()
    try:
        await system.install()
        await system.start()
        first_token = await _measure_first_tokens(system, plan.two_turn_sessions)
        print(f"{system.name} {system.version}: first token {first_token} ms", flush=True)
        rate, cpu = await _measure_tool_sessions(system, plan.tool_sessions)
        print(f"{system.name}: {rate:.2f} sessions/s, {cpu:.0f} ms of CPU each", flush=True)
        kill = await _measure_kill(system, plan)
        print(f"{system.name}: {kill}", flush=True)
        return SystemResult(
            name=system.name,
            version=system.version,
            first_token_ms=first_token,
            sessions_per_second=rate,
            cpu_ms_per_session=cpu,
            kill=kill,
        )
    finally:
        await system.aclose()


async def _measure_first_tokens(system: Peer, sessions: int) -> tuple[float, float]:
    await system.model.install("text", replies(reply(text("One two three four.", delay=0.02), repeat=True)))
    turns: list[tuple[float, float]] = []
    for _ in range(sessions + 1):
        session = await system.create_session()
        first = await system.run_turn(session, "Hello [[script:text]]")
        turns.append((first, await system.run_turn(session, "Hello again [[script:text]]")))
    new, again = zip(*turns[1:], strict=True)
    return milliseconds(median(new)), milliseconds(median(again))


async def _measure_tool_sessions(system: Peer, sessions: int) -> tuple[float, float]:
    """Returns sessions per second and the CPU milliseconds of each."""
    await system.model.install("echo", replies([system.call_shell(_ECHO)], reply(text("Done."), repeat=True)))

    async def run_sessions(count: int) -> None:
        numbers = iter(range(count))

        async def run_some() -> None:
            for _ in numbers:
                await system.run_turn(await system.create_session(), "Go [[script:echo]]")

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(run_some())

    await run_sessions(AT_ONCE)
    await system.model.clear()
    cpu, began = system.cpu_seconds(), time.monotonic()
    await run_sessions(sessions)
    seconds, cpu = time.monotonic() - began, system.cpu_seconds() - cpu
    after = [record for record in await system.model.requests("echo") if record["n"] == 1]
    ran = sum(_ECHOED in orjson.dumps(record["body"]) for record in after)
    require(holds=ran == sessions, otherwise=f"{system.name}: {ran} of {sessions} tool calls ran")
    return sessions / seconds, cpu / sessions * 1000


async def _measure_kill(system: Peer, plan: Plan) -> KillResult:
    seconds = f"{_TOOL_SECONDS}.{random.randrange(10**6):06}"
    call = system.call_shell(f"sleep {seconds}")
    await system.model.install("sleep", replies([call], reply(text("Noted."), repeat=True)))
    session = await system.create_session()
    await system.send_message(session, "Go [[script:sleep]]")
    before: set[int] = set()

    async def tool_runs() -> bool:
        before.update(_find_sleeps(seconds))
        return bool(before)

    async def tool_ended() -> bool:
        return not before & _find_sleeps(seconds)

    async def session_continues() -> bool:
        return any(record["n"] != 0 for record in await system.model.requests("sleep", bodies=False))

    require(holds=await wait_until(tool_runs, _TOOL_STARTS_WITHIN), otherwise=f"{system.name}: the tool did not start")
    await asyncio.sleep(_KILL_AFTER)
    killed = time.monotonic()
    await system.kill()
    ended = time.monotonic() - killed if await wait_until(tool_ended, plan.tool_ends_within) else None
    restarted = time.monotonic()
    await system.restart()
    continued = time.monotonic() - restarted if await wait_until(session_continues, plan.continues_within) else None
    return KillResult(
        tool_ended_after=ended,
        continued_after=continued,
        ran_again=bool(_find_sleeps(seconds) - before),
        record=await system.describe_call(session),
    )


def _find_sleeps(seconds: str) -> set[int]:
    """Returns the ids of the processes that run the tool's `sleep`, without the shell that started it."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if arguments[0].endswith(b"sleep") and seconds.encode() in arguments[1:]:
            found.add(int(path.parent.name))
    return found
