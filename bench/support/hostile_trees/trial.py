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

from bench.support.hostile_trees.attacked_tree import AttackedTree, Trick
from bench.support.hostile_trees.fixture import (
    FORGED,
    ORGANISATION,
    PROJECT,
    Host,
    HostileTreeFixture,
    StoredFiles,
    open_fixture,
)
from footplate.domain.agents.environment_config import EnvironmentConfig
from footplate.domain.files.delivery import Delivery, DeliveryStep, build_commit_message
from footplate.domain.files.snapshots import StoredSnapshot, TreeDiff
from footplate.domain.ports.engine import OpenEnvironment, OpenRequest
from footplate.domain.projects.project import SessionProject, Trust
from footplate.lease_clock import lease_clock
from footplate.proxy.model_proxy import ModelProxy
from footplate.trees.delivery.agent_commits import CommitCollectionFailed, collect_commits
from footplate.trees.git import Git

T = TypeVar("T")

_SESSION, _FORK = "sesn_1", "sesn_2"
_TRIES: Final = 20
_FORGES_OWN_OBJECT: Final = {"replaced object"}
"""Tricks whose forged content is one of the agent's own objects, so that finding it in a pack is no fault."""


@dataclass(slots=True)
class TrickOutcome:
    trick: str
    works_on_plain_git: bool = False
    """Whether the trick worked against plain git in the same tree."""
    operations: int = 0
    faults: list[str] = field(default_factory=list)


async def try_trick(trick: Trick) -> TrickOutcome:
    outcome = TrickOutcome(trick.name)
    async with open_fixture() as fixture:
        trial = _Trial(fixture, trick, outcome)
        try:
            await trial.run()
        except Exception as error:  # noqa: BLE001 - a trick that stops the host's work is also a fault
            outcome.faults.append(f"{trick.name}: {type(error).__name__}: {error}")
    return outcome


