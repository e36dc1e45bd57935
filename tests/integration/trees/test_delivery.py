"""A session's work is delivered as commits into a branch of its project: once, or not at all and with the reason."""

import asyncio
import math
import os
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from footplate import failpoints
from footplate.domain.errors import Conflict
from footplate.domain.files.delivery import (
    BranchCheckedOut,
    Delivery,
    DeliveryJournal,
    DeliveryResult,
    DeliveryStep,
    MergeConflict,
    NothingToDeliver,
    build_commit_message,
)
from footplate.domain.files.snapshots import StoredSnapshot, TreeDiff
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.ports.engine import CheckoutTarget, SessionTree
from footplate.domain.ports.harness import CommandResult
from footplate.domain.projects.project import SessionProject
from footplate.domain.projects.write_leases import LeaseLost
from footplate.store.object_store import Objects
from footplate.trees.delivery.merge_push_bundle import Deliverer
from footplate.trees.diffs.diff_reader import DiffReader
from footplate.trees.projects.mirrors import Mirrors
from footplate.trees.session_trees import SessionTrees
from footplate.trees.snapshots.upload import SnapshotUploader

BEGAN = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def git(at: Path, *argv: str) -> str:
    identity = ["-c", "user.name=User", "-c", "user.email=user@example.com", "-c", "init.defaultBranch=main"]
    command = ["git", "-C", str(at), *identity, *argv]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class HostEnvironment:
    """An environment that runs its commands on this machine."""

    def __init__(self, root: Path, scratch: Path) -> None:
        self.root, self.scratch = str(root), str(scratch)

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 60) -> CommandResult:  # noqa: ASYNC109 - the port's signature
        assert not stdin
        assert timeout
        done = await asyncio.to_thread(subprocess.run, argv, cwd=self.root, capture_output=True, check=False)
        return CommandResult(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr, duration=0)

    async def read(self, path: str) -> bytes:
        return await asyncio.to_thread(Path(self.root, path).read_bytes)


@dataclass
class Lease:
    token: int = 1
    lost: bool = False

    async def check(self) -> None:
        if self.lost:
            raise LeaseLost("the branch")


class FakeWriteLeases:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.asked: list[tuple[str, str, float]] = []
        self.lost = False

    @asynccontextmanager
    async def hold(
        self,
        organisation: str,
        target: str,
        *,
        owner: str,
        wait: float = 300,
        display_name: str | None = None,
        successor: bool = False,
    ) -> AsyncIterator[Lease]:
        assert (organisation, successor) == ("default", owner.startswith("the step "))
        assert display_name
        self.asked.append((target, owner, wait))
        async with self.lock:
            yield Lease(lost=self.lost)


