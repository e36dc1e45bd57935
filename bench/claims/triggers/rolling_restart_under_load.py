"""A rolling restart of four workers during turns, children and open terminals fails nothing and runs no tool twice.

In each round, sessions of both harnesses, and children of one more, run turns of slow tool calls, and people have open
terminals. While all turns are in the middle of a call, the workers are stopped with SIGTERM and started again, one
after the other. After each restart the people type again. A pause is how much longer than the call itself it took from
one result to the next, where a turn was handed over; for a terminal, it is the time without a prompt.
"""

import asyncio
import statistics
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg

from bench.prove.figure import Figure, require, time_limit
from bench.support.claude.percentiles import percentile
from bench.support.claude.scenarios import HARNESSES, tool_namer
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.restarts import slow_turns
from bench.support.terminal.viewer import Viewer, view_terminal
from footplate.client import AsyncFootplate
from footplate.client.steps import Step
from footplate.stack.orphan_processes import wait_until
from footplate.testing import ScriptedModel

_WORKERS: Final = 4
_MAX_PAUSE_P95: Final = 5.0
_SCRIPT: Final = "rolling-{}"
_CALL_SECONDS: Final = 2.0
_SHELL_SECONDS: Final = 3
_MAX_ITERATIONS: Final = 1000
_CHILDREN_AT_ONCE: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    rounds: int
    turns: dict[str, int]
    """By harness."""
    agents: int
    """Children that run an agent, in each round."""
    shells: int
    """Children that run a command, in each round."""
    terminals: int


_FULL: Final = Size(rounds=5, turns={"native": 20, "claude": 8}, agents=4, shells=12, terminals=4)
_QUICK: Final = Size(rounds=1, turns={"native": 3, "claude": 1}, agents=1, shells=2, terminals=1)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    size = _QUICK if quick else _FULL
    async with (
        ScriptedModel() as model,
        open_cluster(workers=_WORKERS, environment={"FOOTPLATE_ANTHROPIC_BASE_URL": model.url}) as cluster,
        Client(cluster) as client,
        AsyncFootplate(cluster.base_urls[0], cluster.key, patience=120) as people,
        asyncpg.create_pool(cluster.settings.database_url, min_size=1, max_size=4) as database,
    ):
        trial = _Trial(size, model, cluster, client, people, database)
        await trial.prepare()
        for number in range(size.rounds):
            await trial.run_round()
            print(f"  round {number + 1}: {trial.describe()}", flush=True)
    return trial.figure(quick=quick)


