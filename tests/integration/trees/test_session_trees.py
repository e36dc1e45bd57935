"""Each session has a tree from a mirror. The user's repository is unchanged, and no path leads out of the root."""

import asyncio
import contextlib
import errno
import hashlib
import json
import math
import os
import struct
import subprocess
import threading
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from bench.support import environment_backends

from footplate.domain.agents.environment_config import Backend, EnvironmentConfig
from footplate.domain.errors import InvalidRequest, Permanent, Unavailable
from footplate.domain.files.snapshots import CollectedCommits, Snapshot
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.network.command_network_access import Network
from footplate.domain.ports.engine import CheckoutTarget, Environments, OpenRequest
from footplate.domain.ports.harness import MAX_READ_BYTES, CommandResult
from footplate.domain.projects.allowed_directories import AllowedRoots
from footplate.domain.projects.project import BaseCommit, SessionProject, Trust
from footplate.environments.docker.engine_api import connect_engine
from footplate.environments.docker.factory import WorkerSettings
from footplate.environments.docker.image_inspection import ImageRecipe
from footplate.environments.docker.probe import probe_docker as find_docker
from footplate.environments.factory import SandboxFactory, UnsandboxedFactory
from footplate.environments.sandbox.probe import NoSandbox, probe_sandbox
from footplate.environments.session_directories import remove_session_directories
from footplate.environments.unsandboxed_environment import UnsandboxedEnvironment
from footplate.lease_clock import lease_clock
from footplate.proxy.model_proxy import ModelProxy
from footplate.stack.services.dockerd import dockerd_obstacle
from footplate.store.object_store import Objects
from footplate.testing.docker_image import DEFAULT_PROGRAMS
from footplate.trees.checkout import TreeLost
from footplate.trees.delivery.agent_commits import CommitCollectionFailed, collect_commits, import_bundle
from footplate.trees.projects.mirrors import Mirrors
from footplate.trees.projects.project_repository import NoRepository
from footplate.trees.session_trees import SessionTrees
from footplate.trees.snapshots.upload import SnapshotUploader

UID = 65_520
SESSION = "sesn_1"
BACKEND = Backend(name="sandbox", network=Network(), can_limit_network=True)


def git(at: Path, *argv: str) -> str:
    identity = ["-c", "user.name=User", "-c", "user.email=user@example.com", "-c", "init.defaultBranch=main"]
    command = ["git", "-C", str(at), *identity, *argv]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def repository(at: Path, **files: str) -> Path:
    at.mkdir(parents=True)
    git(at, "init", "-q")
    for name, content in (files or {"file": "one\n"}).items():
        (at / name).write_text(content)
    git(at, "add", "-A")
    git(at, "commit", "-qm", "first")
    return at


def fingerprint(at: Path) -> dict[str, tuple[int, int, bytes]]:
    """Returns the mode, the time and the hash of every file."""
    found = {}
    for path in sorted(at.rglob("*")):
        status = path.lstat()
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path)] = (status.st_mode, status.st_mtime_ns, hashlib.sha256(content).digest())
    return found


class Host:
    """The machine of one worker."""

    def __init__(self, directory: Path, *, reach: AddressPolicy | None = None, seconds: float = 60) -> None:
        self.data = directory / "data"
        self.root = directory / "projects"
        self.data.mkdir(exist_ok=True)
        self.data.chmod(0o700)
        self.mirrors = Mirrors(self.data, root=str(self.root), address_policy=reach or AddressPolicy(), seconds=seconds)
        self.trees = SessionTrees(
            self.data, self.mirrors, SnapshotUploader(Objects.open(None, self.data)), seconds=seconds
        )

    def checkout_target(self, session_id: str = SESSION) -> CheckoutTarget:
        tree = self.data / "workspaces" / "default" / session_id
        return CheckoutTarget(
            tree=tree,
            inside_path=str(tree),
            additional_directory=tree.with_name(f"{session_id}.state") / "projects",
            additional_inside_path="",
            objects_inside_path=None,
            owner=(os.geteuid(), os.getegid()),
        )

    async def with_base(self, project: SessionProject) -> SessionProject:
        return replace(project, base=await self.trees.resolve_base("default", project))

    async def check_out(self, *projects: SessionProject, session_id: str = SESSION) -> Path:
        based = [project if project.base else await self.with_base(project) for project in projects]
        return (
            await self.trees.check_out(
                "default", session_id, based, self.checkout_target(session_id), deadline=math.inf
            )
        )[0].tree


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def project(path: str = "app", branch: str | None = None) -> SessionProject:
    return SessionProject(id=f"proj_{path.replace('/', '_')}", name=path.rsplit("/", 1)[-1], path=path, branch=branch)