class World:
    """A project, a host with sessions on it, and a server that delivers their work."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.user = directory / "projects" / "app"
        self.user.mkdir(parents=True)
        git(self.user, "init", "-q", *(["--bare"] if directory.name == "bare" else []))
        self.objects = Objects.open(None, directory / "store")
        self.leases = FakeWriteLeases()
        self.data = directory / "data"
        self.mirrors = Mirrors(self.data, root=str(directory / "projects"), address_policy=AddressPolicy(), seconds=60)
        self.trees = SessionTrees(self.data, self.mirrors, SnapshotUploader(self.objects), seconds=60)
        self.deliverer = self.deliverer_at(self.data, self.mirrors)

    def deliverer_at(self, data: Path, mirrors: Mirrors) -> Deliverer:
        return Deliverer(data, DiffReader(data, self.objects, max_concurrent=4), mirrors, self.leases, max_concurrent=2)

    def deliverer_elsewhere(self) -> Deliverer:
        """Returns a deliverer on another machine, which has no data yet."""
        data = self.directory / "other"
        mirrors = Mirrors(data, root=str(self.directory / "projects"), address_policy=AddressPolicy(), seconds=60)
        return self.deliverer_at(data, mirrors)

    async def session(self, session_id: str = "sesn_1", *, url: str | None = None) -> "Session":
        project = SessionProject(id="proj_1", name="app", path=None if url else "app", url=url)
        based = replace(project, base=await self.trees.resolve_base("default", project))
        tree = self.data / "workspaces" / session_id
        target = CheckoutTarget(
            tree=tree,
            inside_path=str(tree),
            additional_directory=tree.with_name("beside"),
            additional_inside_path="",
            objects_inside_path=None,
            owner=(os.geteuid(), os.getegid()),
        )
        await self.trees.check_out("default", session_id, [based], target, deadline=math.inf)
        return Session(self, session_id, based, tree)


class Session:
    def __init__(self, world: World, session_id: str, project: SessionProject, tree: Path) -> None:
        self.world, self.id, self.project, self.tree = world, session_id, project, tree
        self.stored: StoredSnapshot | None = None
        self.steps: list[DeliveryStep] = []

    async def turn(self) -> None:
        """Stores commits and a snapshot, as the end of a turn does."""
        session_tree = SessionTree(organisation="default", session_id=self.id, project=self.project, files=self.tree)
        environment = HostEnvironment(self.tree, self.world.directory / f"scratch-{self.id}")
        trees = self.world.trees
        commits = await trees.collect_commits(session_tree, environment, str(self.tree), self.stored)  # pyrefly: ignore[bad-argument-type]
        self.stored = await trees.store_snapshot(session_tree, self.stored, commits)

    def delivery(self, message: str | None = None) -> Delivery:
        assert self.stored is not None
        seq = len(self.steps) + 1
        if not self.steps or self.steps[-1].snapshot != self.stored.snapshot:
            self.steps.append(
                DeliveryStep(
                    session_id=self.id,
                    seq=seq,
                    snapshot=self.stored.snapshot,
                    taken_at=BEGAN + timedelta(minutes=seq),
                    message=build_commit_message(self.id, message, None),
                )
            )
        files = TreeDiff(
            organisation="default",
            session_id=self.id,
            ancestors=(),
            tree="proj_1",
            name="app",
            is_additional=False,
            old=None,
            new=self.stored,
        )
        return Delivery(diff=files, project=self.project, steps=[*self.steps])

    async def merge(self, into: str | None = "next", deliverer: Deliverer | None = None) -> DeliveryResult:
        return await (deliverer or self.world.deliverer).merge(self.delivery(), into, actor="ann", wait=7)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A project whose branch `main` is checked out, and `next` is not."""
    world = World(tmp_path)
    (world.user / "text").write_text("".join(f"line {number}\n" for number in range(1, 21)))
    (world.user / "other").write_text("other\n")
    git(world.user, "add", "-A")
    git(world.user, "commit", "-qm", "first")
    git(world.user, "branch", "next")
    return world


def change(at: Path, number: int, text: str) -> None:
    lines = (at / "text").read_text().splitlines()
    lines[number - 1] = text
    (at / "text").write_text("\n".join(lines) + "\n")


async def test_uncommitted_work_is_fast_forwarded(world: World) -> None:
    session = await world.session()
    change(session.tree, 3, "three")
    await session.turn()
    status = git(world.user, "status", "--porcelain", "--branch")
    delivered = await session.merge()
    assert (delivered.status, delivered.before) == ("fast_forwarded", git(world.user, "rev-parse", "main"))
    assert git(world.user, "rev-parse", "next") == delivered.commit
    assert git(world.user, "show", "-s", "--format=%an %s%n%(trailers:only)", "next").splitlines() == [
        "Footplate agent Work of the session sesn_1",
        "Footplate-Session: sesn_1",
    ]
    assert git(world.user, "status", "--porcelain", "--branch") == status
    assert world.leases.asked == [("proj_1 refs/heads/next", "the merge of session sesn_1 by ann", 7)]
    again = await session.merge()
    assert (again.status, again.commit) == ("unchanged", delivered.commit)
    assert not [*(world.data / "leaving").iterdir()]


