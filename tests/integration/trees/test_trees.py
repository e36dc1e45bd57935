"""Each session has a tree from a mirror. The user's repository is unchanged, and no path leads out of the root."""

import asyncio
import contextlib
import errno
import hashlib
import json
import os
import struct
import subprocess
import threading
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from bench.support import backends

from footplate.domain.addresses import Reach
from footplate.domain.environments import Backend, EnvironmentConfig
from footplate.domain.errors import InvalidRequest, Permanent, Unavailable
from footplate.domain.named_directories import NamedRoots
from footplate.domain.networks import Network
from footplate.domain.ports import MOST_READ, CommandResult
from footplate.domain.projects import Base, SessionProject
from footplate.domain.running import Environments, TreeGround
from footplate.domain.snapshots import Collected, Snapshot
from footplate.environments.docker.images import Recipe
from footplate.environments.docker.opening import Ground
from footplate.environments.docker.probe import find as find_docker
from footplate.environments.guardian import clock
from footplate.environments.opening import Sandboxed, Unsandboxed, forget
from footplate.environments.sandbox.probe import NoSandbox, find
from footplate.environments.unsandboxed import UnsandboxedEnvironment
from footplate.proxy.models import ModelProxy
from footplate.stack.dockerd import missing
from footplate.store.objects import Objects
from footplate.testing.scratch import USUAL
from footplate.trees.commits import NoCommits, collect, take
from footplate.trees.keeping import Keeper
from footplate.trees.mirrors import Mirrors
from footplate.trees.placing import TreeLost
from footplate.trees.sessions import SessionTrees
from footplate.trees.sources import NoRepository

UID = 65_520
SESSION = "sesn_1"
BACKEND = Backend(name="sandbox", network=Network(), cuts_network=True)


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

    def __init__(self, directory: Path, *, reach: Reach | None = None, seconds: float = 60) -> None:
        self.data = directory / "data"
        self.root = directory / "projects"
        self.data.mkdir(exist_ok=True)
        self.data.chmod(0o700)
        self.mirrors = Mirrors(self.data, root=str(self.root), address_policy=reach or Reach(), seconds=seconds)
        self.trees = SessionTrees(self.data, self.mirrors, Keeper(Objects.open(None, self.data)), seconds=seconds)

    def ground(self, session_id: str = SESSION) -> TreeGround:
        tree = self.data / "workspaces" / "default" / session_id
        return TreeGround(
            tree=tree,
            seen=str(tree),
            beside=tree.with_name(f"{session_id}.state") / "projects",
            beside_seen="",
            objects_seen=None,
            user=(os.geteuid(), os.getegid()),
        )

    async def based(self, project: SessionProject) -> SessionProject:
        return replace(project, base=await self.trees.resolve_base("default", project))

    async def place(self, *projects: SessionProject, session_id: str = SESSION) -> Path:
        based = [project if project.base else await self.based(project) for project in projects]
        return (await self.trees.check_out("default", session_id, based, self.ground(session_id)))[0].tree


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def project(path: str = "app", branch: str | None = None) -> SessionProject:
    return SessionProject(id=f"proj_{path.replace('/', '_')}", name=path.rsplit("/", 1)[-1], path=path, branch=branch)


async def said(environments: Environments, projects: Sequence[SessionProject], *commands: str) -> list[str]:
    async with ModelProxy({}) as proxy:
        models = proxy.grant(deadline=clock() + 60)
        opened = await environments.open(
            "default",
            SESSION,
            deadline=clock() + 60,
            variables={},
            config=EnvironmentConfig(),
            models=models,
            projects=projects,
        )
        try:
            answers = []
            for command in commands:
                result = await opened.shell(f"{command} 2>&1", timeout=60)
                assert result.exit_code == 0, (command, result)
                answers.append(result.stdout.decode().strip())
            return answers
        finally:
            await opened.aclose()
            await models.aclose()


@pytest.fixture(scope="session")
async def engine() -> AsyncIterator[str | None]:
    """The address of a private docker engine with an image that has git, or None if none can run here."""
    if missing() and not os.environ.get("FOOTPLATE_TESTS_NEED_DOCKER"):
        yield None
        return
    async with backends.engine([*USUAL, "git"]) as address:
        yield address