async def run_commands(environments: Environments, projects: Sequence[SessionProject], *commands: str) -> list[str]:
    async with ModelProxy({}) as proxy:
        models = proxy.grant(deadline=lease_clock() + 60)
        opened = await environments.open_environment(
            OpenRequest(
                organisation="default",
                session_id=SESSION,
                deadline=lease_clock() + 60,
                variables={},
                config=EnvironmentConfig(),
                models=models,
                projects=projects,
            )
        )
        try:
            outputs = []
            for command in commands:
                result = await opened.shell(f"{command} 2>&1", timeout=60)
                assert result.exit_code == 0, (command, result)
                outputs.append(result.stdout.decode().strip())
            return outputs
        finally:
            await opened.aclose()
            await models.aclose()


@pytest.fixture(scope="session")
async def engine() -> AsyncIterator[str | None]:
    """The address of a private docker engine with an image that has git, or None if none can run here."""
    if dockerd_obstacle() and not os.environ.get("FOOTPLATE_TESTS_NEED_DOCKER"):
        yield None
        return
    async with environment_backends.docker_engine([*DEFAULT_PROGRAMS, "git"]) as address:
        yield address


@pytest.fixture(params=["sandbox", "unsandboxed", "docker"])
async def environments(request: pytest.FixtureRequest, host: Host, engine: str | None) -> Environments:
    if request.param == "unsandboxed":
        return UnsandboxedFactory(host.data, BACKEND, allowed_roots=AllowedRoots({"default": ["/"]}), trees=host.trees)
    if request.param == "docker":
        return await docker_environments(host, engine)
    return await sandbox_environments(host)


@contextlib.asynccontextmanager
async def named_container(host: Host, address: str | None) -> AsyncIterator[Environments]:
    """A container of the operator that mounts the directories of Footplate at other paths."""
    if address is None:
        pytest.skip("no private dockerd")
    binds = []
    for name, target in (("workspaces", "/srv/trees"), ("docker", "/srv/footplate:ro"), ("mirrors", "/srv/git:ro")):
        (host.data / name).mkdir(exist_ok=True)
        binds.append(f"{host.data / name}:{target}")
    config: dict[str, Any] = {"Image": environment_backends.IMAGE, "Cmd": ["sleep", "3500"]}
    config["HostConfig"] = {"NetworkMode": "none", "Binds": binds}
    async with connect_engine(address) as docker:
        container = await docker.containers.create(config, name="of-the-operator")
        try:
            await container.start()
            settings = WorkerSettings(root=host.data / "workspaces", uid=UID, worker="wrkr_1", trees=host.trees)
            found = await find_docker(address, settings, host.data / "docker", image_or_container="of-the-operator")
            yield found.factory
        finally:
            await container.delete(force=True)


async def sandbox_environments(host: Host) -> Environments:
    try:
        found = await probe_sandbox(UID)
    except NoSandbox:
        pytest.skip("no sandbox can be made on this machine")
    return SandboxFactory(
        host.data,
        BACKEND,
        found.host,
        uid=UID,
        allowed_roots=AllowedRoots({"default": ["/"]}),
        trees=host.trees,
        hidden=[host.data],
    )


async def docker_environments(host: Host, address: str | None) -> Environments:
    if address is None:
        pytest.skip("no private dockerd")
    settings = WorkerSettings(
        root=host.data / "workspaces", uid=UID, worker="wrkr_1", trees=host.trees, hidden=[host.data]
    )
    recipe = ImageRecipe(image=environment_backends.IMAGE)
    return (await find_docker(address, settings, host.data / "docker", image_or_container=recipe)).factory


