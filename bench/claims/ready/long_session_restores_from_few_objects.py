"""A session of 1,000 writing calls is restored on a new host about as fast as one of 10 calls, from few objects.

Both sessions change files of a project. While the long one runs, its worker is killed again and again as it merges
packs in the object store. Then both sessions are restored on hosts that have nothing, and earlier snapshots of the long
one too, after a garbage collection without a grace period.
"""

import asyncio
import math
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.prove.figure import Figure, require, time_limit
from bench.support.changes.session_trees import ORGANISATION, make_checkout_target
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.host_loss.trial import make_git_project
from footplate.domain.files.snapshots import SessionFiles, StoredSnapshot
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.projects.project import BaseCommit, SessionProject
from footplate.failpoints import PACK_POINTS
from footplate.stack.orphan_processes import wait_until
from footplate.store.database import Database
from footplate.store.log.files.file_snapshots import load_files_at, load_snapshot
from footplate.store.object_store import Objects
from footplate.store.retention.object_gc import ObjectGarbageCollector
from footplate.testing import replies, text, tool
from footplate.trees.checkout import host_git_dir_path, private_dir_path
from footplate.trees.projects.mirrors import Mirrors
from footplate.trees.session_trees import SessionTrees
from footplate.trees.snapshots import full_snapshot
from footplate.trees.snapshots.upload import SnapshotUploader

_CALLS_PER_TURN: Final = 10
_TURNS, _TURNS_QUICK = 100, 2
_KILLS, _KILLS_QUICK = 20, 2
_RESTORES, _RESTORES_QUICK = 9, 2
_EARLIER, _EARLIER_QUICK = 25, 3
_MAX_RATIO: Final = 1.5
_MAX_MORE_OBJECTS: Final = 8
_CHANGE: Final = "head -c 300 /dev/urandom | base64 > of_project/$((RANDOM % 100))"
_PATIENCE: Final = 120.0
_SETTINGS: Final = {
    "FOOTPLATE_LEASE": "4",
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "6",
    "FOOTPLATE_MAX_ATTEMPTS": "100",
    "FOOTPLATE_MAX_FAILURES": "100",
}


class _CountingObjects(Objects):
    reads = 0

    async def read_chunks(self, key: str) -> AsyncIterator[bytes]:
        self.reads += 1
        async for piece in super().read_chunks(key):
            yield piece