class LostWorker(BaseException):
    pass


@pytest.mark.parametrize("kind", ["merge", "push"])
@pytest.mark.parametrize("point", ["before_ref", "after_ref"])
async def test_a_delivery_that_is_repeated_after_a_crash_reports_the_update(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: str, point: str
) -> None:
    """Without its journal, the second delivery would make another merge commit, or report that nothing changed."""
    session = await world.session()
    change(session.tree, 3, "three")
    await session.turn()
    if kind == "merge":
        git(world.user, "switch", "-q", "next")
        change(world.user, 9, "nine")
        git(world.user, "commit", "-qam", "meanwhile")
        git(world.user, "switch", "-q", "main")
    recorded: list[DeliveryResult] = []

    async def record(update: DeliveryResult) -> None:
        recorded.append(update)

    async def die(name: str) -> None:
        if name == point:
            raise LostWorker

    async def deliver() -> DeliveryResult:
        journal = DeliveryJournal(owner="the step step_1", updates=tuple(recorded), record_update=record)
        deliverer = world.deliverer_elsewhere() if recorded else world.deliverer
        method = deliverer.merge if kind == "merge" else deliverer.push
        return await method(
            session.delivery(), "next" if kind == "merge" else "new", actor="ann", wait=7, journal=journal
        )

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "hit", die)
        with pytest.raises(LostWorker):
            await deliver()
    delivered = await deliver()
    assert delivered.status == ("merged" if kind == "merge" else "pushed")
    assert delivered == recorded[-1]
    assert len(recorded) == (1 if point == "after_ref" else 2)
    assert git(world.user, "rev-parse", delivered.branch) == delivered.commit
    assert await deliver() == delivered


async def test_the_agents_own_commits_keep_their_history(world: World) -> None:
    session = await world.session()
    change(session.tree, 3, "three")
    git(session.tree, "commit", "-qam", "mine one")
    change(session.tree, 4, "four")
    git(session.tree, "commit", "-qam", "mine two")
    await session.turn()
    delivered = await session.merge()
    assert delivered.commit == git(session.tree, "rev-parse", "HEAD")
    change(session.tree, 5, "five")
    git(session.tree, "commit", "-qam", "mine three")
    change(session.tree, 6, "not committed")
    await session.turn()
    delivered = await session.merge()
    subjects = git(world.user, "log", "--format=%s", "next").splitlines()
    assert subjects == ["Work of the session sesn_1", "mine three", "mine two", "mine one", "first"]
    assert "not committed" in git(world.user, "show", "next:text")


async def test_uploaded_files_are_not_delivered_unless_committed(world: World) -> None:
    session = await world.session()
    uploads = session.tree / ".footplate" / "uploads" / "file_1"
    uploads.mkdir(parents=True)
    (uploads / "secret.pdf").write_text("given")
    await session.turn()
    with pytest.raises(NothingToDeliver):
        await session.merge()
    (session.tree / ".footplate" / "notes").write_text("made")
    change(session.tree, 3, "three")
    await session.turn()
    await session.merge()
    names = git(world.user, "ls-tree", "-r", "--name-only", "next").splitlines()
    assert names == [".footplate/notes", "other", "text"]
    git(session.tree, "add", "-A")
    git(session.tree, "commit", "-qm", "the agent wants it so")
    await session.turn()
    await session.merge()
    names = git(world.user, "ls-tree", "-r", "--name-only", "next").splitlines()
    assert names == [".footplate/notes", ".footplate/uploads/file_1/secret.pdf", "other", "text"]


async def test_delivery_from_the_object_store_alone_makes_the_same_commit(world: World) -> None:
    session = await world.session()
    change(session.tree, 3, "three")
    git(session.tree, "commit", "-qam", "mine")
    await session.turn()
    change(session.tree, 4, "four")
    await session.turn()
    shutil.rmtree(world.data)
    delivered = await session.merge(deliverer=world.deliverer_elsewhere())
    assert git(world.user, "log", "--format=%s", "next").splitlines()[1:] == ["mine", "first"]
    assert delivered.status == "fast_forwarded"