async def test_the_agent_can_commit_branch_stash_and_rebase(host: Host, environments: Environments) -> None:
    user = repository(host.root / "app", file="one\n", other="x\n")
    git(user, "branch", "side")
    git(user, "tag", "v1")
    (user / "not committed").write_text("the user's own")
    before = fingerprint(user)
    based = await host.with_base(project())
    status, log, *_, rebased, refs, fsck = await run_commands(
        environments,
        [based],
        "git status --porcelain=v2 --branch",
        "git log --format=%s",
        "echo two >> file && git commit -qam second",
        "git switch -q -c topic HEAD~1 && echo new > new && git add new && git commit -qm third",
        "echo dirty >> other && git stash -q && git status --porcelain && git stash pop -q && git checkout -q other",
        "git rebase -q main && git log --format=%s",
        "git for-each-ref --format='%(refname)'",
        "git fsck --full --strict",
    )
    assert f"# branch.oid {git(user, 'rev-parse', 'HEAD')}" in status
    assert "# branch.ab +0 -0" in status
    assert [line for line in status.splitlines() if not line.startswith("#")] == []
    assert log == "first"
    assert rebased.splitlines() == ["third", "second", "first"]
    names = {"heads/main", "heads/topic", "remotes/origin/main", "remotes/origin/side", "tags/v1"}
    assert set(refs.splitlines()) == {f"refs/{name}" for name in names}
    assert "error" not in fsck
    assert fingerprint(user) == before


async def test_a_later_turn_finds_the_tree_unchanged(host: Host, environments: Environments) -> None:
    user = repository(host.root / "app")
    based = await host.with_base(project())
    await run_commands(environments, [based], "echo mine > mine && rm file && git branch kept")
    (user / "file").write_text("newer\n")
    git(user, "commit", "-qam", "newer")
    assert await run_commands(environments, [based], "ls", "git branch --list kept") == ["mine", "kept"]


@pytest.mark.requirement("K5")
async def test_the_first_project_is_the_working_directory_and_others_are_beside_it(
    host: Host, environments: Environments
) -> None:
    for name in ("app", "lib"):
        repository(host.root / name, **{name: f"{name}\n"})
    projects = [await host.with_base(project(name)) for name in ("app", "lib")]
    names, lib, commits = await run_commands(
        environments,
        projects,
        "ls",
        "echo $FOOTPLATE_PROJECTS",
        'for p in . $(echo $FOOTPLATE_PROJECTS | grep -o \'"path": "[^"]*\' | cut -d\'"\' -f4); do'
        " (cd $p && echo x >> new && git add new && git commit -qm new && git log --format=%s | wc -l); done",
    )
    assert names == "app"
    assert json.loads(lib)[1]["path"].endswith("/projects/lib")
    assert commits.split() == ["2", "3", "2"]  # the working directory is listed twice
    assert git(host.root / "lib", "log", "--format=%s") == "first"


@pytest.mark.requirement("K6")
async def test_the_turns_of_a_session_run_on_different_backends(host: Host, engine: str | None) -> None:
    """The files stay on the host. Each backend sees the tree and its git objects at its own paths, and may change what
    another one wrote.
    """
    for name in ("app", "lib"):
        repository(host.root / name, **{name: f"{name}\n"})
    projects = [await host.with_base(project(name)) for name in ("app", "lib")]
    commit = (
        "echo $PWD > new && mkdir -p made && echo x >> made/by-all && git add -A && git commit -qm again"
        " && git fsck --full --strict && git log --format=%s | wc -l"
    )
    lib = f"cd $(echo $FOOTPLATE_PROJECTS | grep -o '[^\"]*/projects/lib') && {commit}"
    unsandboxed = UnsandboxedFactory(host.data, BACKEND, trees=host.trees)
    sandbox, image = await sandbox_environments(host), await docker_environments(host, engine)
    async with named_container(host, engine) as container:
        for number, backend in enumerate([sandbox, container, image, unsandboxed, container, sandbox], 2):
            committed, in_lib = await run_commands(backend, projects, commit, lib)
            assert (committed, in_lib) == (str(number), str(number))
            tree = host.checkout_target().tree
            if backend is container:
                assert (tree / "new").read_text() == f"/srv/trees/default/{SESSION}\n"
                assert (tree / "new").stat().st_uid == UID
    assert git(host.root / "app", "log", "--format=%s") == "first"


