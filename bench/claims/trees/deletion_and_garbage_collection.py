"""Deleted sessions leave no trace in any store, and garbage collection keeps exactly the objects that others need.

There are sessions, forks and forks of forks, with projects and without. Half of them are deleted, including parents of
remaining forks. Some of the others are inactive: they are archived, and their host removes their files. Some wait for
an approval. Interrupted turns left packs and bodies that no session needs. gc runs beside a turn that writes, and is
killed once. Then the remaining objects are compared with those that the log refers to, every store is searched for the
text of deleted turns, and an empty host restores all remaining sessions.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import asyncpg

from bench.prove.figure import Figure, require
from bench.support import environment_backends
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.erasure.needed_objects import find_needed_objects, list_keys
from bench.support.erasure.session_workload import SessionWorkload, TrackedSession, new_token
from bench.support.erasure.token_search import TokensByStore, find_tokens
from bench.support.host_loss.trial import make_git_project
from bench.support.worker_hosts import create_worker_host, data_directory
from footplate.domain.files.snapshots import Snapshot
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool
from footplate.trees.snapshots.packs import SnapshotStep

_SETTINGS: Final = {
    "FOOTPLATE_LEASE": "30",
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "60",
    "FOOTPLATE_SLOTS": "0",
    "FOOTPLATE_SWEEP_INTERVAL": "2",
    "FOOTPLATE_RETENTION": "5d",
    "FOOTPLATE_RETENTION_TREES": "5d",
}
_TIMEOUT_SECONDS: Final = 300.0
_CALLS: Final = 6
_LONG_AGO: Final = 10 * 86_400


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    sessions, forks, lost = (3, 4, 2) if quick else (80, 117, 20)
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-"))
    try:
        await asyncio.to_thread(make_git_project, root)
        await asyncio.to_thread(make_git_project, root / "second")
        environment = {**_SETTINGS, "FOOTPLATE_PROJECTS_ROOT": str(root)}
        async with open_cluster(environment=environment) as cluster, Client(cluster) as client:
            first, second = [await _create_project(client, path) for path in ("app", "second/app")]
            return await _Trial(cluster, client, first).run(sessions, forks, lost, second)
    finally:
        await asyncio.to_thread(shutil.rmtree, root)


async def _create_project(client: Client, path: str) -> str:
    made: Any = await client.sdk.post(
        "/v1/projects", body={"path": path, "name": path.replace("/", "-")}, cast_to=dict[str, Any]
    )
    return str(made["id"])


class _Trial:
    def __init__(self, cluster: Cluster, client: Client, project_id: str) -> None:
        self._cluster = cluster
        self._client = client
        self._work = SessionWorkload(cluster, client, project_id, seed=9)
        self._objects = cluster.directory / "data" / "objects"
        self._orphan_markers: list[str] = []
        """Markers in the objects of interrupted turns."""

    async def run(self, sessions: int, forks: int, lost: int, other_project: str) -> Figure:
        work = self._work
        await work.create_sessions(sessions, forks)
        # The only session of this project: no other has its base.
        alone = await work.create_on_project(other_project)
        waiting = [await work.create_waiting() for _ in range(2)]
        made = [one for one in work.made if one not in waiting]
        await work.delete_session(alone)
        listed = await work.list_all_files([one for one in made if not one.deleted])
        rested = await self._delete_and_archive(made, waiting)
        living = [one for one in made if not one.deleted]
        await asyncio.to_thread(self._write_orphan_objects, living[:lost])
        for one in [*living, *waiting]:
            one.log = await self._client.events(one.id)
        before = await asyncio.to_thread(list_keys, self._objects)
        removed = await self._run_gc_beside_turn()
        remaining = await asyncio.to_thread(list_keys, self._objects)
        needed_keys = await find_needed_objects(self._cluster)
        deleted_markers = self._deleted_markers(made)
        found = await find_tokens(self._cluster, [self._cluster.directory / "data"])
        faults = [f"needed but removed: {key}" for key in sorted(needed_keys - remaining)]
        faults += [f"not needed but still there: {key}" for key in sorted(remaining - needed_keys)]
        faults += [
            f"{place} has {each} markers of the deleted"
            for place, each in _count_markers(found, deleted_markers).items()
            if each
        ]
        faults += _find_missed_markers(found, {each for one in living for each in (*one.inherited_tokens, *one.tokens)})
        faults += await self._restore_on_empty_host(living, waiting, listed)
        for fault in faults:
            print(f"  FAULT {fault}", flush=True)
        deleted_count, found_count = (
            len([one for one in made if one.deleted]),
            len(_all_markers(found) & deleted_markers),
        )
        traces = f"{deleted_count} of {len(work.made)} sessions deleted: {found_count} traces remain"
        return Figure(
            headline=f"{traces}, {len(faults)} faults" if faults else f"{traces}, all needed objects stay",
            summary=f"{len(work.made)} sessions and forks, {deleted_count} deleted, {rested} archived and "
            f"removed from their "
            f"host: gc removed {removed} of {len(before)} objects, beside a running turn and killed once, and kept the "
            f"{len(remaining)} that the log refers to; of {len(deleted_markers)} markers of deleted and "
            f"interrupted turns {found_count} are "
            "in a table, in Redis, in Temporal, in an object, in a pack or on the host; an empty host restored the "
            f"files of {len(living) + len(waiting)} remaining sessions; {len(faults)} faults"
            + (f", the first: {faults[0]}" if faults else ""),
            holds=not faults,
            details={
                "faults": [*faults[:100]],
                "removed": removed,
                "left": len(remaining),
                "words": len(deleted_markers),
            },
        )

    async def _delete_and_archive(self, made: list[TrackedSession], waiting: list[TrackedSession]) -> int:
        """Deletes half of the sessions; makes a third of the others, and those that wait, old.

        Returns how many were archived.
        """
        chosen = [one for one in self._work.random.sample(made, len(made) // 2) if not one.deleted]
        await asyncio.gather(*(self._work.delete_session(one) for one in chosen))
        living = [one for one in made if not one.deleted]
        await self._make_old([one.id for one in (*living[::3], *waiting)])
        connection = await asyncpg.connect(self._cluster.settings.database_url)
        try:
            # Deletions are checked a second time after an hour: pretend that it has passed.
            await connection.execute("update deletions set deleted_at = now() - interval '2 hours' where true")
            # Parents of forks are not archived.
            parents = {row["owner"] for row in await connection.fetch("select distinct owner from stretches")}
            resting = {one.id for one in living[::3]} - parents

            async def done() -> bool:
                noted = await connection.fetchval("select count(*) from deletions")
                rows = await connection.fetch("select session_id from archives where pruned")
                return noted == 0 and {row["session_id"] for row in rows} == resting

            require(holds=await wait_until(done, _TIMEOUT_SECONDS), otherwise="deletions or archives were not finished")
        finally:
            await connection.close()
        workspaces = self._cluster.directory / "data" / "workspaces" / "default"
        await self._cluster.restart_worker(0)

        async def released() -> bool:
            return not any((workspaces / session_id).exists() for session_id in resting)

        require(holds=await wait_until(released, _TIMEOUT_SECONDS), otherwise="a host did not remove the files")
        unreleased = [one.id for one in (*living, *waiting) if one.id not in resting]
        require(
            holds=all((workspaces / session_id).exists() for session_id in unreleased),
            otherwise="a host removed the files of a session that waits or is active",
        )
        return len(resting)

    async def _make_old(self, ids: list[str]) -> None:
        connection = await asyncpg.connect(self._cluster.settings.database_url)
        try:
            for statement in (
                "update events set created_at = created_at - interval '9 days' where session_id = any($1)",
                "update session_heads set claimed_at = claimed_at - interval '9 days' where session_id = any($1)",
            ):
                await connection.execute(statement, ids)
        finally:
            await connection.close()

    def _write_orphan_objects(self, living: list[TrackedSession]) -> None:
        """Writes objects as of workers that died between upload and commit, some in folders of deleted sessions."""
        for number, one in enumerate(living):
            folder = self._objects / "default" / (one.parent.id if one.parent and number % 2 else one.id)
            self._orphan_markers.append(new_token())
            folder.mkdir(exist_ok=True)
            (folder / f"body_{number}.json").write_text(json.dumps({"text": self._orphan_markers[-1]}))
            for found in sorted((self._objects / "default" / one.id).rglob("*.pack"))[-1:]:
                at = int(found.name.partition("-")[0])
                name = SnapshotStep(at, Snapshot(f"{number:040d}"), Snapshot(f"{number + 1:040d}")).part_name(0, 1)
                shutil.copyfile(found, found.with_name(name))

    async def _run_gc_beside_turn(self) -> int:
        """Runs gc beside a turn that writes, and kills it once; returns the number of removed objects."""
        calls = [[tool("bash", {"command": f"echo {n} > beside-{n}; sleep 0.3"})] for n in range(_CALLS)]
        await self._cluster.model.install("beside", replies(*calls, [text("Written.")]))
        beside = TrackedSession(await self._client.session())
        turn = asyncio.create_task(self._client.run_turn(beside.id, "[[script:beside]]", patience=_TIMEOUT_SECONDS))
        removed = len((await self._run_gc("--dry-run"))["objects"])
        (self._cluster.failpoints / "collecting_removed").write_text("kill")
        await self._run_gc(killed=True)
        while not turn.done():
            await self._run_gc()
        await turn
        await self._run_gc()
        self._work.made.append(beside)
        files = [line.split()[-1] for line in (await self._work.list_files(beside)).splitlines()[1:]]
        require(
            holds=files == [f"./beside-{n}" for n in range(_CALLS)], otherwise=f"beside gc, a turn has only {files}"
        )
        return removed

    async def _run_gc(self, *options: str, killed: bool = False) -> dict[str, Any]:
        """Runs `footplate gc` as an operator does, after making all objects old."""
        await asyncio.to_thread(_make_objects_old, self._objects)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "footplate", "gc", "--json", *options),
            env=self._cluster.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, errors = await process.communicate()
        if killed:
            require(holds=process.returncode == -9, otherwise=f"gc was not killed: {out.decode()}")
            return {}
        require(holds=process.returncode == 0, otherwise=f"gc failed: {errors.decode()}")
        output: dict[str, Any] = json.loads(out)
        return output

    def _deleted_markers(self, made: list[TrackedSession]) -> set[str]:
        known = {each for one in made if not one.deleted for each in (*one.inherited_tokens, *one.tokens)}
        return {*self._orphan_markers, *(each for one in made for each in one.tokens)} - known

    async def _restore_on_empty_host(
        self, living: list[TrackedSession], waiting: list[TrackedSession], listed: dict[str, str]
    ) -> list[str]:
        """Restores all remaining sessions on an empty host, from the object store only."""
        logs = {one.id: await self._client.events(one.id) for one in (*living, *waiting)}
        faults = [f"{one.id}: its log changed" for one in (*living, *waiting) if logs[one.id] != one.log]
        await self._cluster.workers[0].stop()
        await asyncio.to_thread(shutil.rmtree, self._cluster.directory / "data" / "workspaces")
        await asyncio.to_thread(shutil.rmtree, self._cluster.directory / "data" / "trees")
        other = create_worker_host(self._cluster, "other", environment_backends.default_backend())
        await other.start()
        try:
            found = await self._work.list_all_files(living)
            faults += [f"{id_}: {now!r} instead of {listed[id_]!r}" for id_, now in found.items() if now != listed[id_]]
            for one in waiting:
                received = await self._work.send_tool_result(one)
                tree = data_directory(self._cluster, "other") / "workspaces" / "default" / one.id
                if received[-1]["stop_reason"]["type"] != "end_turn" or not (tree / "grows").exists():
                    faults.append(f"{one.id}: it did not continue after the approval: {received[-1]}")
        finally:
            await other.stop()
        return faults


def _make_objects_old(objects: Path) -> None:
    then = time.time() - _LONG_AGO
    for path in objects.rglob("*"):
        if path.is_file():
            try:
                os.utime(path, (then, then))
            except FileNotFoundError:
                continue  # a temporary file of an upload that has finished


def _all_markers(found: TokensByStore) -> set[str]:
    return {each for markers in found.values() for each in markers}


def _count_markers(found: TokensByStore, deleted_markers: set[str]) -> dict[str, int]:
    return {place: len(markers & deleted_markers) for place, markers in found.items()}


def _find_missed_markers(found: TokensByStore, expected_markers: set[str]) -> list[str]:
    """Checks that the search finds the markers of remaining sessions; otherwise it would prove nothing."""
    return [
        f"{place} lacks {len(expected_markers - found[place])} of {len(expected_markers)} markers of remaining sessions"
        for place in ("packs",)
        if expected_markers - found[place]
    ] + (
        []
        if expected_markers <= found["PostgreSQL"] | found["objects"]
        else ["logs of remaining sessions lack their markers"]
    )
