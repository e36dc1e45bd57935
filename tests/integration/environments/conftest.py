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

from footplate.environments.base_environment import BaseEnvironment
from footplate.environments.docker.engine_api import connect_engine
from footplate.environments.docker.factory import ContainerFactory, WorkerSettings
from footplate.environments.docker.image_inspection import ImageRecipe
from footplate.environments.docker.probe import probe_docker as find_docker
from footplate.environments.isolation.filesystem_view import STATE_MOUNTS, FilesystemView
from footplate.environments.isolation.resource_limits import SandboxLimits
from footplate.environments.processes.output_capture import DEFAULT_OUTPUT_LIMIT
from footplate.environments.sandbox.environment import SandboxEnvironment
from footplate.environments.sandbox.probe import NoSandbox, SandboxProbe, probe_sandbox
from footplate.environments.unsandboxed_environment import UnsandboxedEnvironment
from footplate.lease_clock import lease_clock
from footplate.stack.services.dockerd import Dockerd, dockerd_obstacle
from footplate.stack.services.service import ServiceFailed
from footplate.testing.docker_image import build_context

EnvironmentOpener = Callable[..., BaseEnvironment]
Waiter = Callable[..., Awaitable[float]]
UID = 65_520
FULL, BARE = "footplate-test:full", "footplate-test:bare"
IMAGES: dict[str, Callable[[], bytes]] = {
    FULL: build_context,
    BARE: lambda: build_context(["sh", "cat", "sleep"], instructions=["ENV OF_THE_IMAGE=yes", "VOLUME /data"]),
}
SHARED_PIDS: set[int] = set()
ENGINE_PROBLEMS: list[str] = []


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def list_descendants() -> list[psutil.Process]:
    """Returns all descendants of this process, except the docker engine that the tests share."""
    mine = [child for child in psutil.Process().children() if child.pid not in SHARED_PIDS]
    return [process for child in mine for process in (child, *child.children(recursive=True))]


def count_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class ProcessMark:
    """Marks a test's commands with an inherited environment variable, so that their processes can always be found."""

    def __init__(self) -> None:
        self.value = uuid.uuid4().hex
        self.env = {"FOOTPLATE_TEST_MARK": self.value}

    def find_processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("FOOTPLATE_TEST_MARK") == self.value and is_alive(process):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found

    def list_command_lines(self) -> set[str]:
        found = set()
        for process in self.find_processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                found.add(" ".join(process.cmdline()))
        return found


@pytest.fixture
def mark() -> Iterator[ProcessMark]:
    mark = ProcessMark()
    yield mark
    remaining = mark.find_processes()
    for process in remaining:
        process.kill()
    assert remaining == []


@pytest.fixture(params=[True, False], ids=["namespace", "descendants"])
def namespaces(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="session")
async def sandbox_host() -> SandboxProbe | None:
    """Returns None if the kernel or a missing program prevents sandboxes. In CI that is an error."""
    try:
        return await probe_sandbox(UID)
    except NoSandbox:
        if os.environ.get("FOOTPLATE_TESTS_NEED_DOCKER"):
            raise
        return None


@pytest.fixture(scope="session")
async def engine() -> AsyncIterator[Dockerd | None]:
    """Starts a private docker engine, or yields None with the reason in `ENGINE_PROBLEMS`. In CI that is an error."""
    directory = Path(tempfile.mkdtemp(prefix="footplate-docker-"))
    engine = Dockerd(directory / "engine", log_file=directory / "log")
    try:
        if reason := dockerd_obstacle():
            raise ServiceFailed(reason)  # noqa: TRY301 - both are the same to the tests
        await engine.start()
    except ServiceFailed as error:
        shutil.rmtree(directory)
        if os.environ.get("FOOTPLATE_TESTS_NEED_DOCKER"):
            raise
        ENGINE_PROBLEMS.append(error.message)
        yield None
        return
    assert engine.pid is not None
    SHARED_PIDS.add(engine.pid)
    async with connect_engine(engine.address) as docker:
        for name, content in IMAGES.items():
            await docker.images.build(fileobj=io.BytesIO(content()), encoding="identity", tag=name)
    yield engine
    remaining = await wait_for_containers_to_end(engine, 5)
    await engine.remove()
    shutil.rmtree(directory)
    assert remaining == []