async def test_the_path_of_the_shared_objects_is_never_written_through_a_link(host: Host) -> None:
    repository(host.root / "app")
    based = await host.with_base(project())
    tree = await host.check_out(based)
    info, outside = tree / ".git" / "objects" / "info", host.data / "outside"
    objects = (info / "alternates").read_text()
    (info / "alternates").write_text("/moved\n/of/the/agent\n")
    await host.check_out(based)
    assert (info / "alternates").read_text() == f"{objects}/of/the/agent\n"
    outside.write_text("untouched")
    (info / "alternates").unlink()
    (info / "alternates").symlink_to(outside)
    await host.check_out(based)
    assert (info / "alternates").read_text() == objects
    assert outside.read_text() == "untouched"
    outside.unlink()
    info.rename(outside)
    info.symlink_to(outside)
    (outside / "alternates").write_text("untouched\n")
    await host.check_out(based)
    assert (outside / "alternates").read_text() == "untouched\n"


async def test_shared_objects_are_read_only(host: Host) -> None:
    repository(host.root / "app")
    based = await host.with_base(project())
    objects, wrote = await run_commands(
        await sandbox_environments(host),
        [based],
        "cat .git/objects/info/alternates",
        "touch $(cat .git/objects/info/alternates)/x 2>&1 || echo refused",
    )
    assert objects == "/run/footplate-objects/proj_app"
    assert wrote.endswith("refused")
    assert "Read-only file system" in wrote


async def test_host_and_agent_have_separate_git_directories(host: Host) -> None:
    repository(host.root / "app")
    tree = await host.check_out(project())
    git(tree, "config", "core.fsmonitor", "/bin/false")
    (tree / "file").write_text("changed\n")
    found = host.trees.open_git("default", SESSION, tree)
    assert await found.run("diff-files", "--name-only") == b"file\n"
    head = (await found.run("rev-parse", "HEAD")).decode().strip()
    assert head == git(host.root / "app", "rev-parse", "HEAD")
    assert (host.data / "trees" / "default" / SESSION / "host.git").is_dir()


async def test_the_mirror_follows_the_repository(host: Host) -> None:
    user = repository(host.root / "app")
    first = await host.trees.resolve_base("default", project())
    git(user, "switch", "-qc", "next")
    (user / "file").write_text("two\n")
    git(user, "commit", "-qam", "second")
    second = await host.trees.resolve_base("default", project())
    assert (first.branch, second.branch) == ("main", "next")
    assert second.commit == git(user, "rev-parse", "HEAD") != first.commit
    assert await host.trees.resolve_base("default", project(branch="main")) == first
    git(user, "switch", "-q", "--detach", "main")
    (user / "file").write_text("three\n")
    git(user, "commit", "-qam", "in no branch")
    third = await host.trees.resolve_base("default", project())
    assert third.commit == git(user, "rev-parse", "HEAD")
    tree = await host.check_out(replace(project(), base=third))
    assert (tree / "file").read_text() == "three\n"


async def test_the_base_is_available_on_another_host(host: Host, tmp_path: Path) -> None:
    """Also after the branch has moved."""
    user = repository(host.root / "app")
    base = await host.trees.resolve_base("default", project())
    (user / "file").write_text("another history\n")
    git(user, "commit", "-qa", "--amend", "-m", "rewritten")
    (tmp_path / "other").mkdir()
    other = Host(tmp_path / "other")
    other.root.symlink_to(host.root)
    tree = await other.check_out(replace(project(), base=base))
    assert (tree / "file").read_text() == "one\n"
    empty = await host.with_base(project("empty"))
    assert (
        await other.trees.check_out("default", "sesn_2", [empty], other.checkout_target("sesn_2"), deadline=math.inf)
    )[0].objects.is_dir()


async def test_a_missing_directory_becomes_a_repository(host: Host, environments: Environments) -> None:
    based = await host.with_base(project("team/new"))
    assert based.base == BaseCommit(None, "main")
    assert git(host.root / "team" / "new", "symbolic-ref", "HEAD") == "refs/heads/main"
    (log,) = await run_commands(
        environments, [based], "echo x > x && git add x && git commit -qm first && git log --format=%s"
    )
    assert log == "first"
    assert list((host.root / "team" / "new").iterdir()) == [host.root / "team" / "new" / ".git"]


async def test_an_interrupted_initialisation_is_repeated(host: Host) -> None:
    (host.root / "app" / ".git" / "refs").mkdir(parents=True)
    assert await host.trees.resolve_base("default", project()) == BaseCommit(None, "main")
    assert git(host.root / "app", "status", "--porcelain") == ""