class _Trial:
    def __init__(self, fixture: HostileTreeFixture, trick: Trick, outcome: TrickOutcome) -> None:
        self.fixture = fixture
        self.trick = trick
        self.outcome = outcome
        self.outside_digest = ""
        self.hosts = [fixture.host(name) for name in ("a", "b", "c")]
        self.project = SessionProject(id=PROJECT, name="app", path="app", trust=Trust.ALL)

    async def run(self) -> None:
        a, b, c = self.hosts
        project = self.project = await a.with_base(self.project)
        async with self._open_turn(a) as environment:
            attacked = AttackedTree(self.fixture, a.tree(_SESSION), a.mirror)
            await asyncio.to_thread(self._plant, attacked)
            self.outside_digest = self.fixture.outside_digest
            with self._run_concurrent_action(attacked):
                first = await self._check_operation("snapshot and pack", a.store_snapshot(_SESSION, project, None))
                attacked.write_file("new", "new\n")
                second = await self._check_operation("another snapshot", a.store_snapshot(_SESSION, project, first))
                await self._check_operation("diff", self._diff(a, first, second))
                await self._check_operation("the agent's commits", self._commits(a, environment))
            second = await self._check_operation(
                "the end of a turn", a.store_snapshot(_SESSION, project, second, environment)
            )
            await self._check_operation("the same host again", a.check_out(_SESSION, project, StoredFiles(second)))
        await self._check_operation("diff elsewhere", self._diff(b, first, second))
        await self._check_operation("restoring elsewhere", b.check_out(_SESSION, project, StoredFiles(second)))
        elsewhere = await self._check_operation("snapshot elsewhere", b.store_snapshot(_SESSION, project, second))
        attacked.write_file("newer", "newer\n")
        third = await self._check_operation("snapshot and pack", a.store_snapshot(_SESSION, project, second))
        await self._check_operation("restoring over it", b.check_out(_SESSION, project, StoredFiles(third)))
        for host in (a, b, c):
            await self._check_operation("fork", host.check_out(_FORK, project, StoredFiles(third, (_SESSION,))))
            (host.tree(_FORK) / "forked").write_text("forked\n")
            await self._check_operation("snapshot of a fork", host.store_snapshot(_FORK, project, third))
        await self._check_operation("loading project instructions", a.trees.load_instructions(ORGANISATION, project))
        for host in (a, c):
            await self._deliver(host, third, host.data.name)
        if elsewhere.snapshot.tree != second.snapshot.tree:
            self._fault("restoring elsewhere", "the restored files differ")
        await self._search_for_secrets()
        if self.trick.in_project:
            await self._try_in_project()
        self.outcome.works_on_plain_git = await asyncio.to_thread(self._works_on_plain_git, attacked)

    def _plant(self, attacked: AttackedTree) -> None:
        self.trick.plant(attacked)
        attacked.give_to_agent()
        self.fixture.mark.unlink(missing_ok=True)  # planting itself may run the agent's program

    async def _try_in_project(self) -> None:
        """Plants the trick in the project's repository, and lets a host without a mirror fetch it."""
        host = self.fixture.host("d")
        await asyncio.to_thread(
            self.trick.plant, AttackedTree(self.fixture, self.fixture.repository, self.fixture.repository)
        )
        self.fixture.mark.unlink(missing_ok=True)
        project = await self._check_operation("fetching the project", host.with_base(replace(self.project, base=None)))
        await self._check_operation("checkout", host.check_out(_SESSION, project, None))
        (host.tree(_SESSION) / "new").write_text("new\n")
        snapshot = await self._check_operation("a snapshot", host.store_snapshot(_SESSION, project, None))
        self.project = project
        await self._deliver(host, snapshot, "d")
        await self._check_operation("loading project instructions", host.trees.load_instructions(ORGANISATION, project))
        await self._check_operation("restoring", self.hosts[2].check_out(_SESSION, project, StoredFiles(snapshot)))

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

    async def _deliver(self, host: Host, snapshot: StoredSnapshot, name: str) -> None:
        """Delivers a session's work in every way: push, merge and bundle."""
        message = build_commit_message(_SESSION, None, None)
        step = DeliveryStep(
            session_id=_SESSION, seq=1, snapshot=snapshot.snapshot, taken_at=datetime.now(UTC), message=message
        )
        departure = Delivery(diff=_difference(None, snapshot), project=self.project, steps=[step])
        await self._check_operation("push", host.deliverer.push(departure, f"pushed-{name}", actor="x", wait=5))
        await self._check_operation("merge", host.deliverer.merge(departure, "next", actor="x", wait=5))
        await self._check_operation("bundle", self._search_bundle(host, departure))

    async def _search_bundle(self, host: Host, departure: Delivery) -> None:
        async with host.deliverer.bundle(departure) as pieces:
            self._search("a bundle", b"".join([piece async for piece in pieces]))

    async def _diff(self, host: Host, old: StoredSnapshot, new: StoredSnapshot) -> None:
        for first, second in ((None, new), (old, new)):
            diff = _difference(first, second)
            await host.reader.changes(diff)
            async with host.reader.patch(diff) as pieces:
                self._search("a diff", b"".join([piece async for piece in pieces]))

    async def _check_operation(self, name: str, work: Awaitable[T]) -> T:
        """Awaits an operation and checks that no program of the agent ran and nothing outside changed meanwhile."""
        done = await work
        self.outcome.operations += 1
        if self.fixture.mark.exists():
            self._fault(name, f"a program of the agent ran: {self.fixture.mark.read_text().strip()[:200]!r}")
            self.fixture.mark.unlink()
        if self.fixture.outside_digest != self.outside_digest:
            self._fault(name, "something outside was changed")
            self.outside_digest = self.fixture.outside_digest
        return done

    async def _search_for_secrets(self) -> None:
        """Searches the hosts' objects and restored files for the secret."""
        for host in self.hosts:
            for session_id in (_SESSION, _FORK):
                if (git_dir := host.git_dir(session_id)).is_dir():
                    stored = await Git(git_dir=git_dir).run("cat-file", "--batch", "--batch-all-objects")
                    self._search("an object", stored)
                if host is not self.hosts[0] or session_id != _SESSION:
                    self._search("a restored file", await asyncio.to_thread(_contents, host.tree(session_id)))

    def _search(self, location: str, content: bytes) -> None:
        if self.fixture.secret.encode() in content:
            self._fault(location, "it contains the secret from outside")
        if FORGED.encode() in content and self.trick.name not in _FORGES_OWN_OBJECT:
            self._fault(location, "it contains the forged content")

    def _works_on_plain_git(self, attacked: AttackedTree) -> bool:
        """Returns whether the trick works against plain git in the same tree. If it does not, it proves nothing."""
        for _ in range(_TRIES):
            with self._run_concurrent_action(attacked):
                output = attacked.run_git(f"{{ {self.trick.plain_git_script}; }} 2>&1")
            if self.fixture.mark.exists() or self.fixture.outside_digest != self.outside_digest:
                return True
            if self.fixture.secret in output or FORGED in output:
                return True
            if self.trick.concurrent_action is None:
                self.outcome.faults.append(f"{self.trick.name}: it does not work against plain git: {output[-300:]}")
                return False
        self.outcome.faults.append(f"{self.trick.name}: it never worked against plain git")
        return False

    @asynccontextmanager
    async def _open_turn(self, host: Host) -> AsyncIterator[OpenEnvironment]:
        """Opens the session's environment, which checks out its tree."""
        environments = await host.environments()
        async with ModelProxy({}) as proxy:
            models = proxy.grant(deadline=lease_clock() + 300)
            environment = await environments.open_environment(
                OpenRequest(
                    organisation=ORGANISATION,
                    session_id=_SESSION,
                    deadline=lease_clock() + 300,
                    variables={},
                    config=EnvironmentConfig(),
                    models=models,
                    projects=[self.project],
                )
            )
            try:
                yield environment
            finally:
                await environment.aclose()
                await models.aclose()

    @contextlib.contextmanager
    def _run_concurrent_action(self, attacked: AttackedTree) -> Iterator[None]:
        act = self.trick.concurrent_action
        if act is None:
            yield
            return
        over = threading.Event()

        def repeat_action() -> None:
            number = 0
            while not over.is_set():
                act(attacked, number)
                number += 1

        thread = threading.Thread(target=repeat_action)
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