@dataclass(slots=True)
class _Trial:
    size: Size
    model: ScriptedModel
    cluster: Cluster
    client: Client
    people: AsyncFootplate
    database: "asyncpg.Pool[asyncpg.Record]"
    agents: dict[str, str] = field(default_factory=dict)
    summaries: list[dict[str, Any]] = field(default_factory=list)
    pauses: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in (*HARNESSES, "terminal")})
    usual: list[float] = field(default_factory=list)
    """What lies between the calls where no turn was handed over."""
    exits: list[float] = field(default_factory=list)
    children: Counter[str] = field(default_factory=Counter)
    """By outcome."""
    faults: list[str] = field(default_factory=list)

    async def prepare(self) -> None:
        for harness in HARNESSES:
            limits = {"max_iterations": _MAX_ITERATIONS}
            self.agents[harness] = await self.client.agent(extra_body={"harness": harness, "limits": limits})

    async def run_round(self) -> None:
        scripts = {name: slow_turns.EndlessScript(tool_namer(name)("bash"), _CALL_SECONDS) for name in HARNESSES}
        for harness, script in scripts.items():
            self.model.install(_SCRIPT.format(harness), script)
        sessions = [
            (harness, await self.client.session(self.agents[harness]))
            for harness, count in self.size.turns.items()
            for _ in range(count)
        ]
        async with AsyncExitStack() as exits:
            terminals = [await self._open_terminal(exits) for _ in range(self.size.terminals)]
            async with asyncio.TaskGroup() as group:
                for harness, session_id in sessions:
                    group.create_task(slow_turns.run_turn(self.client, session_id, _SCRIPT.format(harness)))
                step = await self._start_children()
                await slow_turns.wait_until_all_run_a_tool(self.client, [session_id for _, session_id in sessions])
                for index in range(_WORKERS):
                    self.exits.append(await slow_turns.restart_gracefully(self.cluster, index))
                    await asyncio.gather(*(_type_line(viewer, f"line-{index}") for viewer, _ in terminals))
                for script in scripts.values():
                    script.is_over = True
            for viewer, session_id in terminals:
                await self._close_terminal(viewer, session_id)
        for harness, session_id in sessions:
            await self._check_turn(harness, session_id)
        await self._check_children(step)

    async def _open_terminal(self, exits: AsyncExitStack) -> tuple[Viewer, str]:
        session_id = await self.client.session(await self.client.agent(extra_body={"harness": "shell"}))
        await self.people.terminals.open(session_id)
        viewer = await exits.enter_async_context(view_terminal(self.people, session_id, write=True))
        await viewer.shows(b"$ ")
        await _type_line(viewer, "line-start")
        return viewer, session_id

    async def _close_terminal(self, viewer: Viewer, session_id: str) -> None:
        """Every line that was typed must be in the file once, and the turn must end."""
        await viewer.connection.type_keys(b"echo li''nes $(sort typed | uniq -c); exit\r")
        await viewer.shows(b"[exit code 0]")
        lines = " ".join(f"1 line-{name}" for name in (*range(_WORKERS), "start"))
        if f"lines {lines}".encode() not in viewer.output:
            self.faults.append(f"a terminal lost what was typed: {bytes(viewer.output[-500:])!r}")
        self.pauses["terminal"] += [move.seconds for move in viewer.moves]
        (turn,) = await self._wait_for_turns(session_id)
        if turn["status"] != "completed":
            self.faults.append(f"the turn of a terminal is {turn['status']}")

    async def _start_children(self) -> Step:
        prompts = [{"prompt": f"Go. [[script:{_SCRIPT.format('native')}]]"} for _ in range(self.size.agents)]
        commands = [{"shell": f"echo ran >> ran; sleep {_SHELL_SECONDS}; cat ran"} for _ in range(self.size.shells)]
        parent_id = await self.client.session(self.agents["native"])
        definition = {"kind": "parallel", "sessions": [*prompts, *commands], "max_running": _CHILDREN_AT_ONCE}
        (step,) = await self.people.steps.add(parent_id, [definition])
        return step

    async def _check_turn(self, harness: str, session_id: str) -> None:
        (turn,) = await self.client.list_turns(session_id)
        summary = slow_turns.summarise_turn(await self.client.events(session_id), turn)
        self.summaries.append(summary)
        if summary["status"] != "completed" or summary["missing"] or summary["unknown"]:
            self.faults.append(f"a turn of {harness}: {summary}")
            return
        delays = sorted(await slow_turns.measure_delays(self.database, session_id, _CALL_SECONDS), reverse=True)
        handovers = summary["attempts"] - 1
        self.pauses[harness] += delays[:handovers]
        self.usual += delays[handovers:]

    async def _check_children(self, step: Step) -> None:
        ended = step

        async def has_ended() -> bool:
            nonlocal ended
            ended = await self.people.steps.retrieve(step.session_id, step.id)
            return ended.state not in {"pending", "running"}

        require(holds=await wait_until(has_ended, slow_turns.TIMEOUT_SECONDS), otherwise="children did not end in time")
        members = (ended.result.sessions if ended.result is not None else None) or []
        self.children.update(member["outcome"] for member in members)
        expected = self.size.agents + self.size.shells
        if ended.state != "completed" or len(members) != expected:
            self.faults.append(f"children: the step is {ended.state}, with {len(members)} of {expected} results")
        for member in members[: self.size.agents]:
            await self._check_turn("native", member["session_id"])
        for member in members[self.size.agents :]:
            if str(member["text"]).strip() != "ran":
                self.faults.append(f"a command of a child did not run once: {member}")

    async def _wait_for_turns(self, session_id: str) -> list[dict[str, Any]]:
        turns: list[dict[str, Any]] = []

        async def have_ended() -> bool:
            turns[:] = await self.client.list_turns(session_id)
            return all(turn["status"] not in {"pending", "running"} for turn in turns)

        await wait_until(have_ended, slow_turns.TIMEOUT_SECONDS)
        return turns

    def describe(self) -> str:
        return (
            f"{len(self.summaries)} turns, {len(self.faults)} faults, stopped in at most {max(self.exits):.1f} s, "
            + ", ".join(f"{name} {_describe_pauses(values)}" for name, values in self.pauses.items())
        )

    def figure(self, *, quick: bool) -> Figure:
        found, size = self.summaries, self.size
        failed = (
            sum(turn["status"] != "completed" for turn in found) + self.children.total() - self.children["completed"]
        )
        sums = {name: sum(turn[name] for turn in found) for name in slow_turns.COUNTS}
        handovers = sum(turn["attempts"] - 1 for turn in found)
        pauses = [pause for values in self.pauses.values() for pause in values]
        p95 = percentile(pauses, 95) if pauses else 0.0
        by_kind = "; ".join(f"{name}: {_describe_pauses(values)}" for name, values in self.pauses.items())
        calls = sum(turn["calls"] for turn in found)
        turns = ", ".join(f"{count} {harness}" for harness, count in size.turns.items())
        summary = (
            f"{size.rounds} rounds of restarting {_WORKERS} workers one after the other during {turns} turns, "
            f"{size.agents} child agents, {size.shells} child commands and {size.terminals} open terminals, each in "
            f"the middle of a call: {failed} failed; {handovers} handovers of {len(found)} turns and "
            f"{len(self.pauses['terminal'])} of terminals; of {calls} calls {sums['twice']} "
            f"ran twice, {sums['missing']} did not run, {sums['unknown']} have an unknown outcome; pauses in all: "
            f"{_describe_pauses(pauses)} ({by_kind}; limit of p95 {_MAX_PAUSE_P95:g} s); between calls without a "
            f"handover p50 {statistics.median(self.usual or [0.0]):.2f} s; a worker exited at most "
            f"{max(self.exits):.1f} s after SIGTERM"
        )
        if self.faults:
            summary = f"{len(self.faults)} faults, the first: {self.faults[0]}; {summary}"
        return Figure(
            headline=f"{handovers} handovers: {failed} turns failed, {sums['twice']} tools ran twice, "
            f"p95 pause {p95:.1f} s",
            summary=summary,
            holds=not self.faults
            and failed == 0
            and not any(sums.values())
            and handovers >= len(found)
            and p95 < time_limit(_MAX_PAUSE_P95, quick=quick),
            details={
                "faults": [*self.faults[:20]],
                "pauses": {name: [round(each, 2) for each in values] for name, values in self.pauses.items()},
                "seconds_to_stop": [round(each, 2) for each in self.exits],
            },
        )


async def _type_line(viewer: Viewer, line: str) -> None:
    await viewer.has_prompt()
    await viewer.connection.type_keys(f"echo {line} >> typed; echo ty''ped-{line}\r".encode())
    await viewer.shows(f"typed-{line}".encode())


def _describe_pauses(values: list[float]) -> str:
    if not values:
        return "none"
    p50, p95 = percentile(values, 50), percentile(values, 95)
    return f"{len(values)}, p50 {p50:.2f} s, p95 {p95:.2f} s, most {max(values):.2f} s"