async def test_a_bare_repository_is_checked_out(host: Host) -> None:
    user = repository(host.root / "app")
    git(user, "clone", "-q", "--bare", str(user), str(host.root / "bare.git"))
    tree = await host.check_out(project("bare.git"))
    assert (tree / "file").read_text() == "one\n"


async def test_files_that_are_no_repository_are_not_touched(host: Host) -> None:
    (host.root / "app").mkdir(parents=True)
    (host.root / "app" / "file").write_text("x")
    with pytest.raises(NoRepository, match="not a git repository") as caught:
        await host.trees.resolve_base("default", project())
    assert "git init" in caught.value.help_text
    assert [path.name for path in (host.root / "app").iterdir()] == ["file"]


async def test_no_repository_is_created_inside_another(host: Host) -> None:
    """Not in an empty, a missing or a full directory of it."""
    user = repository(host.root / "app")
    (user / "empty").mkdir()
    (user / "full").mkdir()
    (user / "full" / "file").write_text("x")
    before = fingerprint(user)
    for name in ("empty", "missing", "missing/below", "full"):
        with pytest.raises(NoRepository, match=f"'{user}/{name}' .* is inside the repository '{user}'") as caught:
            await host.trees.resolve_base("default", project(f"app/{name}"))
        assert "git init" not in caught.value.help_text
    assert fingerprint(user) == before


async def test_a_session_starts_from_a_given_commit(host: Host) -> None:
    """The commit is on no branch, as that of `run --include-uncommitted`."""
    user = repository(host.root / "app")
    (user / "file").write_text("two\n")
    commit = git(user, "stash", "create")
    git(user, "reset", "-q", "--hard")
    base = await host.trees.resolve_base("default", project(), commit)
    assert (base.commit, base.branch) == (commit, "main")
    trusted = replace(project(), trust=Trust.ALL, base=BaseCommit.load(base.record))
    assert trusted.trust is Trust.NOTHING, "a selected commit may have unreviewed files"
    tree = await host.check_out(replace(project(), base=base))
    assert (tree / "file").read_text() == "two\n"
    with pytest.raises(NoRepository, match="cannot be fetched"):
        await host.trees.resolve_base("default", project(), "0" * 39 + "1")


async def test_a_missing_branch_is_reported(host: Host) -> None:
    repository(host.root / "app")
    with pytest.raises(InvalidRequest, match="no branch 'nothing'"):
        await host.trees.resolve_base("default", project(branch="nothing"))


async def test_a_killed_checkout_is_repeated(host: Host) -> None:
    repository(host.root / "app")
    based = await host.with_base(project())
    unfinished = host.data / "trees" / "default" / SESSION / "host.git.begun"
    unfinished.mkdir(parents=True)
    tree = host.checkout_target().tree
    (tree / ".git").mkdir(parents=True)
    (tree / "half").write_text("written")
    assert await host.check_out(based) == tree
    assert sorted(path.name for path in tree.iterdir()) == [".git", "file"]
    assert git(tree, "status", "--porcelain") == ""
    assert not unfinished.exists()


async def test_a_tree_without_its_git_directory_is_not_touched(host: Host) -> None:
    repository(host.root / "app")
    tree = host.checkout_target().tree
    tree.mkdir(parents=True)
    (tree / "work").write_text("days of it")
    with pytest.raises(TreeLost, match="git directory for them is missing"):
        await host.check_out(project())
    assert (tree / "work").read_text() == "days of it"


async def test_many_sessions_start_at_once(host: Host) -> None:
    user = repository(host.root / "app")
    before = fingerprint(user)
    sessions = [f"sesn_{number}" for number in range(8)]
    trees = await asyncio.gather(*(host.check_out(project(), session_id=one) for one in sessions))
    assert {git(tree, "status", "--porcelain") for tree in trees} == {""}
    assert fingerprint(user) == before


async def test_two_workers_check_out_one_tree_once(host: Host) -> None:
    repository(host.root / "app")
    based = await host.with_base(project())
    first, second = await asyncio.gather(host.check_out(based), host.check_out(based))
    assert first == second
    assert git(first, "status", "--porcelain") == ""


