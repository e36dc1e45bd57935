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
from tests.integration.environments.conftest import BARE, ENGINE_PROBLEMS, FULL, UID, wait_for_containers_to_end

from footplate.domain.agents.environment_config import Backend, EnvironmentConfig
from footplate.domain.errors import InvalidRequest
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.network.command_network_access import Network
from footplate.domain.ports.engine import OpenRequest
from footplate.environments.docker import abandoned_containers, image_inspection
from footplate.environments.docker.engine_api import connect_engine, find_container
from footplate.environments.docker.environment import DockerEnvironment
from footplate.environments.docker.factory import ContainerFactory, WorkerSettings
from footplate.environments.docker.image_inspection import ImageRecipe
from footplate.environments.docker.probe import probe_docker
from footplate.environments.docker.setup_images import ImageProvider, SetupFailed
from footplate.environments.isolation.resource_limits import SandboxLimits
from footplate.environments.reaper.expired_lease_reaper import Reaper
from footplate.lease_clock import lease_clock
from footplate.proxy.allow_list_proxy import AllowListProxy
from footplate.stack.services.dockerd import Dockerd

pytestmark = pytest.mark.timing

BACKEND = Backend(
    name="docker",
    network=Network(),
    can_limit_network=True,
    supports_allow_lists=True,
    images=frozenset({FULL, BARE, "gone:1"}),
    supports_setup=True,
)
MIB = 1 << 20
BUILDER_PROGRAM = """
import asyncio, sys
from pathlib import Path
from footplate.environments.docker.image_inspection import ImageRecipe
from footplate.environments.docker.factory import WorkerSettings
from footplate.environments.docker.probe import probe_docker
async def main():
    engine, data, image, setup = sys.argv[1:]
    worker_settings = WorkerSettings(root=Path(data, "workspaces"), data=Path(data), uid=65520)
    wanted = ImageRecipe(image=image, setup=setup, setup_network="none")
    await probe_docker(engine, worker_settings, Path(data, "docker"), image_or_container=wanted)
asyncio.run(main())
"""


@pytest.fixture(name="dockerd")
async def dockerd_fixture(engine: Dockerd | None) -> AsyncIterator[Dockerd]:
    if engine is None:
        pytest.skip(f"no private dockerd: {ENGINE_PROBLEMS[0]}")
    yield engine
    async with connect_engine(engine.address) as docker:
        for listed in await docker.images.list():
            for name in listed["RepoTags"] or []:
                if name.startswith(image_inspection.REPOSITORY):
                    await docker.images.delete(name, force=True)
    assert await wait_for_containers_to_end(engine, 5) == []


@pytest.fixture
def worker_settings(tmp_path: Path) -> WorkerSettings:
    return WorkerSettings(root=tmp_path / "workspaces", data=tmp_path, backend=BACKEND, uid=UID, worker="worker_1")


async def open_containers(
    dockerd: Dockerd, worker_settings: WorkerSettings, *, network: str = "none"
) -> ContainerFactory:
    directory = worker_settings.root.parent / "docker"
    found = await probe_docker(
        dockerd.address, worker_settings, directory, image_or_container=ImageRecipe(image=FULL), network=network
    )
    assert isinstance(found.factory, ContainerFactory)
    return found.factory


async def run_for_output(
    environments: ContainerFactory, config: EnvironmentConfig, command: str, organisation: str = "acme"
) -> str:
    environment = await environments.open_environment(
        OpenRequest(
            organisation=organisation, session_id="session", deadline=lease_clock() + 60, variables={}, config=config
        )
    )
    assert isinstance(environment, DockerEnvironment)
    try:
        return (await environment.shell(command, timeout=20)).stdout.decode().strip()
    finally:
        await environment.aclose()


