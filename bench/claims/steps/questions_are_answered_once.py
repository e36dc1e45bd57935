"""Kill any process while questions wait for a person: each answer reaches the model once, also after ten days.

In each round, sessions of both harnesses ask questions, and a process is killed as in `gate-3`. Then sessions wait
while every process is stopped and ten days pass. Half of the questions are answered through their route and the others
as a client of the reference API does; some expire and get their default.
"""

import asyncio
import random
import secrets
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

import asyncpg

from bench.claims.core.kill_any_process import SETTINGS
from bench.claims.gate.kill_during_approval import KILL_TITLES, run_round
from bench.prove.figure import Figure
from bench.support import environment_backends
from bench.support.approvals.approval_case import ApprovalFindings, CaseContext
from bench.support.approvals.call_scenarios import QUESTION_SCENARIOS
from bench.support.approvals.process_kills import KillPoint, ProcessKiller, list_kill_points
from bench.support.approvals.question_case import QuestionCase, create_agents
from bench.support.approvals.ten_days import pass_ten_days
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from footplate.domain.json import Json

_SETTINGS: Final = {
    # Long enough that no turn is lost by load alone: only kills interrupt calls.
    "FOOTPLATE_LEASE": "5",
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "8",
    "FOOTPLATE_MAX_FAILURES": "1000",
    "FOOTPLATE_KEPT_SESSIONS": "0",
    "FOOTPLATE_SWEEP_INTERVAL": "1",
    "FOOTPLATE_RETENTION": "2d",
    "FOOTPLATE_RETENTION_TREES": "2d",
    "FOOTPLATE_RETENTION_DELETE": "5d",
}
_MIN_QUESTIONS: Final = 200
_EXPIRY_SECONDS: Final = 5 * 86_400
_NEVER: Final = KillPoint("never")
_QUICK: Final = (KillPoint("asking", "worker", "after_ask"), KillPoint("answering", "api", "before_answer"))


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    rng = random.Random(seed)
    kills = _QUICK if quick else list_kill_points()
    async with (
        environment_backends.backend_settings(environment_backends.default_backend()) as settings,
        open_cluster(apis=1, workers=2, environment={**SETTINGS, **_SETTINGS, **settings}) as cluster,
        Client(cluster, max_retries=40) as client,
    ):
        trial = _Trial(cluster, client, await create_agents(client), rng)
        await trial.run_rounds(kills)
        await trial.wait_ten_days(1 if quick else 5)
        return _figure(trial, len(kills), quick=quick)


class _Trial:
    def __init__(self, cluster: Cluster, client: Client, agents: dict[str, str], rng: random.Random) -> None:
        self._cluster = cluster
        self._client = client
        self._agents = agents
        self._rng = rng
        self.found = ApprovalFindings()
        self.killer = ProcessKiller(cluster, rng)

    async def run_rounds(self, kills: Sequence[KillPoint]) -> None:
        async with self._open_pool() as database:
            context = self._context(database)
            for number, kill in enumerate(kills):
                began = time.monotonic()
                cases = [
                    QuestionCase(context, scenario, kill, f"r{number}-{index}")
                    for index, scenario in enumerate(QUESTION_SCENARIOS)
                ]
                await run_round(self.killer, kill, cases, self.found)
                print(f"  {kill.title}: {time.monotonic() - began:.0f} s", flush=True)

    async def wait_ten_days(self, rounds: int) -> None:
        """Questions wait for ten days. Those that are asked last expire after five."""
        scenarios = [*enumerate(QUESTION_SCENARIOS * rounds)]
        async with self._open_pool() as database:
            context = self._context(database)
            waiting = [QuestionCase(context, scenario, _NEVER, f"waits-{number}") for number, scenario in scenarios]
            await asyncio.gather(*(case.request_approval() for case in waiting))
            policy = {"approvals": {"expires_after_seconds": _EXPIRY_SECONDS}}
            await self._client.sdk.post("/v1/policies", body=policy, cast_to=object)
            expired = [QuestionCase(context, scenario, _NEVER, f"expires-{number}") for number, scenario in scenarios]
            await asyncio.gather(*(case.request_approval() for case in expired))
            for case in expired:
                case.expect_default(await case.list_pending())
        await pass_ten_days(self._cluster)
        async with self._open_pool() as database:
            for case in [*waiting, *expired]:
                case.use_context(self._context(database))
            await asyncio.gather(*(case.wait_and_check(None) for case in expired))
            await asyncio.gather(*(case.send_decisions() for case in waiting))
            await asyncio.gather(*(case.wait_and_check(None) for case in waiting))

    def _open_pool(self) -> "AbstractAsyncContextManager[asyncpg.Pool[asyncpg.Record]]":
        return asyncpg.create_pool(self._cluster.settings.database_url, min_size=1, max_size=4)

    def _context(self, database: "asyncpg.Pool[asyncpg.Record]") -> CaseContext:
        return CaseContext(
            cluster=self._cluster,
            client=self._client,
            database=database,
            agents=self._agents,
            chance=self._rng,
            found=self.found,
        )


def _figure(trial: _Trial, rounds: int, *, quick: bool) -> Figure:
    found, count = trial.found, trial.found.count
    asked = found.approvals.total()
    kills = ", ".join(f"{trial.killer.count[name]} {title}" for name, title in KILL_TITLES.items())
    headline = f"{asked} questions under kills and after ten days: each answer reached the model once"
    by_harness = ", ".join(f"{number} `{name}`" for name, number in found.approvals.items())
    summary = (
        f"{asked} questions ({by_harness}) in {rounds} rounds with kills ({kills}) and after "
        f"ten days: {count['by a person']} answered by a person, "
        f"{count['by clock']} by their default; second, different answers, all refused: {count['conflicts refused']}"
    )
    faults = [*found.faults]
    if not quick and asked < _MIN_QUESTIONS:
        faults.append(f"{asked} questions, fewer than {_MIN_QUESTIONS}")
    if faults:
        headline = f"{asked} questions under kills and after ten days: {len(faults)} faults"
        summary = f"{len(faults)} faults, the first: {faults[0]}"
    details: dict[str, Json] = {
        "faults": [*faults],
        **count,
        "kills": {**trial.killer.count},
        "harnesses": {**found.approvals},
    }
    return Figure(headline=headline, summary=summary, holds=not faults, details=details)