@dataclass(frozen=True, slots=True)
class _Restored:
    seconds: float
    objects: int
    tree: str
    """The id of the git tree of the restored files."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-"))
    try:
        await asyncio.to_thread(make_git_project, root)
        async with (
            open_cluster(environment={**_SETTINGS, "FOOTPLATE_PROJECTS_ROOT": str(root)}) as cluster,
            Client(cluster, max_retries=40) as client,
        ):
            calls = [[tool("bash", {"command": _CHANGE})] for _ in range(_CALLS_PER_TURN)]
            await cluster.model.install("change", replies(*calls, [text("Changed.")]))
            database = await Database.open(cluster.settings.database_url, size=2)
            try:
                return await _Trial(cluster, client, database, root).run(quick=quick)
            finally:
                await database.close()
    finally:
        await asyncio.to_thread(shutil.rmtree, root)


class _Trial:
    def __init__(self, cluster: Cluster, client: Client, database: Database, root: Path) -> None:
        self._cluster = cluster
        self._client = client
        self._database = database
        self._root = root
        self._project_id = ""
        self._hosts = 0

    async def run(self, *, quick: bool) -> Figure:
        turns, kills, restores, earlier = (
            (_TURNS_QUICK, _KILLS_QUICK, _RESTORES_QUICK, _EARLIER_QUICK)
            if quick
            else (_TURNS, _KILLS, _RESTORES, _EARLIER)
        )
        project: Any = await self._client.sdk.post("/v1/projects", body={"path": "app"}, cast_to=dict[str, Any])
        self._project_id = project["id"]
        agent = await self._client.agent()
        short, long = [
            await self._client.session(agent, extra_body={"project_ids": [self._project_id]}) for _ in range(2)
        ]
        await self._run_turn(short)
        for turn in range(turns):
            killed = turn * kills // turns != (turn + 1) * kills // turns
            await (
                self._run_killed_turn(long, PACK_POINTS[turn * kills // turns % 2]) if killed else self._run_turn(long)
            )
        history = await self._load_history(long)
        await self._wait_until_merged(long, history[-1])
        await self._cluster.kill_worker(0)
        # Alternating, so that other work on the machine affects both alike.
        found = [(await self._restore(short), await self._restore(long)) for _ in range(restores)]
        collected = [verdict async for verdict in self._collector.collect(remove=True)]
        step = max(1, len(history) // earlier)
        faults = [f for stored in [*history[::step], history[-1]] if (f := await self._check(long, stored))]
        for fault in faults:
            print(f"  FAULT {fault}", flush=True)
        short_objects, long_objects = (max(pair[side].objects for pair in found) for side in (0, 1))
        short_seconds, long_seconds = (median(pair[side].seconds for pair in found) for side in (0, 1))
        ratio = long_seconds / short_seconds
        more = long_objects - short_objects
        return Figure(
            headline=f"{len(history)} snapshots: {ratio:.2f} times as long, {more:+d} objects, {kills} kills, "
            f"{len(faults)} faults",
            summary=f"a session of {turns * _CALLS_PER_TURN} writing calls was restored on a host that has nothing in "
            f"{long_seconds * 1000:.0f} ms from {long_objects} objects, one of {_CALLS_PER_TURN} calls in "
            f"{short_seconds * 1000:.0f} ms from {short_objects} (limits: {_MAX_RATIO} times the time, "
            f"{_MAX_MORE_OBJECTS} more objects); the worker was killed {kills} times while it merged packs; garbage "
            f"collection then removed {sum(each.reason.is_deletable for each in collected)} of {len(collected)} "
            f"objects; {len(faults)} of {len(history[::step]) + 1} snapshots differed from the log",
            holds=ratio <= time_limit(_MAX_RATIO, quick=quick) and more <= _MAX_MORE_OBJECTS and not faults,
            details={
                "seconds": [[pair[0].seconds, pair[1].seconds] for pair in found],
                "objects": [short_objects, long_objects],
                "snapshots": len(history),
                "faults": [*faults],
            },
        )

    @property
    def _objects(self) -> _CountingObjects:
        objects = _CountingObjects.open(None, self._cluster.directory / "data")
        assert isinstance(objects, _CountingObjects)
        return objects

    @property
    def _collector(self) -> ObjectGarbageCollector:
        return ObjectGarbageCollector(self._database, self._objects, timedelta(0))

    async def _run_turn(self, session_id: str) -> None:
        await self._client.run_turn(session_id, "Go on. [[script:change]]", patience=_PATIENCE)

    async def _run_killed_turn(self, session_id: str, point: str) -> None:
        """Runs a turn whose worker is killed when it reaches the failpoint, and starts the worker again."""
        armed, hit = (self._cluster.failpoints / name for name in (point, f"{point}.hit"))
        hit.unlink(missing_ok=True)
        armed.write_text("kill")
        turn = asyncio.create_task(self._run_turn(session_id))
        try:
            require(
                holds=await wait_until(lambda: asyncio.to_thread(hit.exists), _PATIENCE),
                otherwise=f"no worker reached {point}",
            )
            await self._cluster.restart_worker(0)
            await turn
        finally:
            turn.cancel()

    async def _load_history(self, session_id: str) -> list[StoredSnapshot]:
        async with self._database.connection() as connection:
            rows = await connection.fetch(
                "select number, files, apart, commits, bundles, base from snapshots where session_id = $1 order by seq",
                session_id,
            )
        return [StoredSnapshot(row["number"], load_snapshot(row), row["base"]) for row in rows]

    async def _wait_until_merged(self, session_id: str, newest: StoredSnapshot) -> None:
        """Waits while the worker may still be merging. It is not an error if the chain stays long: it is counted."""

        async def merged() -> bool:
            return (await self._restore(session_id, newest)).objects <= _MAX_MORE_OBJECTS

        await wait_until(merged, 10.0)

    async def _restore(self, session_id: str, stored: StoredSnapshot | None = None) -> _Restored:
        """Restores a session on a host that has nothing: a snapshot of it, or the newest one."""
        self._hosts += 1
        data = self._cluster.directory / f"host-{self._hosts}"
        async with self._database.connection() as connection:
            row = await connection.fetchrow("select bases from sessions where id = $1", session_id)
            files = await load_files_at(connection, session_id, [self._project_id])
        assert row is not None
        if stored is not None:
            files = SessionFiles({self._project_id: stored}, files.ancestors)
        base = BaseCommit.load(row["bases"][self._project_id])
        project = SessionProject(id=self._project_id, name="app", path="app", base=base)
        objects, target = self._objects, make_checkout_target(data / "tree")
        mirrors = Mirrors(data, root=str(self._root), address_policy=AddressPolicy(), seconds=_PATIENCE)
        trees = SessionTrees(data, mirrors, SnapshotUploader(objects), seconds=_PATIENCE)
        await asyncio.to_thread(target.tree.mkdir, parents=True)
        try:
            began = time.perf_counter()
            await trees.check_out(ORGANISATION, session_id, [project], target, files, deadline=math.inf)
            seconds = time.perf_counter() - began
            private_dir = private_dir_path(data, ORGANISATION, session_id)
            git_dir = host_git_dir_path(private_dir, self._project_id, is_additional=False)
            taken = await full_snapshot.take_snapshot(git_dir, target.tree, base=base.tree if base else None)
        finally:
            await asyncio.to_thread(shutil.rmtree, data)
        return _Restored(seconds, objects.reads, taken.snapshot.tree)

    async def _check(self, session_id: str, stored: StoredSnapshot) -> str | None:
        """Restores a snapshot, and returns how its files differ from the log."""
        restored = await self._restore(session_id, stored)
        if restored.tree != stored.snapshot.tree:
            return f"snapshot {stored.number}: restored {restored.tree}, not {stored.snapshot.tree}"
        if restored.objects > _MAX_MORE_OBJECTS + _CALLS_PER_TURN:
            return f"snapshot {stored.number}: needs {restored.objects} objects"
        return None