async def wait_for_containers_to_end(engine: Dockerd, seconds: float) -> list[str]:
    """Waits until no container exists and returns the names of those that remain after `seconds`.

    The engine removes a container by itself, shortly after its last process ended.
    """
    end = time.monotonic() + seconds
    async with connect_engine(engine.address) as docker:
        while (listed := await docker.containers.list(all=1)) and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return [str(entry["Names"]) for entry in listed]


async def open_containers(engine: Dockerd, directory: Path, image: str) -> ContainerFactory:
    worker_settings = WorkerSettings(root=directory / "workspaces", uid=UID, worker="worker_test")
    found = await find_docker(
        engine.address, worker_settings, directory / "docker", image_or_container=ImageRecipe(image=image)
    )
    assert isinstance(found.factory, ContainerFactory)
    return found.factory


@pytest.fixture(scope="session")
async def docker(engine: Dockerd | None) -> ContainerFactory | None:
    return None if engine is None else await open_containers(engine, engine.directory.parent, FULL)


ALL_BACKENDS = pytest.mark.parametrize("backend", ["unsandboxed", "descendants", "sandbox", "docker"], indirect=True)
"""All backends, and also no namespaces, where the guardian ends a turn's processes one by one."""


@pytest.fixture(params=["unsandboxed", "sandbox", "docker"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def sandboxed_user() -> tuple[int, int]:
    return (UID, UID) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


def sandbox_view(tree: Path, state: Path, limits: SandboxLimits | None = None) -> FilesystemView:
    """The tree keeps its host path, like a directory that a user named, so the same test fits every backend."""
    for path in (state, *(state / name for name in STATE_MOUNTS)):
        path.mkdir(exist_ok=True)
    for path in (tree, *state.rglob("*")):
        os.chown(path, *sandboxed_user())
    return FilesystemView(tree=tree, state=state, named=True, limits=limits or SandboxLimits())


@pytest.fixture
async def open_environment(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    mark: ProcessMark,
    backend: str,
    sandbox_host: SandboxProbe | None,
    docker: ContainerFactory | None,
) -> AsyncIterator[EnvironmentOpener]:
    """Closes the environments that a test opens. Closing must end all processes and close all descriptors."""
    if backend == "sandbox" and sandbox_host is None:
        pytest.skip("no sandbox can be made on this machine")
    if backend == "docker" and docker is None:
        pytest.skip(f"no private dockerd: {ENGINE_PROBLEMS[0]}")
    opened: list[BaseEnvironment] = []

    def open_one_environment(*, lease: float = 60, **options: float) -> BaseEnvironment:
        deadline, grace = lease_clock() + lease, options.get("grace", 0.3)
        limit = int(options.get("output_limit", DEFAULT_OUTPUT_LIMIT))
        limits = SandboxLimits(cpus=options.get("cpus", SandboxLimits().cpus))
        environment: BaseEnvironment
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
            environment = docker.create_environment(
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
    yield open_one_environment
    for environment in opened:
        await environment.aclose()
    await wait_until(lambda: list_descendants() == [])  # they are dead, but a busy machine may not have reaped them
    assert count_descriptors() == descriptors


@pytest.fixture
def environment(open_environment: EnvironmentOpener) -> BaseEnvironment:
    return open_environment()


async def wait_until(condition: Callable[[], object], *, limit: float = 15) -> float:
    """Waits until the condition holds and returns how many seconds that took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit:
            pytest.fail(f"not within {limit} s")
        await asyncio.sleep(0.005)
    return time.monotonic() - began


@pytest.fixture
def children() -> Callable[[], list[psutil.Process]]:
    return lambda: [child for child in psutil.Process().children() if child.pid not in SHARED_PIDS]


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., object]:
    return wait_until
