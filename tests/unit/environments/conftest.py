"""Real processes for the environment's tests, and the proof that none of them is left."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from footplate.environments.guardian import clock
from footplate.environments.unsandboxed import UnsandboxedEnvironment

Open = Callable[..., UnsandboxedEnvironment]


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def count_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class Mark:
    """A variable that every command of a test inherits, and by which it is found however it hides."""

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


@pytest.fixture
async def open_environment(tmp_path: Path, mark: Mark) -> AsyncIterator[Open]:
    """Environments that the test opens are closed after it, and closing one is all that it takes."""
    opened: list[UnsandboxedEnvironment] = []

    def open_one(*, lease: float = 60, namespaces: bool = True, **options: float) -> UnsandboxedEnvironment:
        environment = UnsandboxedEnvironment(
            str(tmp_path),
            deadline=clock() + lease,
            env=mark.env,
            grace=options.get("grace", 0.3),
            output_limit=int(options.get("output_limit", 10 * 1024 * 1024)),
            namespaces=namespaces,
        )
        opened.append(environment)
        return environment

    descriptors = count_descriptors()
    yield open_one
    for environment in opened:
        await environment.aclose()
    assert psutil.Process().children(recursive=True) == []
    assert count_descriptors() == descriptors


@pytest.fixture
def environment(open_environment: Open) -> UnsandboxedEnvironment:
    return open_environment()


async def until(condition: Callable[[], object], *, limit: float = 5) -> float:
    """How long it took, in seconds."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit:
            pytest.fail(f"not within {limit} s")
        await asyncio.sleep(0.005)
    return time.monotonic() - began


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., object]:
    return until
