"""Has agents leave files while their workers are killed, and compares what clients download with what was written.

Workers are killed at the failpoints of an upload and of a turn's end, and at random times. Some hosts lose their disk.
"""

import asyncio
import base64
import hashlib
import itertools
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg

from bench.support.clients import Client
from bench.support.cluster import Cluster
from bench.support.host_loss.turn_script import HARNESSES, completed_calls
from bench.support.sdk import npm
from bench.support.worker_hosts import create_worker_host, remove_disk
from footplate.failpoints import OUTPUT_POINTS
from footplate.stack import PythonService
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool

KILL_POINTS: Final = (*OUTPUT_POINTS, "files_kept", "before_turn_commit", "after_turn_commit")
PART: Final = 16 << 20
SIZES: Final = (0, 1, 100, 4096, 65_537, 1 << 20, 3_000_000, PART, PART + 1, 40_000_000)
_COMMON_SIZES: Final = 7
"""The first sizes are for most files; each of the others is for one file of a session."""
_NAMES: Final = (
    *("plain.txt", " leading and trailing ", "-rf", "new\nline", "tab\t", 'quote"\\', "ümläut.csv", "日本語.md"),
    *("\u202ereversed.txt", "sub/dir/deep.json", ".hidden", "%2e%2e%2f", "ä" * 120, "a;b&c|d$(e)", "emoji 🎉.bin"),
)
_WRITE: Final = """
import base64, json, os, random, sys, time
for name, size, seed in json.loads(base64.b64decode(sys.argv[2])):
    path = os.path.join(os.environ["FOOTPLATE_OUTPUTS"], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    data = random.Random(seed).randbytes(size)
    with open(path, "wb") as file:
        file.write(data[: size // 2])
        file.flush()
        time.sleep(0.03)
        file.write(data[size // 2 :])
print("done", sys.argv[1])
"""
_PATIENCE: Final = 600.0
_HIT_WITHIN: Final = 30.0


@dataclass(frozen=True, slots=True)
class WrittenFile:
    name: str
    size: int
    seed: int

    @property
    def sha256(self) -> str:
        return hashlib.sha256(random.Random(self.seed).randbytes(self.size)).hexdigest()


@dataclass(slots=True)
class OutputSession:
    id: str
    harness: str
    calls: list[list[WrittenFile]]
    """The files that each call writes."""

    @property
    def digests(self) -> dict[str, str]:
        return {file.name: file.sha256 for call in self.calls for file in call}


