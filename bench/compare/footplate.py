"""Footplate as one of the compared systems: an api, a worker, PostgreSQL, Redis and Temporal, with default settings."""

import asyncio
import shutil
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import httpx2

from bench.compare.peer import MODEL, REPOSITORY_FILES, TURN_TIMEOUT, CallRecord, call_bash, read_events
from bench.prove.figure import NotHeld
from bench.support import cluster_processes
from bench.support.cluster import Cluster, open_cluster
from bench.support.minimal_client import events_path, message
from bench.support.speed.process_cpu import cpu_seconds
from bench.support.speed.sample_repository import make_repository
from footplate import __version__
from footplate.testing.reply_steps import Tool
from footplate.testing.scripted_model_process import ModelProcess

_PROJECT: Final = "compared"


class Footplate:
    """Each session has a new, empty working tree."""

    name = "Footplate"
    version = __version__

    def __init__(self) -> None:
        self._exits = AsyncExitStack()
        self._cluster: Cluster | None = None
        self._client = httpx2.AsyncClient()
        self._session: dict[str, object] = {}

    @property
    def cluster(self) -> Cluster:
        assert self._cluster is not None
        return self._cluster

    @property
    def model(self) -> ModelProcess:
        return self.cluster.model

    def call_shell(self, command: str) -> Tool:
        return call_bash(command)

    async def install(self) -> None:
        """Does nothing: the measured Footplate is this checkout."""

    async def start(self) -> None:
        root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-"))
        self._exits.push_async_callback(asyncio.to_thread, shutil.rmtree, root)
        await asyncio.to_thread(make_repository, root / _PROJECT, REPOSITORY_FILES)
        opening = open_cluster(environment={"FOOTPLATE_PROJECTS_ROOT": str(root)})
        self._cluster = await self._exits.enter_async_context(opening)
        self._client = httpx2.AsyncClient(
            base_url=self.cluster.base_urls[0],
            headers={"authorization": f"Bearer {self.cluster.key}"},
            timeout=TURN_TIMEOUT,
            trust_env=False,
        )
        self._exits.push_async_callback(self._client.aclose)
        tools = [{"type": "agent_toolset_20260401"}]
        config = {"type": "cloud", "networking": {"type": "unrestricted"}}
        self._session = {
            "agent": (await self._post("/v1/agents", {"name": _PROJECT, "model": MODEL, "tools": tools}))["id"],
            "environment_id": (await self._post("/v1/environments", {"name": _PROJECT, "config": config}))["id"],
            **await self._select_project(),
        }

    async def _select_project(self) -> dict[str, object]:
        return {}

    async def aclose(self) -> None:
        await self._exits.aclose()

    async def create_session(self) -> str:
        return str((await self._post("/v1/sessions", self._session))["id"])

    async def run_turn(self, session: str, prompt: str) -> float:
        first: float | None = None
        async with (
            asyncio.timeout(TURN_TIMEOUT),
            self._client.stream("GET", events_path(session, deltas=True)) as response,
        ):
            sent = time.monotonic()
            await self.send_message(session, prompt)
            async for event, _ in read_events(response):
                if event in {"event_delta", "agent.message"} and first is None:
                    first = time.monotonic() - sent
                if event == "session.error":
                    raise NotHeld("Footplate: the turn failed")
                if event == "session.status_idle":
                    break
        if first is None:
            raise NotHeld("Footplate: a turn without text")
        return first

    async def send_message(self, session: str, prompt: str) -> None:
        await self._post(f"/v1/sessions/{session}/events", {"events": [message(prompt)]})

    async def kill(self) -> None:
        """Kills the api and the worker. The three stores keep running, as they would on other machines."""
        await asyncio.gather(self.cluster.kill_worker(0), self.cluster.kill_api(0))

    async def restart(self) -> None:
        await asyncio.gather(self.cluster.restart_worker(0), self.cluster.restart_api(0))

    async def describe_call(self, session: str) -> CallRecord:
        response = await self._client.get(f"/v1/sessions/{session}/events", params={"limit": 100})
        response.raise_for_status()
        events: list[dict[str, Any]] = response.json()["data"]
        results = [event for event in events if event["type"] == "agent.tool_result"]
        if results:
            text = results[-1]["content"][0]["text"].partition(":")[0].partition(". ")[0]
            return CallRecord("settled", f"“{text}”")
        calls = [event for event in events if event["type"] == "agent.tool_use"]
        return CallRecord("open", "a call without a result") if calls else CallRecord("lost", "the call is gone")

    def cpu_seconds(self) -> float:
        """Returns the CPU time of its own processes and of the three stores."""
        directories = (self.cluster.directory, self.cluster.stack.directory)
        return cpu_seconds(
            {
                pid
                for directory in directories
                for pid in cluster_processes.find_cluster_processes(self.cluster.id, directory)
            }
        )

    async def _post(self, path: str, body: dict[str, object]) -> Any:
        response = await self._client.post(path, json=body)
        response.raise_for_status()
        return response.json()


class FootplateProject(Footplate):
    """Each session has a working tree of its own, checked out from a repository. No peer does this."""

    name = "Footplate, project checkout"

    async def _select_project(self) -> dict[str, object]:
        return {"project_ids": [(await self._post("/v1/projects", {"path": _PROJECT}))["id"]]}
