"""Deletion and gc leave what the living need, all of it and nothing else; of the deleted nothing is left in any store.

Sessions and forks, of forks too, with projects and without; half of them are deleted, parents of living forks among
them, and some of the others have not been touched for long: they are archived, and their host lets go of their files.
Some wait for a person. Cut-off turns have left packs and bodies that nobody needs. gc runs beside a turn that writes,
and is killed in between. Then every object that is left is held against what the log leads to, every word of a deleted
turn is looked for in every store, and a host that has nothing restores all that live.
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
from bench.support import backends
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.erasure.needed import keys_of, needed
from bench.support.erasure.searching import Found, words_in
from bench.support.erasure.work import Made, Work, word
from bench.support.host_loss.trial import make_project
from bench.support.hosts import data_of, host
from footplate.domain.snapshots import Snapshot
from footplate.stack.leftovers import wait_until
from footplate.testing import replies, text, tool
from footplate.trees.packs import Step

_SETTINGS: Final = {
    "FOOTPLATE_LEASE": "30",
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "60",
    "FOOTPLATE_SLOTS": "0",
    "FOOTPLATE_SWEEP_INTERVAL": "2",
    "FOOTPLATE_RETENTION": "5d",
    "FOOTPLATE_RETENTION_TREES": "5d",
}
_PATIENCE: Final = 300.0
_CALLS: Final = 6
_LONG_AGO: Final = 10 * 86_400


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    sessions, forks, lost = (3, 4, 2) if quick else (80, 117, 20)
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-"))
    try:
        await asyncio.to_thread(make_project, root)
        await asyncio.to_thread(make_project, root / "second")
        environment = {**_SETTINGS, "FOOTPLATE_PROJECTS_ROOT": str(root)}
        async with open_cluster(environment=environment) as cluster, Client(cluster) as client:
            first, second = [await _project(client, path) for path in ("app", "second/app")]
            return await _Trial(cluster, client, first).run(sessions, forks, lost, second)
    finally:
        await asyncio.to_thread(shutil.rmtree, root)


async def _project(client: Client, path: str) -> str:
    made: Any = await client.sdk.post(
        "/v1/projects", body={"path": path, "name": path.replace("/", "-")}, cast_to=dict[str, Any]
    )
    return str(made["id"])


class _Trial:
    def __init__(self, cluster: Cluster, client: Client, project_id: str) -> None:
        self._cluster = cluster
        self._client = client
        self._work = Work(cluster, client, project_id, seed=9)
        self._objects = cluster.directory / "data" / "objects"
        self._lost: list[str] = []
        """Words that cut-off turns left."""

    async def run(self, sessions: int, forks: int, lost: int, other_project: str) -> Figure:
        work = self._work
        await work.begin(sessions, forks)
        # Nobody else begins with what this one begins with.
        alone = await work.on(other_project)
        waiting = [await work.ask() for _ in range(2)]
        made = [one for one in work.made if one not in waiting]
        await work.delete(alone)
        listed = await work.look_at_all([one for one in made if not one.deleted])
        rested = await self._delete_and_rest(made, waiting)
        living = [one for one in made if not one.deleted]
        await asyncio.to_thread(self._leave, living[:lost])
        for one in [*living, *waiting]:
            one.log = await self._client.events(one.id)
        before = await asyncio.to_thread(keys_of, self._objects)
        removed = await self._collect()
        left = await asyncio.to_thread(keys_of, self._objects)
        wanted = await needed(self._cluster)
        dead = self._dead(made)
        found = await words_in(self._cluster, [self._cluster.directory / "data"])
        faults = [f"needed, and gone: {key}" for key in sorted(wanted - left)]
        faults += [f"left, and not needed: {key}" for key in sorted(left - wanted)]
        faults += [f"{place} has {each} of the deleted" for place, each in _left(found, dead).items() if each]
        faults += _unseen(found, {each for one in living for each in (*one.inherited, *one.words)})
        faults += await self._restored(living, waiting, listed)
        for fault in faults:
            print(f"  FAULT {fault}", flush=True)
        gone, seen = len([one for one in made if one.deleted]), len(_all(found) & dead)
        return Figure(
            text=f"{len(work.made)} sessions and forks, {gone} deleted, {rested} archived and released by their host: "
            f"gc removed {removed} of {len(before)} objects, beside a turn and killed once, and left the {len(left)} "
            f"that the log leads to; of {len(dead)} words of deleted and cut-off turns {seen} are in "
            "a table, in Redis, in Temporal, in an object, in a pack or on the host; a host that had nothing restored "
            f"the files of {len(living) + len(waiting)} living sessions; {len(faults)} faults",
            holds=not faults,
            details={"faults": [*faults[:100]], "removed": removed, "left": len(left), "words": len(dead)},
        )

    async def _delete_and_rest(self, made: list[Made], waiting: list[Made]) -> int:
        """Half goes; of the others a third, and those that wait, have not been touched for long. How many rest now."""
        chosen = [one for one in self._work.random.sample(made, len(made) // 2) if not one.deleted]
        await asyncio.gather(*(self._work.delete(one) for one in chosen))
        living = [one for one in made if not one.deleted]
        await self._grow_old([one.id for one in (*living[::3], *waiting)])
        connection = await asyncpg.connect(self._cluster.settings.database_url)
        try:
            # The second look at what was deleted is an hour later, which has passed.
            await connection.execute("update deletions set deleted_at = now() - interval '2 hours' where true")
            # Those that forks begin in do not rest.
            parents = {row["owner"] for row in await connection.fetch("select distinct owner from stretches")}
            resting = {one.id for one in living[::3]} - parents

            async def done() -> bool:
                noted = await connection.fetchval("select count(*) from deletions")
                rows = await connection.fetch("select session_id from archives where pruned")
                return noted == 0 and {row["session_id"] for row in rows} == resting

            require(holds=await wait_until(done, _PATIENCE), otherwise="deletions or archives were not finished")
        finally:
            await connection.close()
        workspaces = self._cluster.directory / "data" / "workspaces" / "default"
        await self._cluster.restart_worker(0)

        async def released() -> bool:
            return not any((workspaces / session_id).exists() for session_id in resting)

        require(holds=await wait_until(released, _PATIENCE), otherwise="a host did not let go of the files")
        kept = [one.id for one in (*living, *waiting) if one.id not in resting]
        require(
            holds=all((workspaces / session_id).exists() for session_id in kept),
            otherwise="a host let go of files of a session that waits, or was touched",
        )
        return len(resting)

    async def _grow_old(self, ids: list[str]) -> None:
        connection = await asyncpg.connect(self._cluster.settings.database_url)
        try:
            for statement in (
                "update events set created_at = created_at - interval '9 days' where session_id = any($1)",
                "update session_heads set claimed_at = claimed_at - interval '9 days' where session_id = any($1)",
            ):
                await connection.execute(statement, ids)
        finally:
            await connection.close()

    def _leave(self, living: list[Made]) -> None:
        """What workers leave that were cut off between upload and commit; some of it in folders of the deleted."""
        for number, one in enumerate(living):
            folder = self._objects / "default" / (one.parent.id if one.parent and number % 2 else one.id)
            self._lost.append(word())
            folder.mkdir(exist_ok=True)
            (folder / f"body_{number}.json").write_text(json.dumps({"text": self._lost[-1]}))
            for found in sorted((self._objects / "default" / one.id).rglob("*.pack"))[-1:]:
                at = int(found.name.partition("-")[0])
                name = Step(at, Snapshot(f"{number:040d}"), Snapshot(f"{number + 1:040d}")).name(0, 1)
                shutil.copyfile(found, found.with_name(name))

    async def _collect(self) -> int:
        """Beside a turn that writes, and killed once; how many objects went."""
        calls = [[tool("bash", {"command": f"echo {n} > beside-{n}; sleep 0.3"})] for n in range(_CALLS)]
        await self._cluster.model.install("beside", replies(*calls, [text("Written.")]))
        beside = Made(await self._client.session())
        turn = asyncio.create_task(self._client.run_turn(beside.id, "[[script:beside]]", patience=_PATIENCE))
        told = len((await self._gc("--dry-run"))["objects"])
        (self._cluster.failpoints / "collecting_removed").write_text("kill")
        await self._gc(killed=True)
        while not turn.done():
            await self._gc()
        await turn
        await self._gc()
        self._work.made.append(beside)
        files = [line.split()[-1] for line in (await self._work.look(beside)).splitlines()[1:]]
        require(
            holds=files == [f"./beside-{n}" for n in range(_CALLS)], otherwise=f"beside gc a turn left only {files}"
        )
        return told

    async def _gc(self, *options: str, killed: bool = False) -> dict[str, Any]:
        """As an operator does it, when all that is there was written long ago."""
        await asyncio.to_thread(_age, self._objects)
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
        answer: dict[str, Any] = json.loads(out)
        return answer

    def _dead(self, made: list[Made]) -> set[str]:
        known = {each for one in made if not one.deleted for each in (*one.inherited, *one.words)}
        return {*self._lost, *(each for one in made for each in one.words)} - known

    async def _restored(self, living: list[Made], waiting: list[Made], listed: dict[str, str]) -> list[str]:
        """On a host that has nothing but the object store."""
        logs = {one.id: await self._client.events(one.id) for one in (*living, *waiting)}
        faults = [f"{one.id}: its log is another" for one in (*living, *waiting) if logs[one.id] != one.log]
        await self._cluster.workers[0].stop()
        await asyncio.to_thread(shutil.rmtree, self._cluster.directory / "data" / "workspaces")
        await asyncio.to_thread(shutil.rmtree, self._cluster.directory / "data" / "trees")
        other = host(self._cluster, "other", backends.default())
        await other.start()
        try:
            found = await self._work.look_at_all(living)
            faults += [f"{id_}: {now!r} instead of {listed[id_]!r}" for id_, now in found.items() if now != listed[id_]]
            for one in waiting:
                received = await self._work.answer(one)
                tree = data_of(self._cluster, "other") / "workspaces" / "default" / one.id
                if received[-1]["stop_reason"]["type"] != "end_turn" or not (tree / "grows").exists():
                    faults.append(f"{one.id}: it waited, and did not go on: {received[-1]}")
        finally:
            await other.stop()
        return faults


def _age(objects: Path) -> None:
    then = time.time() - _LONG_AGO
    for path in objects.rglob("*"):
        if path.is_file():
            try:
                os.utime(path, (then, then))
            except FileNotFoundError:
                continue  # an upload that is now in its place


def _all(found: Found) -> set[str]:
    return {each for words in found.values() for each in words}


def _left(found: Found, dead: set[str]) -> dict[str, int]:
    return {place: len(words & dead) for place, words in found.items()}


def _unseen(found: Found, alive: set[str]) -> list[str]:
    """A search that does not find what is there would find nothing of the deleted either."""
    return [
        f"{place} does not have {len(alive - found[place])} of {len(alive)} words of the living"
        for place in ("packs",)
        if alive - found[place]
    ] + ([] if alive <= found["PostgreSQL"] | found["objects"] else ["words of the living are not in their logs"])
