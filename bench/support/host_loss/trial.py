"""Loses one host after another: starts sessions on it, kills it, deletes its disk, and continues on the next host.

The sessions start at different times, so the kill hits each of them at a different point of its turn.
"""

import asyncio
import random
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.support.clients import Client, Event
from bench.support.cluster import Cluster
from bench.support.host_loss import turn_script
from bench.support.worker_hosts import create_worker_host, data_directory, remove_disk

_PATIENCE: Final = 300.0


@dataclass(slots=True)
class HostLossFindings:
    interrupted_turns: int = 0
    restored_sessions: int = 0
    """Sessions that had completed calls on the lost host."""
    calls_before_loss: int = 0
    """Calls completed on the lost host."""
    faults: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Session:
    id: str
    received: list[Event] = field(default_factory=list)
    idle: bool = False


class HostLossTrials:
    def __init__(self, cluster: Cluster, client: Client, *, backend: str, objects: str, seed: int) -> None:
        self._cluster = cluster
        self._client = client
        self._backend = backend
        self._objects = objects
        self._random = random.Random(seed)
        self._number = 0
        self.findings = HostLossFindings()

    async def lose_host(self, sessions: int, *, kill_after: float) -> None:
        """Runs sessions on a host, kills it after `longest` seconds, and checks them on the next host.

        Half of the sessions use each harness, and half of those have a project.
        """
        names = [f"{self._number}-{place}" for place in ("lost", "next")]
        self._number += 1
        first, second = (create_worker_host(self._cluster, name, self._backend, self._objects) for name in names)
        created_sessions = await asyncio.gather(*(self._create_session(number) for number in range(sessions)))
        await first.start()
        # The sessions start one after another, so that the kill hits each at a different point of its turn.
        kill_at = asyncio.get_running_loop().time() + kill_after
        watching = [
            asyncio.create_task(self._watch(session, script, kill_at - self._random.uniform(0, kill_after)))
            for session, script in created_sessions
        ]
        await asyncio.sleep(kill_after)
        await first.kill()
        killed_at = datetime.now(UTC)
        done = {
            session.id: turn_script.completed_calls(session.received)
            for session, _ in created_sessions
            if not session.idle
        }
        await remove_disk(self._cluster, names[0])
        await second.start()
        try:
            async with asyncio.timeout(_PATIENCE):
                await asyncio.gather(*watching)
            for session, _ in created_sessions:
                if session.id in done:
                    await self._check_session(session, done[session.id], names[1], killed_at)
        finally:
            await second.stop()
            for task in watching:
                task.cancel()

    async def _create_session(self, number: int) -> tuple[_Session, str]:
        harness = [*turn_script.HARNESSES][number % 2]
        agent = await self._client.agent(extra_body={"harness": harness})
        fields: dict[str, Any] = {}
        if number // 2 % 2:
            project = await self._client.sdk.get("/v1/projects", cast_to=dict[str, Any])
            fields = {"extra_body": {"project_ids": [project["data"][0]["id"]]}}
        return _Session(await self._client.session(agent, **fields)), f"work-{harness}"

    async def _watch(self, session: _Session, script: str, starts_at: float) -> None:
        await asyncio.sleep(max(0, starts_at - asyncio.get_running_loop().time()))
        async with self._client.stream(session.id) as stream:
            await self._client.send_text(session.id, f"[[script:{script}]]")
            async with asyncio.timeout(_PATIENCE):
                async for event in stream:
                    session.received.append(event)
                    if event["type"] == "session.status_idle":
                        session.idle = True
                        return

    async def _check_session(self, session: _Session, before: list[int], host_name: str, killed_at: datetime) -> None:
        found = self.findings
        found.interrupted_turns += 1
        found.restored_sessions += bool(before)
        found.calls_before_loss += len(before)
        events = await self._client.events(session.id)
        done = turn_script.completed_calls(events)
        if errors := [event["error"]["message"] for event in events if event["type"] == "session.error"]:
            found.faults.append(f"{session.id} ({len(before)} calls before): {errors}")
        if not done:
            found.faults.append(f"{session.id}: no call was completed: {[event['type'] for event in events]}")
            return
        tree = data_directory(self._cluster, host_name) / "workspaces" / "default" / session.id
        unsure = turn_script.calls_allowed_after(events, killed_at) - {*done}
        faults = await asyncio.to_thread(turn_script.find_tree_faults, tree, done, unsure)
        if len(done) + len(unsure) < turn_script.CALLS - 1:
            faults.append(f"{turn_script.CALLS - len(done)} calls have no known outcome")
        if not set(before) <= set(done):
            faults.append(f"results that were seen are gone: {before} of {done}")
        found.faults += [f"{session.id} ({len(before)} calls before): {fault}" for fault in faults]


def make_git_project(root: Path) -> None:
    repository = root / "app"
    (repository / "of_project").mkdir(parents=True)
    for number in range(50):
        (repository / "of_project" / f"{number}").write_text(f"file {number}\n")
    identity = ("-c", "user.name=User", "-c", "user.email=user@example.com")
    for command in (("init", "-q", "-b", "main"), ("add", "-A"), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", *command], cwd=repository, check=True)