async def test_work_on_an_older_commit_survives_the_loss_of_its_host(world: World) -> None:
    """Its commits share files with an older history of the project that the object store does not have."""
    change(world.user, 7, "seven")
    (world.user / "other").write_text("newer\n")
    git(world.user, "commit", "-qam", "newer")
    git(world.user, "branch", "-f", "next")
    session = await world.session()
    git(session.tree, "reset", "-q", "--hard", "HEAD~1")
    (session.tree / "mine").write_text("mine\n")
    git(session.tree, "add", "-A")
    git(session.tree, "commit", "-qm", "from the past")
    await session.turn()
    git(session.tree, "commit", "-q", "--allow-empty", "-m", "and more")
    await session.turn()
    diff = session.delivery().diff
    shutil.rmtree(world.data)
    changes = await DiffReader(world.directory / "other", world.objects, max_concurrent=1).changes(diff)
    assert [change.path for change in changes.files] == [b"mine", b"other", b"text"]
    await session.merge(deliverer=world.deliverer_elsewhere())
    assert git(world.user, "show", "next:other") == "newer"
    assert git(world.user, "show", "next:mine") == "mine"
    assert {"and more", "from the past"} < {*git(world.user, "log", "--format=%s", "next").splitlines()}


async def test_concurrent_deliveries_are_merged(world: World) -> None:
    one, two = await world.session("sesn_1"), await world.session("sesn_2")
    change(one.tree, 3, "three")
    change(two.tree, 15, "fifteen")
    await one.turn()
    await two.turn()
    done = await asyncio.gather(one.merge(), two.merge())
    assert sorted(delivered.status for delivered in done) == ["fast_forwarded", "merged"]
    text = git(world.user, "show", "next:text")
    assert "three" in text
    assert "fifteen" in text
    assert len(git(world.user, "show", "-s", "--format=%P", "next").split()) == 2
    for session in (one, two):
        assert (await session.merge()).status == "unchanged"


async def test_a_second_delivery_continues_from_the_first(world: World) -> None:
    """The same lines are changed again after a merge, without a conflict with the session's own work."""
    session = await world.session()
    change(session.tree, 3, "three")
    await session.turn()
    await session.merge()
    other = await world.session("sesn_2")
    change(other.tree, 18, "eighteen")
    await other.turn()
    await other.merge()
    change(session.tree, 3, "three, again")
    await session.turn()
    delivered = await session.merge()
    assert delivered.status == "merged"
    text = git(world.user, "show", "next:text")
    assert "three, again" in text
    assert "eighteen" in text


async def test_a_conflict_is_explained_and_changes_nothing(world: World) -> None:
    session = await world.session()
    change(session.tree, 3, "three")
    (session.tree / "other").unlink()
    await session.turn()
    git(world.user, "switch", "-q", "next")
    change(world.user, 3, "drei")
    (world.user / "other").write_text("changed\n")
    git(world.user, "commit", "-qam", "In German")
    git(world.user, "switch", "-q", "main")
    before = git(world.user, "for-each-ref")
    with pytest.raises(MergeConflict) as caught:
        await session.merge()
    lines = caught.value.message.splitlines()
    assert lines[0] == "The session's work conflicts with the branch 'next' in 2 files:"
    assert lines[1].startswith("  other: changed by the branch and deleted by the session; last in ")
    assert lines[2].startswith("  text: the same lines were changed on both sides (line 3); last in ")
    assert lines[2].endswith("In German (User)")
    assert git(world.user, "for-each-ref") == before


