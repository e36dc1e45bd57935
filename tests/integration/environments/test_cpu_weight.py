"""An environment at its CPU limit gets a lower CPU weight for as long as it stays there."""

import asyncio

import pytest
from tests.integration.environments.conftest import EnvironmentOpener, Waiter

from footplate.environments.isolation import cpu_weight
from footplate.environments.isolation.cgroups import Cgroup
from footplate.environments.isolation.isolated_environment import EnclosedEnvironment

pytestmark = pytest.mark.timing

BUSY = "for n in 1 2 3 4; do (while :; do :; done) & done; wait"


def read_weight(group: Cgroup) -> int:
    directory, version = group._cpu_hierarchy()
    return int((directory / {1: "cpu.shares", 2: "cpu.weight"}[version]).read_text())


@pytest.mark.parametrize("backend", ["sandbox", "docker"], indirect=True)
async def test_the_weight_is_lower_at_the_cpu_limit(
    open_environment: EnvironmentOpener, until: Waiter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_weight, "_LOW_WEIGHT_SECONDS", 0.6)
    environment = open_environment(cpus=0.1)
    assert isinstance(environment, EnclosedEnvironment)
    await environment.run(["true"])
    group = environment._find_cgroup()
    if group is None:
        pytest.skip("no control groups can be made on this machine")
    full = read_weight(group)
    busy = asyncio.create_task(environment.run(["sh", "-c", BUSY], timeout=600))
    await until(lambda: read_weight(group) < full / 5, limit=60)
    busy.cancel()
    await asyncio.gather(busy, return_exceptions=True)
    await until(lambda: read_weight(group) == full, limit=60)


async def test_the_adjustment_ends_with_the_control_group() -> None:
    """The engine can remove a container's control group at any time."""
    async with asyncio.timeout(30):
        await cpu_weight.lower_weight_while_throttled(Cgroup([]))
