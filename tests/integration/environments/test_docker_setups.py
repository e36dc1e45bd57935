"""Images and setup scripts: built once even if a builder dies, separate for each organisation, failures reported."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.integration.environments.conftest import BARE, FULL, NO_ENGINE, UID, left_after

from footplate.domain.addresses import Reach
from footplate.domain.environments import Backend, EnvironmentConfig
from footplate.domain.errors import InvalidRequest
from footplate.domain.networks import Network
from footplate.environments.docker import images, sweep
from footplate.environments.docker.engine import connected, container
from footplate.environments.docker.environment import DockerEnvironment
from footplate.environments.docker.images import Recipe
from footplate.environments.docker.opening import Ground, InContainers
from footplate.environments.docker.probe import find
from footplate.environments.docker.setup import Images, SetupFailed
from footplate.environments.guardian import clock
from footplate.environments.reaper.reaping import Reaper
from footplate.environments.sandbox.limits import Limits
from footplate.proxy.egress import AllowListProxy
from footplate.stack.dockerd import Dockerd

pytestmark = pytest.mark.timing

BACKEND = Backend(
    name="docker",
    network=Network(),
    cuts_network=True,
    allow_lists=True,
    images=frozenset({FULL, BARE, "gone:1"}),
    setups=True,
)
MIB = 1 << 20
MAKER = """
import asyncio, sys
from pathlib import Path
from footplate.environments.docker.images import Recipe
from footplate.environments.docker.opening import Ground
from footplate.environments.docker.probe import find
async def main():
    engine, data, image, setup = sys.argv[1:]
    worker_settings = Ground(root=Path(data, "workspaces"), data=Path(data), uid=65520)
    wanted = Recipe(image=image, setup=setup, setup_network="none")
    await find(engine, worker_settings, Path(data, "docker"), wanted=wanted)
asyncio.run(main())
"""


@pytest.fixture(name="dockerd")
async def dockerd_fixture(engine: Dockerd | None) -> AsyncIterator[Dockerd]:
    if engine is None:
        pytest.skip(f"no private dockerd: {NO_ENGINE[0]}")
    yield engine
    async with connected(engine.address) as docker:
        for listed in await docker.images.list():
            for name in listed["RepoTags"] or []:
                if name.startswith(images.REPOSITORY):
                    await docker.images.delete(name, force=True)
    assert await left_after(engine, 5) == []


@pytest.fixture
def worker_settings(tmp_path: Path) -> Ground:
    return Ground(root=tmp_path / "workspaces", data=tmp_path, backend=BACKEND, uid=UID, worker="worker_1")


async def in_containers(dockerd: Dockerd, worker_settings: Ground, *, network: str = "none") -> InContainers:
    directory = worker_settings.root.parent / "docker"
    found = await find(dockerd.address, worker_settings, directory, wanted=Recipe(image=FULL), network=network)
    assert isinstance(found.environments, InContainers)
    return found.environments


async def told(environments: InContainers, config: EnvironmentConfig, command: str, organisation: str = "acme") -> str:
    environment = await environments.open(
        organisation, "session", deadline=clock() + 60, variables={}, config=config, models=None
    )
    assert isinstance(environment, DockerEnvironment)
    try:
        return (await environment.shell(command, timeout=20)).stdout.decode().strip()
    finally:
        await environment.aclose()


async def test_an_environment_names_an_image(dockerd: Dockerd, worker_settings: Ground) -> None:
    environments = await in_containers(dockerd, worker_settings)
    assert await told(environments, EnvironmentConfig(), "echo x$OF_THE_IMAGE") == "x"
    assert await told(environments, EnvironmentConfig(image=BARE), "echo x$OF_THE_IMAGE") == "xyes"
    with pytest.raises(SetupFailed.__base__, match="no image 'gone:1'"):  # type: ignore[arg-type]
        await told(environments, EnvironmentConfig(image="gone:1"), "true")
    with pytest.raises(InvalidRequest, match=r"config\.image: 'secret:1' is not among"):
        await told(environments, EnvironmentConfig(image="secret:1"), "true")


async def test_a_script_runs_once_for_turns_that_start_together(dockerd: Dockerd, worker_settings: Ground) -> None:
    """The script runs as root, and its changes to the root file system persist. Turns run as their usual user."""
    environments = await in_containers(dockerd, worker_settings)
    script = "id -u > /made; date +%N >> /made; chmod 4755 /bin/true; chown 7 /made; sleep 1"
    config = EnvironmentConfig(setup=script)
    show = "cat /made; stat -c %u:%a /made /bin/true; id -u; touch /made 2>/dev/null || echo not to be written"
    seen = await asyncio.gather(*(told(environments, config, show) for _ in range(4)))
    lines = seen[0].splitlines()
    assert len(set(seen)) == 1
    assert (lines[0], lines[2:]) == ("0", ["7:644", "0:4755", str(UID), "not to be written"])
    assert await told(environments, config, "cat /made") == "\n".join(lines[:2]), "later turns have the same"
    other = await told(environments, config, "cat /made", organisation="other")
    assert other.splitlines()[1] != lines[1], "organisations do not share the results of scripts"
    assert await told(environments, replace(config, setup=f"{script}; :"), "cat /made") != "\n".join(lines[:2])
    assert [*(worker_settings.root.parent / "leases").iterdir()] == []


async def test_a_turn_that_is_interrupted_does_not_end_the_script(dockerd: Dockerd, worker_settings: Ground) -> None:
    environments = await in_containers(dockerd, worker_settings)
    config = EnvironmentConfig(setup="sleep 6; date +%N > /made")
    turn = asyncio.create_task(told(environments, config, "cat /made"))
    await asyncio.sleep(0.7)
    began = time.monotonic()
    turn.cancel()
    await asyncio.gather(turn, return_exceptions=True)
    assert time.monotonic() - began < 4
    assert int(await told(environments, config, "cat /made")) >= 0


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo so it goes; echo on the other stream >&2; exit 3", r"status 3:\nso it goes\non the other stream"),
        ("x=$(yes | head -c 200000000); echo never", r"memory limit is 64 MiB"),
        ("for n in 0 1 2 3 4; do head -c 15M /dev/zero > /big$n; sleep 0.6; done", r"more than 32 MiB"),
        ("mount -t tmpfs none /mnt || exit 4", "status 4"),
        ("unshare -U true || exit 5", "status 5"),
    ],
)
async def test_a_script_that_fails_is_told(
    dockerd: Dockerd, worker_settings: Ground, script: str, problem: str
) -> None:
    limited = replace(worker_settings, limits=Limits(memory=64 * MIB, disk=32 * MIB))
    environments = await in_containers(dockerd, limited)
    for _ in range(2):  # a failure is not cached
        with pytest.raises(SetupFailed, match=problem) as caught:
            await told(environments, EnvironmentConfig(setup=script), "true")
        assert "config.setup" in caught.value.help_text
        assert await left_after(dockerd, 2) == []


async def test_a_file_of_users_is_not_read_beyond_all_measure(dockerd: Dockerd, worker_settings: Ground) -> None:
    """A setup script can write anything to these files, and the worker reads them."""
    environments = await in_containers(dockerd, worker_settings)
    before = psutil.Process().memory_info().rss
    large = "head -c 200M /dev/zero > /etc/group"
    assert await told(environments, EnvironmentConfig(setup=large), "echo all the same") == "all the same"
    assert psutil.Process().memory_info().rss - before < 50 * MIB


async def test_packages_are_the_images_own_managers_to_install(dockerd: Dockerd, worker_settings: Ground) -> None:
    """The minimal image has no package manager, so the setup fails."""
    environments = await in_containers(dockerd, worker_settings)
    with pytest.raises(SetupFailed, match=r"pip: .*not found"):
        await told(environments, EnvironmentConfig(packages={"pip": ("x",)}, setup="true"), "true")
    assert await left_after(dockerd, 2) == []


async def test_a_script_has_the_network_of_its_environment(dockerd: Dockerd, worker_settings: Ground) -> None:
    opened = replace(BACKEND, network=Network("open"))
    reaching = replace(worker_settings, backend=opened, egress=AllowListProxy(Reach(["127.0.0.1"])))
    environments = await in_containers(dockerd, reaching, network="host")
    interfaces = "cut -d: -f1 < /proc/net/dev | tail -n +3 | tr -d ' ' | tr '\n' ' ' > /net"
    ask = """exec 3<>/dev/tcp/127.0.0.1/3128
