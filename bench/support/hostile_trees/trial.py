"""Tries one trick against every host operation on a session's files, and then against plain git in the same tree."""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from bench.support.hostile_trees.ground import FORGED, ORGANISATION, PROJECT, Ground, Host, Kept, opened
from bench.support.hostile_trees.lair import Lair, Trick
from footplate.domain.agents.environment_config import EnvironmentConfig
from footplate.domain.files.delivery import Delivery, DeliveryStep, build_commit_message
from footplate.domain.files.snapshots import StoredSnapshot, TreeDiff
from footplate.domain.ports.engine import OpenEnvironment
from footplate.domain.projects.project import SessionProject, Trust
from footplate.environments.processes.guardian_client import lease_clock
from footplate.proxy.model_proxy import ModelProxy
from footplate.trees.delivery.agent_commits import CommitCollectionFailed, collect_commits
from footplate.trees.git import Git

T = TypeVar("T")

_SESSION, _FORK = "sesn_1", "sesn_2"
_TRIES: Final = 20
_HAS_IT_ITSELF: Final = {"replaced object"}
"""Tricks whose forged content is one of the agent's own objects, so that finding it in a pack is no fault."""


@dataclass(slots=True)
class Outcome:
    trick: str
    fired: bool = False
    """Whether the trick worked against plain git in the same tree."""
    operations: int = 0
    faults: list[str] = field(default_factory=list)


async def run(trick: Trick) -> Outcome:
    outcome = Outcome(trick.name)
    async with opened() as ground:
        trial = _Trial(ground, trick, outcome)
        try:
            await trial.run()
        except Exception as error:  # noqa: BLE001 - a trick that stops the host's work is also a fault
            outcome.faults.append(f"{trick.name}: {type(error).__name__}: {error}")
    return outcome