@dataclass(slots=True)
class OutputFindings:
    kills: Counter[str] = field(default_factory=Counter)
    lost_disks: int = 0
    repeated_calls: int = 0
    """Calls whose outcome was unknown, which the agent made again."""
    downloads: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class OutputTrial:
    def __init__(self, cluster: Cluster, client: Client, *, backend: str, seed: int) -> None:
        self._cluster = cluster
        self._client = client
        self._backend = backend
        self._random = random.Random(seed)
        self._hosts = itertools.count()
        self._host: tuple[str, PythonService] | None = None
        self.findings = OutputFindings()

    async def create_session(
        self, number: int, *, calls: int, files_per_call: int, sizes: Sequence[int]
    ) -> OutputSession:
        harness = [*HARNESSES][number % 2]
        session_id = await self._client.session(await self._client.agent(extra_body={"harness": harness}))
        seeds = itertools.count(number * 10_000)
        large = [*sizes[_COMMON_SIZES:]]
        written: list[list[WrittenFile]] = []
        for call in range(calls):
            names = [
                f"{call}/{index} {_NAMES[(call * files_per_call + index + number) % len(_NAMES)]}"
                for index in range(files_per_call)
            ]
            chosen = [
                large.pop() if large and not index else self._random.choice(sizes[:_COMMON_SIZES])
                for index in range(files_per_call)
            ]
            written.append([WrittenFile(*one) for one in zip(names, chosen, seeds, strict=False)])
        return OutputSession(session_id, harness, written)

    async def run(
        self, sessions: Sequence[OutputSession], *, rounds: int, points: Sequence[str], random_kills: int
    ) -> None:
        """Runs a turn of each session while workers are killed, then a turn that repeats the calls that were lost.

        Each round has its share of the sessions, the kills at all points, and as many as `random_kills` others.
        """
        await self._start_host()
        for number in range(rounds):
            share = sessions[number::rounds]
            for session in share:
                await self._begin_turn(session, [*range(len(session.calls))])
            for point in points:
                await self._kill_at(point)
            for _ in range(random_kills):
                await asyncio.sleep(self._random.uniform(1, 8))
                if not await self._have_turns_ended(share, 1):
                    await self._replace_host("at a random time")
            await self._wait_for_turns(share, 1)
        for session in sessions:
            await self._check_listing(session, is_final=False)
            missing = sorted({*range(len(session.calls))} - {*completed_calls(await self._client.events(session.id))})
            self.findings.repeated_calls += len(missing)
            await self._begin_turn(session, missing)
        await self._wait_for_turns(sessions, 2)
        await self.stop()

    async def stop(self) -> None:
        if self._host is not None:
            await self._host[1].stop()

    async def check_downloads(self, sessions: Sequence[OutputSession]) -> None:
        """Compares the downloads of both SDKs with what the agents wrote, and looks for objects that nothing needs."""
        for session in sessions:
            await self._check_listing(session, is_final=True)
        await self._check_with_typescript(sessions)
        await self._check_orphans()

    async def _begin_turn(self, session: OutputSession, calls: Sequence[int]) -> None:
        name = f"write-{session.id}-{len(await self._client.list_turns(session.id))}"
        steps = [[tool(HARNESSES[session.harness], {"command": _command(n, session.calls[n])})] for n in calls]
        await self._cluster.model.install(name, replies(*steps, [text("All files are there.")]))
        await self._client.send_text(session.id, f"[[script:{name}]]")

    async def _have_turns_ended(self, sessions: Sequence[OutputSession], count: int) -> bool:
        for session in sessions:
            turns = await self._client.list_turns(session.id)
            if len(turns) < count or not all(turn["ended_at"] for turn in turns):
                return False
        return True

    async def _wait_for_turns(self, sessions: Sequence[OutputSession], count: int) -> None:
        async with asyncio.timeout(_PATIENCE):
            while not await self._have_turns_ended(sessions, count):  # noqa: ASYNC110 - another process cannot set an event here
                await asyncio.sleep(1)

    async def _start_host(self, name: str | None = None) -> None:
        name = name or f"{next(self._hosts)}"
        host = create_worker_host(self._cluster, name, self._backend)
        await host.start()
        self._host = (name, host)

    async def _kill_at(self, point: str) -> None:
        """Kills the worker at a failpoint. If no turn reaches it any more, the kill is not counted."""
        armed, hit = (self._cluster.failpoints / name for name in (point, f"{point}.hit"))
        hit.unlink(missing_ok=True)
        armed.write_text("kill")

        async def was_hit() -> bool:
            return hit.exists()

        await wait_until(was_hit, _HIT_WITHIN)
        armed.unlink(missing_ok=True)
        await asyncio.sleep(0.2)  # a worker may have reached it a moment ago
        if hit.exists():
            await self._replace_host(point)

    async def _replace_host(self, reason: str) -> None:
        """Kills the worker. Every second time it starts again with its disk; otherwise another host continues."""
        assert self._host is not None
        name, host = self._host
        await host.kill()
        self.findings.kills[reason] += 1
        if self.findings.kills.total() % 2:
            await remove_disk(self._cluster, name)
            self.findings.lost_disks += 1
            await self._start_host()
        else:
            await self._start_host(name)

    async def _check_listing(self, session: OutputSession, *, is_final: bool) -> None:
        """Downloads with the Python SDK. After the first turn, files of lost calls may be missing, but none is torn."""
        digests, files = session.digests, self._client.sdk.beta.files
        found: dict[str, str] = {}
        async for file in files.list(scope_id=session.id, limit=7):
            content = await (await files.download(file.id)).read()
            found[file.filename] = hashlib.sha256(content).hexdigest()
            scope = None if file.scope is None else (file.scope.type, file.scope.id)
            if (scope, file.downloadable, file.size_bytes) != (("session", session.id), True, len(content)):
                self.findings.faults.append(f"{session.id}: {file.filename!r} has {file.to_dict()}")
        self.findings.downloads["Python"] += len(found) if is_final else 0
        done = completed_calls(await self._client.events(session.id))
        wanted = digests if is_final else {file.name: file.sha256 for n in done for file in session.calls[n]}
        self._compare(session, "Python", found, wanted)

    async def _check_with_typescript(self, sessions: Sequence[OutputSession]) -> None:
        directory = await npm.install_sdk()
        script = directory / f"outputs-{self._cluster.id}.mts"
        script.write_bytes((npm.SOURCE / "outputs.mts").read_bytes())
        try:
            output = await npm.run_program(
                npm.node(),
                script.name,
                self._cluster.base_urls[0],
                self._cluster.key,
                *(session.id for session in sessions),
                directory=directory,
                environment={"PATH": "/usr/bin:/bin", "HOME": str(self._cluster.directory), "TZ": "UTC"},
                seconds=_PATIENCE,
            )
        finally:
            script.unlink()
        found: dict[str, dict[str, str]] = {session.id: {} for session in sessions}
        for line in output.splitlines():
            session_id, file, digest = json.loads(line)
            found[session_id][file["filename"]] = digest
        for session in sessions:
            self.findings.downloads["TypeScript"] += len(found[session.id])
            self._compare(session, "TypeScript", found[session.id], session.digests)

    def _compare(self, session: OutputSession, sdk: str, found: dict[str, str], wanted: dict[str, str]) -> None:
        digests = session.digests
        faults = [f"{name!r} is lost" for name in wanted if name not in found]
        faults += [f"{name!r} is torn" for name in found if found[name] != digests.get(name)]
        self.findings.faults += [f"{session.id} ({session.harness}), {sdk}: {fault}" for fault in faults]

    async def _check_orphans(self) -> None:
        folder = self._cluster.directory / "data" / "objects" / "default" / "files"
        names = {path.name for path in folder.iterdir()}
        connection: Any = await asyncpg.connect(self._cluster.settings.database_url)
        try:
            rows = await connection.fetch("select id from files union select file_id from file_removals")
        finally:
            await connection.close()
        if orphans := names - {row["id"] for row in rows}:
            self.findings.faults.append(f"{len(orphans)} stored objects that nothing refers to")


def _command(number: int, files: Sequence[WrittenFile]) -> str:
    listed = base64.b64encode(json.dumps([[file.name, file.size, file.seed] for file in files]).encode()).decode()
    return f"python3 - {number} {listed} <<'END'{_WRITE}END"