async def test_a_checked_out_branch_is_not_changed(world: World) -> None:
    git(world.user, "config", "receive.denyCurrentBranch", "updateInstead")
    git(world.user, "worktree", "add", "-q", str(world.directory / "linked"), "next")
    session = await world.session()
    change(session.tree, 3, "three")
    await session.turn()
    for branch in (None, "next"):
        with pytest.raises(BranchCheckedOut, match="is checked out"):
            await session.merge(branch)
    assert git(world.user, "log", "--format=%s", "--all") == "first"
    assert git(world.user, "status", "--porcelain") == ""


async def test_no_program_of_the_repository_runs(world: World) -> None:
    witness = world.directory / "ran"
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction", "push-to-checkout"):
        hook = world.user / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {witness}\n")
        hook.chmod(0o755)
    git(world.user, "config", "core.fsmonitor", f"touch {witness}; false")
    git(world.user, "config", "core.alternateRefsCommand", f"touch {witness}; true")
    session = await world.session()
    change(session.tree, 3, "three")
    (session.tree / ".gitattributes").write_text("* filter=evil merge=evil diff=evil\n")
    for key in ("filter.evil.clean", "filter.evil.smudge", "merge.evil.driver", "core.fsmonitor", "diff.evil.textconv"):
        git(session.tree, "config", key, f"touch {witness}; cat")
    witness.unlink(missing_ok=True)
    await session.turn()
    await session.merge()
    assert not witness.exists()


async def test_a_failed_delivery_changes_nothing_and_a_completed_one_is_not_repeated(world: World) -> None:
    session = await world.session()
    change(session.tree, 3, "three")
    await session.turn()
    world.leases.lost = True
    with pytest.raises(LeaseLost):
        await session.merge()
    assert git(world.user, "rev-parse", "next") == git(world.user, "rev-parse", "main")
    world.leases.lost = False
    delivered = await session.merge()
    assert (await session.merge(deliverer=world.deliverer_elsewhere())).commit == delivered.commit
    assert git(world.user, "rev-list", "--count", "next") == "2"


