"""Fixtures that open real environments in every backend and check that no process remains after a test."""

import asyncio
import contextlib
import io
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from footplate.environments.docker.engine import connected
from footplate.environments.docker.images import Recipe
from footplate.environments.docker.opening import Ground, InContainers
from footplate.environments.docker.probe import find as find_docker
from footplate.environments.guarded import GuardedEnvironment
from footplate.environments.guardian import clock
from footplate.environments.output import DEFAULT_LIMIT
from footplate.environments.sandbox.environment import SandboxEnvironment
from footplate.environments.sandbox.limits import Limits
from footplate.environments.sandbox.probe import Found, NoSandbox, find
from footplate.environments.sandbox.view import STATE, View
from footplate.environments.unsandboxed import UnsandboxedEnvironment
from footplate.stack.dockerd import Dockerd, missing
from footplate.stack.part import PartFailed
from footplate.testing.scratch import context

Open = Callable[..., GuardedEnvironment]
Until = Callable[..., Awaitable[float]]
UID = 65_520
FULL, BARE = "footplate-test:full", "footplate-test:bare"
IMAGES: dict[str, Callable[[], bytes]] = {
    FULL: context,
    BARE: lambda: context(["sh", "cat", "sleep"], instructions=["ENV OF_THE_IMAGE=yes", "VOLUME /data"]),
}
NOT_OURS: set[int] = set()
NO_ENGINE: list[str] = []


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def own_children() -> list[psutil.Process]:
    """Returns all descendants of this process, except the docker engine that the tests share."""
    mine = [child for child in psutil.Process().children() if child.pid not in NOT_OURS]
    return [process for child in mine for process in (child, *child.children(recursive=True))]


def count_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class Mark:
    """Marks a test's commands with an inherited environment variable, so that their processes can always be found."""

    def __init__(self) -> None:
        self.value = uuid.uuid4().hex
        self.env = {"FOOTPLATE_TEST_MARK": self.value}

    def processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("FOOTPLATE_TEST_MARK") == self.value and alive(process):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found

    def command_lines(self) -> set[str]:
        found = set()
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                found.add(" ".join(process.cmdline()))
        return found


@pytest.fixture
def mark() -> Iterator[Mark]:
    mark = Mark()
    yield mark
    left = mark.processes()
    for process in left:
        process.kill()
    assert left == []


@pytest.fixture(params=[True, False], ids=["namespace", "descendants"])
def namespaces(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="session")
async def sandbox_host() -> Found | None:
    """Returns None if the kernel or a missing program prevents sandboxes. In CI that is an error."""
    try:
        return await find(UID)
    except NoSandbox:
        if os.environ.get("FOOTPLATE_TESTS_NEED_DOCKER"):
            raise
        return None


@pytest.fixture(scope="session")
async def engine() -> AsyncIterator[Dockerd | None]:
    """Starts a private docker engine, or yields None with the reason in `NO_ENGINE`. In CI that is an error."""
    directory = Path(tempfile.mkdtemp(prefix="footplate-docker-"))
    engine = Dockerd(directory / "engine", log_file=directory / "log")
    try:
        if reason := missing():
            raise PartFailed(reason)  # noqa: TRY301 - both are the same to the tests
        await engine.start()
    except PartFailed as error:
        shutil.rmtree(directory)
        if os.environ.get("FOOTPLATE_TESTS_NEED_DOCKER"):
            raise
        NO_ENGINE.append(error.message)
        yield None
        return
    assert engine.pid is not None
    NOT_OURS.add(engine.pid)
    async with connected(engine.address) as docker:
        for name, content in IMAGES.items():
            await docker.images.build(fileobj=io.BytesIO(content()), encoding="identity", tag=name)
    yield engine
    left = await left_after(engine, 5)
    await engine.remove()
    shutil.rmtree(directory)
    assert left == []


async def left_after(engine: Dockerd, seconds: float) -> list[str]:
    """Waits until no container exists and returns the names of those that remain after `seconds`.

    The engine removes a container by itself, shortly after its last process ended.
    """
    end = time.monotonic() + seconds
    async with connected(engine.address) as docker:
        while (listed := await docker.containers.list(all=1)) and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return [str(entry["Names"]) for entry in listed]