async def test_an_environment_uses_its_own_image(dockerd: Dockerd, worker_settings: WorkerSettings) -> None:
    environments = await open_containers(dockerd, worker_settings)
    assert await run_for_output(environments, EnvironmentConfig(), "echo x$OF_THE_IMAGE") == "x"
    assert await run_for_output(environments, EnvironmentConfig(image=BARE), "echo x$OF_THE_IMAGE") == "xyes"
    with pytest.raises(SetupFailed.__base__, match="no image 'gone:1'"):  # pyrefly: ignore[bad-argument-type]
        await run_for_output(environments, EnvironmentConfig(image="gone:1"), "true")
    with pytest.raises(InvalidRequest, match=r"config\.image: 'secret:1' is not an image that the operator allows"):
        await run_for_output(environments, EnvironmentConfig(image="secret:1"), "true")


async def test_a_script_runs_once_for_turns_that_start_together(
    dockerd: Dockerd, worker_settings: WorkerSettings
) -> None:
    """The script runs as root, and its changes to the root file system persist. Turns run as their usual user."""
    environments = await open_containers(dockerd, worker_settings)
    script = "id -u > /made; date +%N >> /made; chmod 4755 /bin/true; chown 7 /made; sleep 1"
    config = EnvironmentConfig(setup=script)
    show_command = "cat /made; stat -c %u:%a /made /bin/true; id -u; touch /made 2>/dev/null || echo not to be written"
    outputs = await asyncio.gather(*(run_for_output(environments, config, show_command) for _ in range(4)))
    lines = outputs[0].splitlines()
    assert len(set(outputs)) == 1
    assert (lines[0], lines[2:]) == ("0", ["7:644", "0:4755", str(UID), "not to be written"])
    assert await run_for_output(environments, config, "cat /made") == "\n".join(lines[:2]), "later turns have the same"
    other = await run_for_output(environments, config, "cat /made", organisation="other")
    assert other.splitlines()[1] != lines[1], "organisations do not share the results of scripts"
    assert await run_for_output(environments, replace(config, setup=f"{script}; :"), "cat /made") != "\n".join(
        lines[:2]
    )
    assert [*(worker_settings.root.parent / "leases").iterdir()] == []


async def test_a_turn_that_is_interrupted_does_not_end_the_script(
    dockerd: Dockerd, worker_settings: WorkerSettings
) -> None:
    environments = await open_containers(dockerd, worker_settings)
    config = EnvironmentConfig(setup="sleep 6; date +%N > /made")
    turn = asyncio.create_task(run_for_output(environments, config, "cat /made"))
    await asyncio.sleep(0.7)
    began = time.monotonic()
    turn.cancel()
    await asyncio.gather(turn, return_exceptions=True)
    assert time.monotonic() - began < 4
    assert int(await run_for_output(environments, config, "cat /made")) >= 0


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo so it goes; echo on the other stream >&2; exit 3", r"status 3:\nso it goes\non the other stream"),
        ("x=$(yes | head -c 200000000); echo never", r"memory limit of 64 MiB"),
        ("for n in 0 1 2 3 4; do head -c 15M /dev/zero > /big$n; sleep 0.6; done", r"more than 32 MiB"),
        ("mount -t tmpfs none /mnt || exit 4", "status 4"),
        ("unshare -U true || exit 5", "status 5"),
    ],
)
async def test_a_failing_script_is_reported(
    dockerd: Dockerd, worker_settings: WorkerSettings, script: str, problem: str
) -> None:
    limited = replace(worker_settings, limits=SandboxLimits(memory=64 * MIB, disk=32 * MIB))
    environments = await open_containers(dockerd, limited)
    for _ in range(2):  # a failure is not cached
        with pytest.raises(SetupFailed, match=problem) as caught:
            await run_for_output(environments, EnvironmentConfig(setup=script), "true")
        assert "config.setup" in caught.value.help_text
        assert await wait_for_containers_to_end(dockerd, 2) == []


async def test_a_huge_group_file_is_not_read_whole(dockerd: Dockerd, worker_settings: WorkerSettings) -> None:
    """A setup script can write anything to these files, and the worker reads them."""
    environments = await open_containers(dockerd, worker_settings)
    before = psutil.Process().memory_info().rss
    large = "head -c 200M /dev/zero > /etc/group"
    assert await run_for_output(environments, EnvironmentConfig(setup=large), "echo all the same") == "all the same"
    assert psutil.Process().memory_info().rss - before < 50 * MIB