async def test_a_commit_made_during_delivery_is_merged(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    session = await world.session()
    change(session.tree, 3, "three")
    await session.turn()
    git(world.user, "worktree", "add", "-q", "--detach", str(world.directory / "linked"), "next")
    check = Lease.check
    meddled = False

    async def meddle(lease: Lease) -> None:
        nonlocal meddled
        await check(lease)
        if not meddled:
            meddled = True
            linked = world.directory / "linked"
            change(linked, 10, "ten")
            git(linked, "commit", "-qam", "meanwhile")
            git(linked, "update-ref", "refs/heads/next", "HEAD")

    monkeypatch.setattr(Lease, "check", meddle)
    delivered = await session.merge()
    assert delivered.status == "merged"
    text = git(world.user, "show", "next:text")
    assert "ten" in text
    assert "three" in text


async def test_a_push_creates_the_sessions_branch(world: World) -> None:
    session = await world.session()
    change(session.tree, 3, "three")
    await session.turn()
    delivered = await world.deliverer.push(session.delivery("Mine"), None, actor="ann", wait=1)
    assert (delivered.status, delivered.branch, delivered.before) == ("pushed", "footplate/sesn_1", None)
    assert git(world.user, "show", "-s", "--format=%s", "footplate/sesn_1") == "Mine"
    again = await world.deliverer.push(session.delivery("Other"), None, actor="ann", wait=1)
    assert (again.status, again.commit) == ("unchanged", delivered.commit)
    change(session.tree, 4, "four")
    await session.turn()
    further = await world.deliverer.push(session.delivery(), None, actor="ann", wait=1)
    assert (further.status, further.before) == ("pushed", delivered.commit)
    git(world.user, "branch", "theirs")
    git(world.user, "update-ref", "refs/heads/theirs", git(world.user, "commit-tree", "-m", "x", "main^{tree}"))
    with pytest.raises(Conflict, match="has commits that the session's work does not have"):
        await world.deliverer.push(session.delivery(), "theirs", actor="ann", wait=1)


async def test_a_bundle_has_the_commits_that_the_project_lacks(world: World) -> None:
    session = await world.session()
    change(session.tree, 3, "three")
    await session.turn()
    async with world.deliverer.bundle(session.delivery()) as pieces:
        content = b"".join([piece async for piece in pieces])
    file = world.directory / "bundle"
    file.write_bytes(content)
    git(world.user, "fetch", "-q", str(file), "refs/heads/session:refs/heads/mine")
    assert "three" in git(world.user, "show", "mine:text")
    assert git(world.user, "log", "--format=%s", "mine").splitlines()[1:] == ["first"]


@pytest.fixture
def served(world: World) -> Iterator[str]:
    """The address of the project behind git's own HTTP server, which accepts pushes from everyone."""
    git(world.user, "config", "http.receivepack", "true")
    backend = f"{git(world.user, '--exec-path')}/git-http-backend"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            environment = {
                "GIT_PROJECT_ROOT": str(world.user.parent),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH": os.environ["PATH"],
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("content-type", ""),
                "CONTENT_LENGTH": self.headers.get("content-length", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            }
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            done = subprocess.run([backend], env=environment, input=body, capture_output=True, check=True)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            lines = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(lines.pop("Status", "200").split()[0]))
            for name, value in lines.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815 - the library's name

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/app/.git"
        server.shutdown()
        thread.join()


async def test_work_is_delivered_to_a_project_behind_a_url(world: World, served: str) -> None:
    world.mirrors = Mirrors(world.data, root="/", address_policy=AddressPolicy(["127.0.0.1"]), seconds=60)
    world.trees = SessionTrees(world.data, world.mirrors, SnapshotUploader(world.objects), seconds=60)
    world.deliverer = world.deliverer_at(world.data, world.mirrors)
    session = await world.session(url=served)
    change(session.tree, 3, "three")
    await session.turn()
    delivered = await session.merge()
    assert (delivered.status, git(world.user, "rev-parse", "next")) == ("fast_forwarded", delivered.commit)
    with pytest.raises(BranchCheckedOut):
        await session.merge("main")
    git(world.user, "config", "http.receivepack", "false")
    change(session.tree, 4, "four")
    await session.turn()
    with pytest.raises(Conflict, match="rejected the branch") as caught:
        await session.merge()
    assert "footplate export --branch" in caught.value.help_text
    assert git(world.user, "rev-parse", "next") == delivered.commit


async def test_a_merge_creates_a_missing_branch(world: World) -> None:
    """From the commit that the session started from, also if its own branch has moved on."""
    session = await world.session()
    change(session.tree, 3, "three")
    await session.turn()
    git(world.user, "commit", "-q", "--allow-empty", "-m", "later")
    delivered = await session.merge("new")
    assert (delivered.status, delivered.before) == ("fast_forwarded", None)
    assert git(world.user, "rev-parse", "new") == delivered.commit
    assert git(world.user, "rev-parse", "new~1") == git(world.user, "rev-parse", "main~1")
    assert (await session.merge("new")).status == "unchanged"


async def test_a_merge_without_work_or_repository_is_refused(world: World) -> None:
    session = await world.session()
    await session.turn()
    with pytest.raises(NothingToDeliver, match="has made no changes"):
        await session.merge()
    change(session.tree, 3, "three")
    await session.turn()
    shutil.rmtree(world.user / ".git")
    with pytest.raises(Conflict, match="is not a git repository"):
        await session.merge()


async def test_the_first_commit_of_an_empty_repository_is_delivered(tmp_path: Path) -> None:
    world = World(tmp_path / "bare")
    session = await world.session()
    (session.tree / "file").write_text("first\n")
    await session.turn()
    delivered = await session.merge(None)
    assert (delivered.status, delivered.branch, delivered.before) == ("fast_forwarded", "main", None)
    assert git(world.user, "show", "main:file") == "first"