async def containers(engine: Dockerd, directory: Path, image: str) -> InContainers:
    worker_settings = Ground(root=directory / "workspaces", uid=UID, worker="worker_test")
    found = await find_docker(engine.address, worker_settings, directory / "docker", wanted=Recipe(image=image))
    assert isinstance(found.environments, InContainers)
    return found.environments


@pytest.fixture(scope="session")
async def docker(engine: Dockerd | None) -> InContainers | None:
    return None if engine is None else await containers(engine, engine.directory.parent, FULL)


EVERY_WAY = pytest.mark.parametrize("backend", ["unsandboxed", "descendants", "sandbox", "docker"], indirect=True)
"""All backends, and also no namespaces, where the guardian ends a turn's processes one by one."""


@pytest.fixture(params=["unsandboxed", "sandbox", "docker"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def sandboxed_user() -> tuple[int, int]:
    return (UID, UID) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


def sandbox_view(tree: Path, state: Path, limits: Limits | None = None) -> View:
    """The tree keeps its host path, like a directory that a user named, so the same test fits every backend."""
    for place in (state, *(state / name for name in STATE)):
        place.mkdir(exist_ok=True)
    for place in (tree, *state.rglob("*")):
        os.chown(place, *sandboxed_user())
    return View(tree=tree, state=state, named=True, limits=limits or Limits())


@pytest.fixture
async def open_environment(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    mark: Mark,
    backend: str,
    sandbox_host: Found | None,
    docker: InContainers | None,
) -> AsyncIterator[Open]:
    """Closes the environments that a test opens. Closing must end all processes and close all descriptors."""
    if backend == "sandbox" and sandbox_host is None:
        pytest.skip("no sandbox can be made on this machine")
    if backend == "docker" and docker is None:
        pytest.skip(f"no private dockerd: {NO_ENGINE[0]}")
    opened: list[GuardedEnvironment] = []

    def open_one(*, lease: float = 60, **options: float) -> GuardedEnvironment:
        deadline, grace = clock() + lease, options.get("grace", 0.3)
        limit = int(options.get("output_limit", DEFAULT_LIMIT))
        limits = Limits(cpus=options.get("cpus", Limits().cpus))
        environment: GuardedEnvironment
        if backend == "sandbox" and sandbox_host is not None:
            environment = SandboxEnvironment(
                sandbox_view(tmp_path, tmp_path_factory.mktemp("state"), limits),
                sandbox_host.host,
                user=sandboxed_user(),
                deadline=deadline,
                env={**mark.env, "HOME": str(tmp_path)},
                grace=grace,
                output_limit=limit,
            )
        elif backend == "docker" and docker is not None:
            environment = docker.around(
                sandbox_view(tmp_path, tmp_path_factory.mktemp("state"), limits),
                sandboxed_user(),
                {},
                deadline=deadline,
                env={**mark.env, "HOME": str(tmp_path)},
                grace=grace,
                output_limit=limit,
            )
        else:
            environment = UnsandboxedEnvironment(
                str(tmp_path),
                deadline=deadline,
                env=mark.env,
                grace=grace,
                output_limit=limit,
                namespaces=backend != "descendants",
            )
        opened.append(environment)
        return environment

    descriptors = count_descriptors()
    yield open_one
    for environment in opened:
        await environment.aclose()
    await until(lambda: own_children() == [])  # they are dead, but a busy machine may not have reaped them
    assert count_descriptors() == descriptors


@pytest.fixture
def environment(open_environment: Open) -> GuardedEnvironment:
    return open_environment()


async def until(condition: Callable[[], object], *, limit: float = 15) -> float:
    """Waits until the condition holds and returns how many seconds that took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit:
            pytest.fail(f"not within {limit} s")
        await asyncio.sleep(0.005)
    return time.monotonic() - began


@pytest.fixture
def children() -> Callable[[], list[psutil.Process]]:
    return lambda: [child for child in psutil.Process().children() if child.pid not in NOT_OURS]


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., object]:
    return until
