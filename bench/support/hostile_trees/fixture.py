"""Sets up one trick: a project, hosts, a secret outside of the tree, and a marker file that shows success.

The agent's program appends to the marker file if it runs outside its sandbox. Inside, the marker's directory does not
exist.
"""

import asyncio
import contextlib
import hashlib
import math
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from footplate.domain.agents.environment_config import Backend
from footplate.domain.files.snapshots import SessionFiles, StoredSnapshot
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.network.command_network_access import Network
from footplate.domain.ports.engine import CheckoutTarget, Environments, OpenEnvironment, SessionTree
from footplate.domain.projects.project import SessionProject
from footplate.environments.factory import SandboxFactory
from footplate.environments.sandbox.probe import probe_sandbox
from footplate.store.object_store import Objects
from footplate.trees.delivery.agent_commits import CommitCollectionFailed
from footplate.trees.delivery.merge_push_bundle import Deliverer
from footplate.trees.diffs.diff_reader import DiffReader
from footplate.trees.projects.mirrors import Mirrors
from footplate.trees.session_trees import SessionTrees
from footplate.trees.snapshots.upload import SnapshotUploader

UID: Final = 65_520
ORGANISATION: Final = "default"
PROJECT: Final = "proj_1"
_GIT_IDENTITY: Final = {
    f"GIT_{who}_{what}": "x@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
_CONFIG: Final = Path(__file__).with_name("naive.gitconfig")
FORGED: Final = "forged " * 40
PROJECT_FILES: Final = {"file": "one\n", "other": "two\n", "deep/inner": "three\n"}
"""The project's files."""


class HostileTreeFixture:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.outside = root / "outside"
        self.mark = root / "marks" / "ran"
        self.secret = f"the host's own secret {secrets.token_hex(12)}"
        self.repository = root / "projects" / "app"
        for directory in (self.outside, self.mark.parent, self.repository):
            directory.mkdir(parents=True)
        self._create_repositories()

    def _create_repositories(self) -> None:
        run_plain_git(self.repository, "git init -q -b main")
        for name, content in PROJECT_FILES.items():
            (self.repository / name).parent.mkdir(exist_ok=True)
            (self.repository / name).write_text(content)
        run_plain_git(self.repository, "git add -A && git commit -qm first")
        run_plain_git(self.repository, "git switch -qc next && echo x > beside && git add -A && git commit -qm next")
        run_plain_git(self.repository, "git switch -q main")
        (self.outside / "secret").write_text(self.secret)
        (self.outside / "config").write_text(f'[host]\n\ttoken = "{self.secret}"\n')
        repository = self.outside / "repository"
        repository.mkdir()
        shutil.copy(self.outside / "secret", repository / "secret")
        run_plain_git(repository, "git init -q -b main && git add -A && git commit -qm secret && git repack -qad")

    @property
    def outside_digest(self) -> str:
        """A digest of every path, mode and byte outside of the tree."""
        digest = hashlib.sha256()
        for path in sorted(self.outside.rglob("*")):
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            digest.update(b"%s\0%d\0%s\0" % (os.fsencode(path), path.lstat().st_mode, content))
        return digest.hexdigest()

    def host(self, name: str) -> "Host":
        return Host(self, self.root / name)


@asynccontextmanager
async def open_fixture() -> AsyncIterator[HostileTreeFixture]:
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-hostile-"))
    await asyncio.to_thread(root.chmod, 0o755)
    try:
        yield await asyncio.to_thread(HostileTreeFixture, root)
    finally:
        await asyncio.to_thread(shutil.rmtree, root)


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """A session's stored files, as the log would record them."""

    snapshot: StoredSnapshot
    owners: tuple[str, ...] = ()

    @property
    def files(self) -> SessionFiles:
        return SessionFiles({PROJECT: self.snapshot}, self.owners)


class _Lease:
    token = 1

    async def check(self) -> None:
        """Always succeeds: there is no other writer."""


class SingleWriterLeases:
    """Write leases for a single writer: each is granted at once."""

    @asynccontextmanager
    async def hold(
        self,
        organisation: str,
        target: str,
        *,
        owner: str,
        wait: float = 0,
        display_name: str | None = None,
        successor: bool = False,
    ) -> AsyncIterator[_Lease]:
        del organisation, target, owner, wait, display_name, successor
        yield _Lease()


class Host:
    """One of several worker machines that share the projects and the object store."""

    def __init__(self, fixture: HostileTreeFixture, data: Path) -> None:
        self.data = data
        data.mkdir()
        data.chmod(0o700)
        self.object_store = Objects.open(None, fixture.root)
        mirrors = Mirrors(data, root=str(fixture.root / "projects"), address_policy=AddressPolicy(), seconds=60)
        self.mirror = mirrors.mirror_path(ORGANISATION, PROJECT)
        self.trees = SessionTrees(data, mirrors, SnapshotUploader(self.object_store), seconds=60)
        self.reader = DiffReader(data, self.object_store, max_concurrent=1)
        self.deliverer = Deliverer(data, self.reader, mirrors, SingleWriterLeases(), max_concurrent=1)

    async def environments(self) -> Environments:
        backend = Backend(name="sandbox", network=Network(), can_limit_network=True)
        found = await probe_sandbox(UID)
        return SandboxFactory(self.data, backend, found.host, uid=UID, trees=self.trees, hidden=[self.data])

    async def with_base(self, project: SessionProject) -> SessionProject:
        return replace(project, base=await self.trees.resolve_base(ORGANISATION, project))

    def tree(self, session_id: str) -> Path:
        return self.data / "workspaces" / ORGANISATION / session_id

    def git_dir(self, session_id: str) -> Path:
        return self.trees.private_dir(ORGANISATION, session_id) / "host.git"

    async def check_out(self, session_id: str, project: SessionProject, stored: StoredFiles | None) -> Path:
        tree = self.tree(session_id)
        tree.mkdir(parents=True, exist_ok=True)
        target = CheckoutTarget(
            tree=tree,
            inside_path="/workspace",
            additional_directory=tree.with_name("beside"),
            additional_inside_path="",
            objects_inside_path="/run/footplate-objects",
            owner=owner(),
        )
        files = SessionFiles() if stored is None else stored.files
        await self.trees.check_out(ORGANISATION, session_id, [project], target, files, deadline=math.inf)
        return tree

    async def store_snapshot(
        self,
        session_id: str,
        project: SessionProject,
        last: StoredSnapshot | None,
        environment: OpenEnvironment | None = None,
    ) -> StoredSnapshot:
        """Stores a snapshot. With an environment, also collects the agent's commits, as at the end of a turn."""
        tree = SessionTree(
            organisation=ORGANISATION, session_id=session_id, project=project, files=self.tree(session_id)
        )
        collected = None
        if environment is not None:
            with contextlib.suppress(CommitCollectionFailed):  # the agent's git directory may be too broken
                collected = await self.trees.collect_commits(tree, environment, environment.root, last)
        snapshot = await self.trees.store_snapshot(tree, last, collected)
        assert snapshot is not None
        return snapshot


def owner() -> tuple[int, int]:
    return (UID, UID) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


def run_plain_git(directory: Path, script: str, **more: str) -> str:
    """Runs a shell script with plain git and none of the host's protections, and returns its output."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_GLOBAL": str(_CONFIG),
        **_GIT_IDENTITY,
        **more,
    }
    done = subprocess.run(
        ["sh", "-c", script], cwd=directory, env=environment, capture_output=True, check=False, timeout=60, input=b""
    )
    return done.stdout.decode("utf-8", "replace")