printf 'GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' $port >&3; head -n 1 <&3 >> /asked"""
    none = EnvironmentConfig(limited=True, setup=f"{interfaces}; ! (: <>/dev/tcp/127.0.0.1/3128) 2>/dev/null")
    assert await told(environments, none, "cat /net") == "lo"
    asked = f"bash -c 'port=80; {ask.replace(chr(39), chr(34))}'; bash -c 'port=81; {ask.replace(chr(39), chr(34))}'"
    listed = EnvironmentConfig(limited=True, hosts=("127.0.0.1:81",), setup=f"{interfaces}; {asked}; env > /env")
    seen = await told(environments, listed, "cat /net; cut -d' ' -f2 /asked; grep -c ^https_proxy= /env")
    assert seen.split() == ["lo", "403", "502", "1"]
    with_host = await told(environments, EnvironmentConfig(setup=interfaces), "cat /net; ls /sys/class/net | wc -l")
    assert with_host.split()[0] == "lo"


@pytest.mark.parametrize("at", ["running", "over"])
async def test_a_maker_that_is_killed(dockerd: Dockerd, tmp_path: Path, worker_settings: Ground, at: str) -> None:
    """Another worker waits while the builder lives and takes over when it is dead. Nothing of the builder remains."""
    setup = "sleep 2; date +%N > /made"
    maker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MAKER, dockerd.address, str(tmp_path), FULL, setup, cwd=Path(__file__).parents[3]
    )
    wanted = Recipe(image=FULL, setup=setup, setup_network="none")
    async with connected(dockerd.address) as docker:
        lock = wanted.result((await docker.images.inspect(FULL))["Id"]).replace(":", "-")
        for _ in range(400):
            there = await container(docker, lock)
            if there is not None and there["State"]["Running"]:
                break
            await asyncio.sleep(0.05)
        else:
            pytest.fail("the script did not start")
    host = (await in_containers(dockerd, replace(worker_settings, root=tmp_path / "other" / "workspaces")))._host
    stock = Images(host=host, worker="worker_2", limits=Limits(), data=tmp_path / "other")
    waiting = asyncio.create_task(stock.get(wanted))
    if at == "running":
        os.kill(maker.pid, signal.SIGKILL)
    await maker.wait()
    made = await asyncio.wait_for(waiting, 20)
    async with connected(dockerd.address) as docker:
        history = json.dumps(await docker.images.inspect(made.id))
    assert images.REPOSITORY in history
    await sweep.sweep(dockerd.address)
    assert await left_after(dockerd, 5) == []
    if at == "running":
        await asyncio.sleep(0.2)
        Reaper(tmp_path).reap()
    assert [*(tmp_path / "leases").iterdir()] == []
