"""A cluster for child sessions, with the clients and the database connections that the trials share."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import asyncpg
import orjson

from bench.prove.figure import require
from bench.support.clients import TOOLSET, Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.workflow_histories import WorkflowHistories
from footplate.client import AsyncFootplate
from footplate.client.steps import Step
from footplate.stack.orphan_processes import wait_until
from footplate.testing import ScriptedModel
from footplate.testing.model_scripts import Request

PATIENCE: Final = 900.0
_CLEANUP_SECONDS: Final = 30.0
_SETTINGS: Final = {
    "FOOTPLATE_LEASE": "8",
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "12",
    "FOOTPLATE_SWEEP_INTERVAL": "2",
    "FOOTPLATE_SLOTS": "0",
    # Commands write to a directory outside of their sessions, which shows how often each one ran.
    "FOOTPLATE_ENVIRONMENT": "unsandboxed",
    # One run of the parent's workflow, so that its history is complete.
    "FOOTPLATE_LINGER": "7200",
}


@dataclass(frozen=True, slots=True)
class ChildSite:
    cluster: Cluster
    model: ScriptedModel
    sdk: Client
    client: AsyncFootplate
    database: "asyncpg.Pool[asyncpg.Record]"
    histories: WorkflowHistories
    max_sessions: int
    """How many living descendants a session may have."""
    faults: list[str] = field(default_factory=list)

    @property
    def effects(self) -> Path:
        """Commands of children append a line to a file in this directory each time they run."""
        return self.cluster.directory / "effects"

    def check(self, *, holds: bool, otherwise: str) -> None:
        if not holds:
            print(f"  fault: {otherwise}", flush=True)
            self.faults.append(otherwise)

    async def new_session(self, *, max_iterations: int = 100, **toolset: bool) -> str:
        agent = await self.sdk.agent(
            tools=[{**TOOLSET, **toolset}],
            extra_body={
                "harness": "native",
                "permissions": {"allow": ["Bash"], "ask": ["Bash(touch *)"]},
                "limits": {"max_iterations": max_iterations},
            },
        )
        return await self.sdk.session(agent)

    async def add_steps(self, session_id: str, *steps: Mapping[str, Any]) -> Sequence[Step]:
        return await self.client.steps.add(session_id, steps)

    async def wait_for(self, step: Step) -> Step:
        found = step

        async def has_ended() -> bool:
            nonlocal found
            found = await self.client.steps.retrieve(step.session_id, step.id)
            return found.state not in {"pending", "running"}

        ended = await wait_until(has_ended, PATIENCE)
        require(holds=ended, otherwise=f"a {step.kind} step has not ended after {PATIENCE:.0f} s: {found}")
        return found

    async def list_descendants(self, session_id: str) -> Sequence[asyncpg.Record]:
        """Returns all sessions below one, as they are in the database."""
        return await self.database.fetch(
            "select s.id, g.depth, s.created_at, s.ended_at, s.end_outcome from sessions s "
            "join session_groups g on g.id = s.group_id where g.root_session_id = $1",
            session_id,
        )

    async def find_open_workflows(self, session_ids: Sequence[str]) -> Sequence[str]:
        """Returns the ended sessions whose workflows stay open."""
        remaining = [*session_ids]

        async def all_closed() -> bool:
            remaining[:] = [one for one in remaining if await self.histories.is_open(one)]
            return not remaining

        await wait_until(all_closed, _CLEANUP_SECONDS)
        return remaining

    async def find_new_processes(self, before: Mapping[int, str]) -> Mapping[int, str]:
        """Returns the processes of the cluster that have started since and do not end."""
        found: dict[int, str] = {}

        async def none_found() -> bool:
            nonlocal found
            found = {pid: command for pid, command in self.cluster.alive().items() if pid not in before}
            return not found

        await wait_until(none_found, _CLEANUP_SECONDS)
        return found


@asynccontextmanager
async def open_site(*, max_sessions: int) -> AsyncIterator[ChildSite]:
    async with ScriptedModel() as model:
        environment = {
            **_SETTINGS,
            "FOOTPLATE_CHILD_SESSIONS": str(max_sessions),
            "FOOTPLATE_ANTHROPIC_BASE_URL": model.url,
        }
        async with (
            open_cluster(apis=1, workers=2, environment=environment) as cluster,
            Client(cluster) as sdk,
            AsyncFootplate(cluster.base_urls[0], cluster.key) as client,
            asyncpg.create_pool(cluster.settings.database_url, min_size=1, max_size=4) as database,
        ):
            histories = await WorkflowHistories.connect(cluster)
            site = ChildSite(cluster, model, sdk, client, database, histories, max_sessions)
            site.effects.mkdir()
            yield site


def find_in_messages(request: Request, pattern: str) -> str:
    """Returns the last match in the conversation that the model was sent."""
    return str(re.findall(pattern, orjson.dumps(request.body["messages"]).decode())[-1])


def max_concurrent(spans: Sequence[tuple[float, float]]) -> int:
    """Returns how many of the spans overlap at most. One that begins when another ends does not overlap it."""
    changes = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    most = current = 0
    for _, change in changes:
        current += change
        most = max(most, current)
    return most