async def test_a_deleted_session_is_removed_completely(host: Host) -> None:
    repository(host.root / "app")
    repository(host.root / "lib")
    await host.check_out(project(), project("lib"))
    await remove_session_directories(host.data / "workspaces", "default", SESSION)
    assert list(host.data.rglob(f"*{SESSION}*")) == []


# Containment


async def refusal_of(host: Host, path: str) -> str:
    with pytest.raises(Permanent) as caught:
        await host.trees.resolve_base("default", project(path))
    return caught.value.message


async def test_no_link_leads_out_of_the_root(host: Host, tmp_path: Path) -> None:
    repository(tmp_path / "outside")
    repository(host.root / "inside")
    (host.root / "link").symlink_to(tmp_path / "outside")
    (host.root / "up").symlink_to("..")
    (host.root / "near").symlink_to("inside")
    for path in ("link", "up/outside", "near"):
        assert "is a symbolic link" in await refusal_of(host, path), path


@pytest.mark.parametrize("trick", ["file", "link", "commondir", "objects"])
async def test_no_git_directory_leads_out_of_the_root(host: Host, tmp_path: Path, trick: str) -> None:
    outside = repository(tmp_path / "outside")
    inside = host.root / "app"
    if trick == "file":
        inside.mkdir(parents=True)
        (inside / ".git").write_text(f"gitdir: {outside}/.git\n")
    elif trick == "link":
        inside.mkdir(parents=True)
        (inside / ".git").symlink_to(outside / ".git")
    else:
        repository(inside)
        if trick == "commondir":
            (inside / ".git" / "commondir").write_text(f"{outside}/.git\n")
        else:
            (inside / ".git" / "objects").rename(inside / "moved")
            (inside / ".git" / "objects").symlink_to(outside / ".git" / "objects")
    message = await refusal_of(host, "app")
    assert "is a file or a symbolic link" in message or "not a git repository" in message


async def test_directory_names_of_any_encoding_are_used_literally(host: Host) -> None:
    for number, name in enumerate(
        ("caf\u00e9", "cafe\u0301", "%2e%2e", "\uff0e\uff0e", "\U0001f680 x", "a\\b", "~", "$HOME")
    ):
        user = repository(host.root / name, file=f"{number}\n")
        base = await host.trees.resolve_base(
            "default", SessionProject(id=f"proj_{number}", name=f"p{number}", path=name)
        )
        assert base.commit == git(user, "rev-parse", "HEAD"), name
    assert sorted(path.name for path in host.root.parent.iterdir()) == ["data", "projects"]


async def test_a_directory_swapped_for_a_link_never_leads_out(host: Host, tmp_path: Path) -> None:
    """The race: a read returns the commit inside the root, or nothing."""
    outside = repository(tmp_path / "outside", secret="s\n")
    inside = repository(host.root / "team" / "app")
    secret, public = (git(directory, "rev-parse", "HEAD") for directory in (outside, inside))
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "app").symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        team, aside = host.root / "team", host.root / "aside"
        while not stop.is_set():
            with contextlib.suppress(OSError):
                team.rename(aside)
                team.symlink_to(tmp_path / "fake")
                team.unlink()
                aside.rename(team)

    swapping = threading.Thread(target=swap)
    swapping.start()
    found, missed = set(), 0
    try:
        for _ in range(20):
            try:
                found.add((await host.trees.resolve_base("default", project("team/app"))).commit)
            except (Permanent, Unavailable):
                missed += 1
    finally:
        stop.set()
        swapping.join()
    assert secret != public
    assert found
    assert found <= {public, None}  # None: it was absent, so a new repository was created


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could read more than the owner")
async def test_a_repository_is_read_with_the_permissions_of_its_owner(host: Host, tmp_path: Path) -> None:
    """Objects that the repository's owner may not read are not available through its alternates."""
    outside = repository(tmp_path / "outside")
    secret = git(outside, "rev-parse", "HEAD")
    outside.chmod(0o700)
    inside = repository(host.root / "app")
    (inside / ".git" / "objects" / "info" / "alternates").write_text(f"{outside}/.git/objects\n")
    (inside / ".git" / "refs" / "heads" / "main").write_text(f"{secret}\n")
    for path in (tmp_path, host.root):
        path.chmod(0o755)
    for path in (inside, *inside.rglob("*")):
        os.chown(path, UID, UID)
    with contextlib.suppress(Permanent):
        base = await host.trees.resolve_base("default", project())
        assert base.commit != secret
    assert not list(host.mirrors.mirror_path("default", "proj_app").rglob(f"{secret[2:]}"))


