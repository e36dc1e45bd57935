"""Kill any process while calls wait for approval: an allowed call runs at most once, a denied one never.

In each round, sessions of both harnesses request approval for calls of every kind at the same time, and a process is
killed: while they ask, while they wait, during the decision, or at a failpoint after it. The effects of the calls are
checked.
"""

import asyncio
import random
import secrets
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

import asyncpg

from bench.claims.core.kill_any_process import SETTINGS
from bench.prove.figure import Figure
from bench.support import environment_backends
from bench.support.approvals import call_scenarios
from bench.support.approvals.approval_case import ApprovalCase, ApprovalFindings, CaseContext
from bench.support.approvals.call_scenarios import SCENARIOS, CallScenario
from bench.support.approvals.process_kills import KillPoint, ProcessKiller, list_kill_points
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.mcp_server.server_process import McpProcess
from footplate.domain.json import Json

_SETTINGS: Final = {
    # Long enough that no turn is lost by load alone: only kills interrupt calls.
    "FOOTPLATE_LEASE": "5",
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "8",
    "FOOTPLATE_MAX_FAILURES": "1000",
    "FOOTPLATE_KEPT_SESSIONS": "0",
    "FOOTPLATE_MCP_ALLOW": "127.0.0.1",
    "FOOTPLATE_SUBAGENT_HOLD": "600",
}
_MIN_APPROVALS: Final = 300
_QUICK: Final = (
    (
        KillPoint("after", "worker", "after_intent"),
        (CallScenario("native", "parallel"), CallScenario("claude", "single")),
    ),
    (
        KillPoint("waiting", "api"),
        (CallScenario("native", "mcp"), CallScenario("claude", "reads"), CallScenario("claude", "subagent")),
    ),
)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    rng = random.Random(seed)
    plan = [*_QUICK] if quick else [(moment, SCENARIOS) for moment in list_kill_points()]
    found = ApprovalFindings()
    async with (
        environment_backends.backend_settings(environment_backends.default_backend()) as settings,
        open_cluster(apis=1, workers=2, environment={**SETTINGS, **_SETTINGS, **settings}) as cluster,
        Client(cluster, max_retries=40) as client,
        McpProcess(cluster.directory / "notes") as notes,
        asyncpg.create_pool(cluster.settings.database_url, min_size=1, max_size=4) as database,
    ):
        agents = await call_scenarios.create_agents(client, notes)
        scene = CaseContext(
            cluster=cluster,
            client=client,
            database=database,
            notes=notes,
            agents=agents,
            chance=rng,
            found=found,
        )
        fire = ProcessKiller(cluster, rng)
        for number, (moment, kinds) in enumerate(plan):
            began = time.monotonic()
            cases = [ApprovalCase(scene, shape, moment, f"r{number}-{index}") for index, shape in enumerate(kinds)]
            await run_round(fire, moment, cases, found)
            print(f"  {moment.title}: {time.monotonic() - began:.0f} s", flush=True)
    return _figure(found, fire, len(plan), quick=quick)


async def run_round(
    fire: ProcessKiller, moment: KillPoint, cases: Sequence[ApprovalCase], found: ApprovalFindings
) -> None:
    async with AsyncExitStack() as exits, asyncio.TaskGroup() as group:
        kill_task: asyncio.Task[bool] | None = None

        def start_kill() -> asyncio.Task[bool]:
            return group.create_task(
                fire.kill_at(moment, lambda: [case.session_id for case in cases if case.session_id])
            )

        if moment.when == "asking":
            kill_task = start_kill()
        await asyncio.gather(*(case.request_approval() for case in cases))
        if moment.when == "waiting":
            kill_task = start_kill()
        if kill_task is not None:
            await kill_task
        pipes = [await case.open_pipe(exits) for case in cases]
        if moment.when in {"answering", "after"}:
            kill_task = start_kill()
            await asyncio.sleep(0)  # so that it is armed before the decisions
        await asyncio.gather(*(case.send_decisions() for case in cases))
        await asyncio.gather(*(case.wait_and_check(pipe) for case, pipe in zip(cases, pipes, strict=True)))
        if kill_task is not None and not await kill_task:
            found.faults.append(f"{moment.title}: the failpoint was never reached")


def _figure(found: ApprovalFindings, fire: ProcessKiller, rounds: int, *, quick: bool) -> Figure:
    count, asks = found.count, found.approvals.total()
    kills = ", ".join(f"{fire.count[name]} {title}" for name, title in KILL_TITLES.items())
    headline = f"{asks} approvals under kills: no call ran twice, none of {count['deny']} denied ran"
    summary = (
        f"{asks} approvals ({', '.join(f'{number} `{name}`' for name, number in found.approvals.items())}) in {rounds} "
        f"rounds, killed meanwhile: {kills}; {count['allow']} allowed calls, each ran once except {count['unknown']} "
        f"that were interrupted, have an unknown outcome and ran at most once; {count['deny']} denied, none ran; "
        f"decisions after the end of their subagent: {count['too late']}; second, different decisions, all refused: "
        f"{count['conflicts refused']}; every session continued"
    )
    faults = [*found.faults]
    if not quick and asks < _MIN_APPROVALS:
        faults.append(f"{asks} approvals, fewer than {_MIN_APPROVALS}")
    if faults:
        headline = f"{asks} approvals under kills: {len(faults)} faults"
        summary = f"{len(faults)} faults, the first: {faults[0]}"
    details: dict[str, Json] = {"faults": [*faults], **count, "kills": {**fire.count}, "harnesses": {**found.approvals}}
    return Figure(headline=headline, summary=summary, holds=not faults, details=details)


KILL_TITLES: Final = {
    "worker": "workers",
    "api": "API processes",
    "harness": "harness processes",
    "temporal": "Temporal servers restarted",
}