async def test_packages_need_the_images_own_package_manager(dockerd: Dockerd, worker_settings: WorkerSettings) -> None:
    """The minimal image has no package manager, so the setup fails."""
    environments = await open_containers(dockerd, worker_settings)
    with pytest.raises(SetupFailed, match=r"pip: .*not found"):
        await run_for_output(environments, EnvironmentConfig(packages={"pip": ("x",)}, setup="true"), "true")
    assert await wait_for_containers_to_end(dockerd, 2) == []


async def test_a_script_has_the_network_of_its_environment(dockerd: Dockerd, worker_settings: WorkerSettings) -> None:
    opened = replace(BACKEND, network=Network("open"))
    reaching = replace(worker_settings, backend=opened, egress=AllowListProxy(AddressPolicy(["127.0.0.1"])))
    environments = await open_containers(dockerd, reaching, network="host")
    interfaces = "cut -d: -f1 < /proc/net/dev | tail -n +3 | tr -d ' ' | tr '\n' ' ' > /net"
    ask = """exec 3<>/dev/tcp/127.0.0.1/3128
printf 'GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' $port >&3; head -n 1 <&3 >> /asked"""
    none = EnvironmentConfig(limited=True, setup=f"{interfaces}; ! (: <>/dev/tcp/127.0.0.1/3128) 2>/dev/null")
    assert await run_for_output(environments, none, "cat /net") == "lo"
    asked = f"bash -c 'port=80; {ask.replace(chr(39), chr(34))}'; bash -c 'port=81; {ask.replace(chr(39), chr(34))}'"
    listed = EnvironmentConfig(limited=True, hosts=("127.0.0.1:81",), setup=f"{interfaces}; {asked}; env > /env")
    seen = await run_for_output(environments, listed, "cat /net; cut -d' ' -f2 /asked; grep -c ^https_proxy= /env")
    assert seen.split() == ["lo", "403", "502", "1"]
    with_host = await run_for_output(
        environments, EnvironmentConfig(setup=interfaces), "cat /net; ls /sys/class/net | wc -l"
    )
    assert with_host.split()[0] == "lo"


@pytest.mark.parametrize("at", ["running", "over"])
async def test_another_worker_takes_over_from_a_killed_builder(
    dockerd: Dockerd, tmp_path: Path, worker_settings: WorkerSettings, at: str
) -> None:
    """Another worker waits while the builder lives and takes over when it is dead. Nothing of the builder remains."""
    setup = "sleep 2; date +%N > /made"
    builder = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        BUILDER_PROGRAM,
        dockerd.address,
        str(tmp_path),
        FULL,
        setup,
        cwd=Path(__file__).parents[3],
    )
    wanted = ImageRecipe(image=FULL, setup=setup, setup_network="none")
    async with connect_engine(dockerd.address) as docker:
        lock = wanted.result_name((await docker.images.inspect(FULL))["Id"]).replace(":", "-")
        for _ in range(400):
            found = await find_container(docker, lock)
            if found is not None and found["State"]["Running"]:
                break
            await asyncio.sleep(0.05)
        else:
            pytest.fail("the script did not start")
    host = (await open_containers(dockerd, replace(worker_settings, root=tmp_path / "other" / "workspaces")))._host
    image_builder = ImageProvider(host=host, worker="worker_2", limits=SandboxLimits(), data=tmp_path / "other")
    waiting = asyncio.create_task(image_builder.get_image(wanted))
    if at == "running":
        os.kill(builder.pid, signal.SIGKILL)
    await builder.wait()
    image = await asyncio.wait_for(waiting, 20)
    async with connect_engine(dockerd.address) as docker:
        history = json.dumps(await docker.images.inspect(image.id))
    assert image_inspection.REPOSITORY in history
    await abandoned_containers.remove_abandoned(dockerd.address)
    assert await wait_for_containers_to_end(dockerd, 5) == []
    if at == "running":
        await asyncio.sleep(0.2)
        Reaper(tmp_path).reap()
    assert [*(tmp_path / "leases").iterdir()] == []