# URLs


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A repository behind plain HTTP, and its address."""
    user = repository(tmp_path / "remote" / "app")
    git(user, "update-server-info")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    def handler(*args: object) -> Quiet:
        return Quiet(*args, directory=str(tmp_path / "remote"))  # pyrefly: ignore[bad-argument-type]  # the library's signature

    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield user, f"http://127.0.0.1:{server.server_port}/app/.git"
        server.shutdown()
        thread.join()


async def test_a_url_is_fetched_on_demand(tmp_path: Path, served: tuple[Path, str]) -> None:
    user, url = served
    host = Host(tmp_path, reach=AddressPolicy(["127.0.0.1"]))
    tree = await host.check_out(SessionProject(id="proj_1", name="app", url=url))
    assert (tree / "file").read_text() == "one\n"
    assert git(tree, "config", "remote.origin.url") == url
    assert git(tree, "rev-parse", "HEAD") == git(user, "rev-parse", "HEAD")


async def test_an_internal_url_is_not_fetched_unless_allowed(host: Host, served: tuple[Path, str]) -> None:
    with pytest.raises(NoRepository, match="internal") as caught:
        await host.trees.resolve_base("default", SessionProject(id="proj_1", name="app", url=served[1]))
    assert "FOOTPLATE_WEB_ALLOW" in caught.value.help_text


async def test_an_unreachable_url_is_reported(tmp_path: Path) -> None:
    host = Host(tmp_path, reach=AddressPolicy(["127.0.0.1"]))
    with pytest.raises(NoRepository, match="cannot be fetched"):
        await host.trees.resolve_base("default", SessionProject(id="proj_1", name="app", url="http://127.0.0.1:1/app"))


# The agent's own commits


async def test_the_agents_commits_are_collected_as_a_bundle(host: Host, environments: Environments) -> None:
    user = repository(host.root / "app")
    based = await host.with_base(project())
    assert based.base is not None
    async with ModelProxy({}) as proxy:
        models = proxy.grant(deadline=lease_clock() + 60)
        opened = await environments.open_environment(
            OpenRequest(
                organisation="default",
                session_id=SESSION,
                deadline=lease_clock() + 60,
                variables={},
                config=EnvironmentConfig(),
                models=models,
                projects=[based],
            )
        )
        try:
            mirror = host.trees.open_git("default", SESSION, host.checkout_target().tree)
            assert await collect_commits(opened, opened.root, mirror, based.base.commit) == CollectedCommits()
            work = "git config core.pager false; git switch -qc topic && echo x > x && git add x && git commit -qm x"
            assert (await opened.shell(work, timeout=30)).exit_code == 0
            found = await collect_commits(opened, opened.root, mirror, based.base.commit)
            before = Snapshot("", None, found.commits, found.bundles)
            assert await collect_commits(opened, opened.root, mirror, based.base.commit, before) == found
            assert (await opened.shell("git commit -q --allow-empty -m y", timeout=30)).exit_code == 0
            last = await collect_commits(opened, opened.root, mirror, based.base.commit, before)
            assert (
                await opened.shell("git switch -q --detach main && git branch -qD topic", timeout=30)
            ).exit_code == 0
            after = Snapshot("", None, last.commits, last.bundles)
            assert await collect_commits(opened, opened.root, mirror, based.base.commit, after) == CollectedCommits()
        finally:
            await opened.aclose()
            await models.aclose()
    assert [name for name, _ in found.commits] == ["HEAD", "topic"]
    log = await mirror.run("log", "--format=%s", dict(last.commits)["topic"])
    assert last.bundles is not None
    assert (await mirror.run("ls-tree", "--name-only", last.bundles)).split() == [b"000000", b"000001", b"head"]
    assert log.split() == [b"y", b"x", b"first"]
    assert git(user, "branch", "--list", "topic") == ""


async def test_a_bundle_above_the_read_limit_is_refused(host: Host, tmp_path: Path) -> None:
    repository(host.root / "app")
    based = await host.with_base(project())
    assert based.base is not None
    tree = await host.check_out(based)
    (tree / "large").write_bytes(os.urandom(MAX_READ_BYTES))
    git(tree, "add", "large")
    git(tree, "commit", "-qm", "large")
    environment = UnsandboxedEnvironment(str(tree), deadline=lease_clock() + 60, home=str(tmp_path))
    try:
        with pytest.raises(CommitCollectionFailed, match=f"maximum is {MAX_READ_BYTES}"):
            await collect_commits(
                environment, str(tree), host.trees.open_git("default", SESSION, tree), based.base.commit
            )
    finally:
        await environment.aclose()


@pytest.mark.parametrize("size", [b"many", b"9" * 5000, b"1"])
async def test_an_unreadable_bundle_is_reported_as_no_commits(host: Host, size: bytes) -> None:
    repository(host.root / "app")
    tree = await host.check_out(project())
    with pytest.raises(CommitCollectionFailed, match="could not be read"):
        await collect_commits(
            LyingEnvironment(size + b" bytes\n"), str(tree), host.trees.open_git("default", SESSION, tree), None
        )


class LyingEnvironment(UnsandboxedEnvironment):
    """An environment whose git prints what the agent chooses, and whose bundle cannot be read."""

    def __init__(self, output: bytes) -> None:
        super().__init__("/nonexistent", deadline=lease_clock() + 60)
        self._output = output

    async def run(self, *_: object, **__: object) -> CommandResult:
        return CommandResult(exit_code=0, stdout=self._output, stderr=b"", duration=0)

    async def read(self, path: str) -> bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)


async def test_a_crafted_bundle_is_refused(host: Host) -> None:
    repository(host.root / "app")
    tree = await host.check_out(project())
    mirror = host.trees.open_git("default", SESSION, tree)
    for content in (
        b"",
        b"# v2 git bundle\n\nPACK",
        b"# v2 git bundle\n" + b"0" * 40 + b" refs/heads/x\n\n",
        os.urandom(500),
    ):
        with pytest.raises(CommitCollectionFailed):
            await import_bundle(content, mirror)


async def test_a_bundle_with_missing_files_is_refused(host: Host, tmp_path: Path) -> None:
    repository(host.root / "app")
    tree = await host.check_out(project())
    mirror = host.trees.open_git("default", SESSION, tree)
    evil = repository(tmp_path / "evil", secret="not sent\n")
    commit = git(evil, "rev-parse", "HEAD")
    (evil / "names").write_text(f"{commit}\n")
    with (evil / "names").open("rb") as names:
        command = ["git", "-C", str(evil), "pack-objects", "-q", "--stdout"]
        pack = await asyncio.to_thread(subprocess.run, command, stdin=names, capture_output=True, check=True)
    content = f"# v2 git bundle\n{commit} refs/heads/x\n\n".encode() + pack.stdout
    with pytest.raises(CommitCollectionFailed, match="could not be imported"):
        await import_bundle(content, mirror)
    code, _ = await mirror.run_with_exit_code("cat-file", "-e", commit)
    assert code != 0


async def test_a_bundle_that_unpacks_beyond_the_limit_is_refused(host: Host) -> None:
    repository(host.root / "app")
    mirror = host.trees.open_git("default", SESSION, await host.check_out(project()))
    base = b"a" * 0xFFFF
    known = (await mirror.run("hash-object", "-w", "--stdin", stdin=base)).decode().strip()
    with pytest.raises(CommitCollectionFailed, match="over limit"):
        await import_bundle(make_delta_bomb(known, base, 9600), mirror)  # 600 MiB
    await import_bundle(make_delta_bomb(known, base, 96), mirror)


def make_delta_bomb(known: str, base: bytes, times: int) -> bytes:
    """Returns a bundle with one file, which repeats another file many times."""
    delta = encode_number(len(base)) + encode_number(len(base) * times) + b"\xb0\xff\xff" * times
    first, *more = encode_number(len(delta) >> 4)
    header = bytes([0x80 | 7 << 4 | len(delta) & 15, first, *more])
    pack = b"PACK" + struct.pack(">II", 2, 1) + header + bytes.fromhex(known) + zlib.compress(delta)
    return b"# v2 git bundle\n\n" + pack + hashlib.sha1(pack).digest()


def encode_number(value: int) -> bytes:
    """Encodes a number seven bits at a time, as git does."""
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + encode_number(value >> 7)