class _Trial:
    def __init__(self, ground: Ground, trick: Trick, outcome: Outcome) -> None:
        self.ground = ground
        self.trick = trick
        self.outcome = outcome
        self.outside = ""
        self.hosts = [ground.host(name) for name in ("a", "b", "c")]
        self.project = SessionProject(id=PROJECT, name="app", path="app", trust=Trust.ALL)

    async def run(self) -> None:
        a, b, c = self.hosts
        project = self.project = await a.based(self.project)
        async with self._turn(a) as environment:
            lair = Lair(self.ground, a.tree(_SESSION), a.mirror)
            await asyncio.to_thread(self._plant, lair)
            self.outside = self.ground.before
            with self._meanwhile(lair):
                first = await self._did("snapshot and pack", a.keep(_SESSION, project, None))
                lair.write("new", "new\n")
                second = await self._did("another snapshot", a.keep(_SESSION, project, first))
                await self._did("diff", self._diff(a, first, second))
                await self._did("the agent's commits", self._commits(a, environment))
            second = await self._did("the end of a turn", a.keep(_SESSION, project, second, environment))
            await self._did("the same host again", a.place(_SESSION, project, Kept(second)))
        await self._did("diff elsewhere", self._diff(b, first, second))
        await self._did("restoring elsewhere", b.place(_SESSION, project, Kept(second)))
        elsewhere = await self._did("snapshot elsewhere", b.keep(_SESSION, project, second))
        lair.write("newer", "newer\n")
        third = await self._did("snapshot and pack", a.keep(_SESSION, project, second))
        await self._did("restoring over it", b.place(_SESSION, project, Kept(third)))
        for host in (a, b, c):
            await self._did("fork", host.place(_FORK, project, Kept(third, (_SESSION,))))
            (host.tree(_FORK) / "forked").write_text("forked\n")
            await self._did("snapshot of a fork", host.keep(_FORK, project, third))
        await self._did("loading project instructions", a.trees.load_instructions(ORGANISATION, project))
        for host in (a, c):
            await self._leave(host, third, host.data.name)
        if elsewhere.snapshot.tree != second.snapshot.tree:
            self._fault("restoring elsewhere", "the restored files differ")
        await self._look_for_secrets()
        if self.trick.in_project:
            await self._in_project()
        self.outcome.fired = await asyncio.to_thread(self._naive, lair)

    def _plant(self, lair: Lair) -> None:
        self.trick.plant(lair)
        lair.give_away()
        self.ground.mark.unlink(missing_ok=True)  # planting itself may run the agent's program

    async def _in_project(self) -> None:
        """Plants the trick in the project's repository, and lets a host without a mirror fetch it."""
        host = self.ground.host("d")
        await asyncio.to_thread(self.trick.plant, Lair(self.ground, self.ground.repository, self.ground.repository))
        self.ground.mark.unlink(missing_ok=True)
        project = await self._did("fetching the project", host.based(replace(self.project, base=None)))
        await self._did("checkout", host.place(_SESSION, project, None))
        (host.tree(_SESSION) / "new").write_text("new\n")
        kept = await self._did("a snapshot", host.keep(_SESSION, project, None))
        self.project = project
        await self._leave(host, kept, "d")
        await self._did("loading project instructions", host.trees.load_instructions(ORGANISATION, project))
        await self._did("restoring", self.hosts[2].place(_SESSION, project, Kept(kept)))

    async def _commits(self, host: Host, environment: OpenEnvironment) -> None:
        """Collects the agent's commits: git runs inside the sandbox as the agent, and the host imports the result."""
        assert self.project.base is not None
        git = host.trees.open_git(ORGANISATION, _SESSION, host.tree(_SESSION))
        before = await _refs(git)
        with contextlib.suppress(CommitCollectionFailed):
            taken = await collect_commits(environment, environment.root, git, self.project.base.commit)
            if "crafted" in dict(taken.commits):
                self._fault("the agent's commits", "a commit whose tree has a .git was imported")
        if await _refs(git) != before:
            self._fault("the agent's commits", "references of the host were changed")

    async def _leave(self, host: Host, kept: StoredSnapshot, name: str) -> None:
        """Delivers a session's work in every way: push, merge and bundle."""
        message = build_commit_message(_SESSION, None, None)
        step = DeliveryStep(
            session_id=_SESSION, seq=1, snapshot=kept.snapshot, taken_at=datetime.now(UTC), message=message
        )
        departure = Delivery(diff=_difference(None, kept), project=self.project, steps=[step])
        await self._did("push", host.leaver.push(departure, f"pushed-{name}", actor="x", wait=5))
        await self._did("merge", host.leaver.merge(departure, "next", actor="x", wait=5))
        await self._did("bundle", self._bundled(host, departure))

    async def _bundled(self, host: Host, departure: Delivery) -> None:
        async with host.leaver.bundle(departure) as pieces:
            self._search("a bundle", b"".join([piece async for piece in pieces]))

    async def _diff(self, host: Host, old: StoredSnapshot, new: StoredSnapshot) -> None:
        for first, second in ((None, new), (old, new)):
            diff = _difference(first, second)
            await host.reader.changes(diff)
            async with host.reader.patch(diff) as pieces:
                self._search("a diff", b"".join([piece async for piece in pieces]))

    async def _did(self, name: str, work: Awaitable[T]) -> T:
        """Awaits an operation and checks that no program of the agent ran and nothing outside changed meanwhile."""
        done = await work
        self.outcome.operations += 1
        if self.ground.mark.exists():
            self._fault(name, f"a program of the agent ran: {self.ground.mark.read_text().strip()[:200]!r}")
            self.ground.mark.unlink()
        if self.ground.before != self.outside:
            self._fault(name, "something outside was changed")
            self.outside = self.ground.before
        return done

    async def _look_for_secrets(self) -> None:
        """Searches the hosts' objects and restored files for the secret."""
        for host in self.hosts:
            for session_id in (_SESSION, _FORK):
                if (git_dir := host.git_dir(session_id)).is_dir():
                    stored = await Git(git_dir=git_dir).run("cat-file", "--batch", "--batch-all-objects")
                    self._search("an object", stored)
                if host is not self.hosts[0] or session_id != _SESSION:
                    self._search("a restored file", await asyncio.to_thread(_contents, host.tree(session_id)))

    def _search(self, place: str, content: bytes) -> None:
        if self.ground.secret.encode() in content:
            self._fault(place, "it contains the secret from outside")
        if FORGED.encode() in content and self.trick.name not in _HAS_IT_ITSELF:
            self._fault(place, "it contains the forged content")

    def _naive(self, lair: Lair) -> bool:
        """Returns whether the trick works against plain git in the same tree. If it does not, it proves nothing."""
        for _ in range(_TRIES):
            with self._meanwhile(lair):
                said = lair.git(f"{{ {self.trick.naive}; }} 2>&1")
            if self.ground.mark.exists() or self.ground.before != self.outside:
                return True
            if self.ground.secret in said or FORGED in said:
                return True
            if self.trick.meanwhile is None:
                self.outcome.faults.append(f"{self.trick.name}: it does not work against plain git: {said[-300:]}")
                return False
        self.outcome.faults.append(f"{self.trick.name}: it never worked against plain git")
        return False

    @asynccontextmanager
    async def _turn(self, host: Host) -> AsyncIterator[OpenEnvironment]:
        """Opens the session's environment, which checks out its tree."""
        environments = await host.environments()
        async with ModelProxy({}) as proxy:
            models = proxy.grant(deadline=lease_clock() + 300)
            environment = await environments.open_environment(
                ORGANISATION,
                _SESSION,
                deadline=lease_clock() + 300,
                variables={},
                config=EnvironmentConfig(),
                models=models,
                projects=[self.project],
            )
            try:
                yield environment
            finally:
                await environment.aclose()
                await models.aclose()

    @contextlib.contextmanager
    def _meanwhile(self, lair: Lair) -> Iterator[None]:
        act = self.trick.meanwhile
        if act is None:
            yield
            return
        over = threading.Event()

        def go_on() -> None:
            number = 0
            while not over.is_set():
                act(lair, number)
                number += 1

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _fault(self, operation: str, what: str) -> None:
        self.outcome.faults.append(f"{self.trick.name}: {operation}: {what}")


def _difference(old: StoredSnapshot | None, new: StoredSnapshot) -> TreeDiff:
    return TreeDiff(
        organisation=ORGANISATION,
        session_id=_SESSION,
        ancestors=(),
        tree=PROJECT,
        name="app",
        is_additional=False,
        old=old,
        new=new,
    )


async def _refs(git: Git) -> bytes:
    return await git.run("for-each-ref", "--format=%(refname) %(objectname)")


def _contents(directory: Path) -> bytes:
    files = (Path(parent, name) for parent, _, names in os.walk(directory) for name in names)
    return b"\0".join(file.read_bytes() for file in files if file.is_file() and not file.is_symlink())