@pytest.fixture(params=["sandbox", "unsandboxed", "docker"])
async def environments(request: pytest.FixtureRequest, host: Host, engine: str | None) -> Environments:
    if request.param == "unsandboxed":
        return Unsandboxed(host.data, BACKEND, allowed_roots=NamedRoots({"default": ["/"]}), trees=host.trees)
    if request.param == "docker":
        return await in_containers(host, engine)
    return await sandboxed(host)


async def sandboxed(host: Host) -> Environments:
    try:
        found = await find(UID)
    except NoSandbox:
        pytest.skip("no sandbox can be made on this machine")
    return Sandboxed(
        host.data,
        BACKEND,
        found.host,
        uid=UID,
        allowed_roots=NamedRoots({"default": ["/"]}),
        trees=host.trees,
        hidden=[host.data],
    )


async def in_containers(host: Host, address: str | None) -> Environments:
    if address is None:
        pytest.skip("no private dockerd")
    ground = Ground(root=host.data / "workspaces", uid=UID, worker="wrkr_1", placing=host.trees, hidden=[host.data])
    recipe = Recipe(image=backends.IMAGE)
    return (await find_docker(address, ground, host.data / "docker", wanted=recipe)).environments


async def test_agent_commits_branches_stashes_and_rebases(host: Host, environments: Environments) -> None:
    user = repository(host.root / "app", file="one\n", other="x\n")
    git(user, "branch", "side")
    git(user, "tag", "v1")
    (user / "not committed").write_text("the user's own")
    before = fingerprint(user)
    on = await host.based(project())
    status, log, *_, rebased, refs, fsck = await said(
        environments,
        [on],
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


async def test_a_later_turn_finds_the_tree_as_it_was_left(host: Host, environments: Environments) -> None:
    user = repository(host.root / "app")
    on = await host.based(project())
    await said(environments, [on], "echo mine > mine && rm file && git branch kept")
    (user / "file").write_text("newer\n")
    git(user, "commit", "-qam", "newer")
    assert await said(environments, [on], "ls", "git branch --list kept") == ["mine", "kept"]


@pytest.mark.requirement("K5")
async def test_the_first_is_the_working_directory_and_others_lie_beside(host: Host, environments: Environments) -> None:
    for name in ("app", "lib"):
        repository(host.root / name, **{name: f"{name}\n"})
    projects = [await host.based(project(name)) for name in ("app", "lib")]
    names, lib, commits = await said(
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


async def test_shared_objects_cannot_be_written(host: Host) -> None:
    repository(host.root / "app")
    on = await host.based(project())
    objects, wrote = await said(
        await sandboxed(host),
        [on],
        "cat .git/objects/info/alternates",
        "touch $(cat .git/objects/info/alternates)/x 2>&1 || echo refused",
    )
    assert objects == "/run/footplate-objects/proj_app"
    assert wrote.endswith("refused")
    assert "Read-only file system" in wrote


async def test_host_and_agent_have_git_directories_of_their_own(host: Host) -> None:
    repository(host.root / "app")
    tree = await host.place(project())
    git(tree, "config", "core.fsmonitor", "/bin/false")
    (tree / "file").write_text("changed\n")
    found = host.trees.git("default", SESSION, tree)
    assert await found.run("diff-files", "--name-only") == b"file\n"
    head = (await found.run("rev-parse", "HEAD")).decode().strip()
    assert head == git(host.root / "app", "rev-parse", "HEAD")
    assert (host.data / "trees" / "default" / SESSION / "host.git").is_dir()


async def test_mirror_follows_the_repository(host: Host) -> None:
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
    tree = await host.place(replace(project(), base=third))
    assert (tree / "file").read_text() == "three\n"


async def test_base_is_had_on_another_host_as_well(host: Host, tmp_path: Path) -> None:
    """Also after the branch has moved."""
    user = repository(host.root / "app")
    base = await host.trees.resolve_base("default", project())
    (user / "file").write_text("another history\n")
    git(user, "commit", "-qa", "--amend", "-m", "rewritten")
    (tmp_path / "other").mkdir()
    other = Host(tmp_path / "other")
    other.root.symlink_to(host.root)
    tree = await other.place(replace(project(), base=base))
    assert (tree / "file").read_text() == "one\n"
    empty = await host.based(project("empty"))
    assert (await other.trees.check_out("default", "sesn_2", [empty], other.ground("sesn_2")))[0].objects.is_dir()


async def test_nothing_there_becomes_a_repository(host: Host, environments: Environments) -> None:
    on = await host.based(project("team/new"))
    assert on.base == Base(None, "main")
    assert git(host.root / "team" / "new", "symbolic-ref", "HEAD") == "refs/heads/main"
    (log,) = await said(environments, [on], "echo x > x && git add x && git commit -qm first && git log --format=%s")
    assert log == "first"
    assert list((host.root / "team" / "new").iterdir()) == [host.root / "team" / "new" / ".git"]


async def test_broken_off_initialisation_is_done_again(host: Host) -> None:
    (host.root / "app" / ".git" / "refs").mkdir(parents=True)
    assert await host.trees.resolve_base("default", project()) == Base(None, "main")
    assert git(host.root / "app", "status", "--porcelain") == ""


async def test_bare_repository(host: Host) -> None:
    user = repository(host.root / "app")
    git(user, "clone", "-q", "--bare", str(user), str(host.root / "bare.git"))
    tree = await host.place(project("bare.git"))
    assert (tree / "file").read_text() == "one\n"


async def test_files_that_are_no_repository_are_not_touched(host: Host) -> None:
    (host.root / "app").mkdir(parents=True)
    (host.root / "app" / "file").write_text("x")
    with pytest.raises(NoRepository, match="not a git repository") as caught:
        await host.trees.resolve_base("default", project())
    assert "git init" in caught.value.help_text
    assert [path.name for path in (host.root / "app").iterdir()] == ["file"]


async def test_no_such_branch_is_told(host: Host) -> None:
    repository(host.root / "app")
    with pytest.raises(InvalidRequest, match="no branch 'nothing'"):
        await host.trees.resolve_base("default", project(branch="nothing"))


async def test_killed_in_between_it_is_made_anew(host: Host) -> None:
    repository(host.root / "app")
    on = await host.based(project())
    begun = host.data / "trees" / "default" / SESSION / "host.git.begun"
    begun.mkdir(parents=True)
    tree = host.ground().tree
    (tree / ".git").mkdir(parents=True)
    (tree / "half").write_text("written")
    assert await host.place(on) == tree
    assert sorted(path.name for path in tree.iterdir()) == [".git", "file"]
    assert git(tree, "status", "--porcelain") == ""
    assert not begun.exists()


async def test_work_whose_other_half_is_lost_is_left_alone(host: Host) -> None:
    repository(host.root / "app")
    tree = host.ground().tree
    tree.mkdir(parents=True)
    (tree / "work").write_text("days of it")
    with pytest.raises(TreeLost, match="the host's git directory for it is missing"):
        await host.place(project())
    assert (tree / "work").read_text() == "days of it"


async def test_many_begin_at_once(host: Host) -> None:
    user = repository(host.root / "app")
    before = fingerprint(user)
    sessions = [f"sesn_{number}" for number in range(8)]
    trees = await asyncio.gather(*(host.place(project(), session_id=one) for one in sessions))
    assert {git(tree, "status", "--porcelain") for tree in trees} == {""}
    assert fingerprint(user) == before


async def test_two_workers_place_one_tree_once(host: Host) -> None:
    repository(host.root / "app")
    on = await host.based(project())
    first, second = await asyncio.gather(host.place(on), host.place(on))
    assert first == second
    assert git(first, "status", "--porcelain") == ""


async def test_deleted_session_leaves_nothing(host: Host) -> None:
    repository(host.root / "app")
    repository(host.root / "lib")
    await host.place(project(), project("lib"))
    await forget(host.data / "workspaces", "default", SESSION)
    assert list(host.data.rglob(f"*{SESSION}*")) == []


# Containment


async def refused(host: Host, path: str) -> str:
    with pytest.raises(Permanent) as caught:
        await host.trees.resolve_base("default", project(path))
    return caught.value.message


async def test_no_link_leads_out(host: Host, tmp_path: Path) -> None:
    repository(tmp_path / "outside")
    repository(host.root / "inside")
    (host.root / "link").symlink_to(tmp_path / "outside")
    (host.root / "up").symlink_to("..")
    (host.root / "near").symlink_to("inside")
    for path in ("link", "up/outside", "near"):
        assert "is a link" in await refused(host, path), path


@pytest.mark.parametrize("trick", ["file", "link", "commondir", "objects"])
async def test_no_git_directory_leads_out(host: Host, tmp_path: Path, trick: str) -> None:
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
    message = await refused(host, "app")
    assert "is a file or a link" in message or "not a git repository" in message


async def test_names_of_any_encoding_are_themselves(host: Host) -> None:
    for number, name in enumerate(
        ("caf\u00e9", "cafe\u0301", "%2e%2e", "\uff0e\uff0e", "\U0001f680 x", "a\\b", "~", "$HOME")
    ):
        user = repository(host.root / name, file=f"{number}\n")
        base = await host.trees.resolve_base("default", SessionProject(id=f"proj_{number}", name=f"p{number}", path=name))
        assert base.commit == git(user, "rev-parse", "HEAD"), name
    assert sorted(path.name for path in host.root.parent.iterdir()) == ["data", "projects"]


async def test_swapped_for_a_link_while_it_is_opened(host: Host, tmp_path: Path) -> None:
    """The race: a read returns the commit inside the root, or nothing."""
    outside = repository(tmp_path / "outside", secret="s\n")
    inside = repository(host.root / "team" / "app")
    secret, open_to_all = (git(place, "rev-parse", "HEAD") for place in (outside, inside))
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
    assert secret != open_to_all
    assert found
    assert found <= {open_to_all, None}  # None: it was absent, so a new repository was created


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could read more than the owner")
async def test_repository_is_read_with_its_owner_s_rights(host: Host, tmp_path: Path) -> None:
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
        return Quiet(*args, directory=str(tmp_path / "remote"))  # type: ignore[arg-type]  # the library's signature

    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield user, f"http://127.0.0.1:{server.server_port}/app/.git"
        server.shutdown()
        thread.join()


async def test_url_is_fetched_on_demand(tmp_path: Path, served: tuple[Path, str]) -> None:
    user, url = served
    host = Host(tmp_path, reach=Reach(["127.0.0.1"]))
    tree = await host.place(SessionProject(id="proj_1", name="app", url=url))
    assert (tree / "file").read_text() == "one\n"
    assert git(tree, "config", "remote.origin.url") == url
    assert git(tree, "rev-parse", "HEAD") == git(user, "rev-parse", "HEAD")


async def test_internal_url_is_not_reached_unless_allowed(host: Host, served: tuple[Path, str]) -> None:
    with pytest.raises(NoRepository, match="internal") as caught:
        await host.trees.resolve_base("default", SessionProject(id="proj_1", name="app", url=served[1]))
    assert "FOOTPLATE_WEB_ALLOW" in caught.value.help_text


async def test_url_that_does_not_answer_is_told(tmp_path: Path) -> None:
    host = Host(tmp_path, reach=Reach(["127.0.0.1"]))
    with pytest.raises(NoRepository, match="cannot be fetched"):
        await host.trees.resolve_base("default", SessionProject(id="proj_1", name="app", url="http://127.0.0.1:1/app"))


# The agent's own commits


async def test_agents_commits_come_as_a_bundle(host: Host, environments: Environments) -> None:
    user = repository(host.root / "app")
    on = await host.based(project())
    assert on.base is not None
    async with ModelProxy({}) as proxy:
        models = proxy.grant(deadline=clock() + 60)
        opened = await environments.open(
            "default",
            SESSION,
            deadline=clock() + 60,
            variables={},
            config=EnvironmentConfig(),
            models=models,
            projects=[on],
        )
        try:
            mirror = host.trees.git("default", SESSION, host.ground().tree)
            assert await collect(opened, opened.root, mirror, on.base.commit) == Collected()
            work = "git config core.pager false; git switch -qc topic && echo x > x && git add x && git commit -qm x"
            assert (await opened.shell(work, timeout=30)).exit_code == 0
            found = await collect(opened, opened.root, mirror, on.base.commit)
            before = Snapshot("", None, found.commits, found.bundles)
            assert await collect(opened, opened.root, mirror, on.base.commit, before) == found
            assert (await opened.shell("git commit -q --allow-empty -m y", timeout=30)).exit_code == 0
            last = await collect(opened, opened.root, mirror, on.base.commit, before)
            assert (
                await opened.shell("git switch -q --detach main && git branch -qD topic", timeout=30)
            ).exit_code == 0
            after = Snapshot("", None, last.commits, last.bundles)
            assert await collect(opened, opened.root, mirror, on.base.commit, after) == Collected()
        finally:
            await opened.aclose()
            await models.aclose()
    assert [name for name, _ in found.commits] == ["HEAD", "topic"]
    log = await mirror.run("log", "--format=%s", dict(last.commits)["topic"])
    assert last.bundles is not None
    assert len((await mirror.run("ls-tree", last.bundles)).splitlines()) == 2
    assert log.split() == [b"y", b"x", b"first"]
    assert git(user, "branch", "--list", "topic") == ""


async def test_more_new_commits_than_any_environment_gives_are_not_taken_in(host: Host, tmp_path: Path) -> None:
    repository(host.root / "app")
    on = await host.based(project())
    assert on.base is not None
    tree = await host.place(on)
    (tree / "large").write_bytes(os.urandom(MOST_READ))
    git(tree, "add", "large")
    git(tree, "commit", "-qm", "large")
    environment = UnsandboxedEnvironment(str(tree), deadline=clock() + 60, home=str(tmp_path))
    try:
        with pytest.raises(NoCommits, match=f"maximum is {MOST_READ}"):
            await collect(environment, str(tree), host.trees.git("default", SESSION, tree), on.base.commit)
    finally:
        await environment.aclose()


@pytest.mark.parametrize("size", [b"many", b"9" * 5000, b"1"])
async def test_whatever_is_said_inside_of_a_bundle_is_told_as_no_commits(host: Host, size: bytes) -> None:
    repository(host.root / "app")
    tree = await host.place(project())
    with pytest.raises(NoCommits, match="could not be read"):
        await collect(Saying(size + b" bytes\n"), str(tree), host.trees.git("default", SESSION, tree), None)


class Saying(UnsandboxedEnvironment):
    """An environment whose git prints what the agent chooses, and whose bundle cannot be read."""

    def __init__(self, said: bytes) -> None:
        super().__init__("/nonexistent", deadline=clock() + 60)
        self._said = said

    async def run(self, *_: object, **__: object) -> CommandResult:
        return CommandResult(exit_code=0, stdout=self._said, stderr=b"", duration=0)

    async def read(self, path: str) -> bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)


async def test_a_crafted_bundle_is_not_taken_in(host: Host) -> None:
    repository(host.root / "app")
    tree = await host.place(project())
    mirror = host.trees.git("default", SESSION, tree)
    for content in (
        b"",
        b"# v2 git bundle\n\nPACK",
        b"# v2 git bundle\n" + b"0" * 40 + b" refs/heads/x\n\n",
        os.urandom(500),
    ):
        with pytest.raises(NoCommits):
            await take(content, mirror)


async def test_a_bundle_without_all_of_its_files_is_not_taken_in(host: Host, tmp_path: Path) -> None:
    repository(host.root / "app")
    tree = await host.place(project())
    mirror = host.trees.git("default", SESSION, tree)
    evil = repository(tmp_path / "evil", secret="not sent\n")
    commit = git(evil, "rev-parse", "HEAD")
    (evil / "names").write_text(f"{commit}\n")
    with (evil / "names").open("rb") as names:
        command = ["git", "-C", str(evil), "pack-objects", "-q", "--stdout"]
        pack = await asyncio.to_thread(subprocess.run, command, stdin=names, capture_output=True, check=True)
    content = f"# v2 git bundle\n{commit} refs/heads/x\n\n".encode() + pack.stdout
    with pytest.raises(NoCommits, match="could not be imported"):
        await take(content, mirror)
    code, _ = await mirror.run_with_exit_code("cat-file", "-e", commit)
    assert code != 0


async def test_a_bundle_that_stands_for_far_more_is_not_taken_in(host: Host) -> None:
    repository(host.root / "app")
    mirror = host.trees.git("default", SESSION, await host.place(project()))
    base = b"a" * 0xFFFF
    known = (await mirror.run("hash-object", "-w", "--stdin", stdin=base)).decode().strip()
    with pytest.raises(NoCommits, match="over limit"):
        await take(swollen(known, base, 9600), mirror)  # 600 MiB
    await take(swollen(known, base, 96), mirror)


def swollen(known: str, base: bytes, times: int) -> bytes:
    """Returns a bundle with one file, which repeats another file many times."""
    delta = number(len(base)) + number(len(base) * times) + b"\xb0\xff\xff" * times
    first, *more = number(len(delta) >> 4)
    header = bytes([0x80 | 7 << 4 | len(delta) & 15, first, *more])
    pack = b"PACK" + struct.pack(">II", 2, 1) + header + bytes.fromhex(known) + zlib.compress(delta)
    return b"# v2 git bundle\n\n" + pack + hashlib.sha1(pack).digest()


def number(value: int) -> bytes:
    """Encodes a number seven bits at a time, as git does."""
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + number(value >> 7)
