"""Containers: how they are configured, images of every kind, failures and cleanup."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.environments.conftest import (
    BARE,
    ENGINE_PROBLEMS,
    FULL,
    SHARED_PIDS,
    UID,
    ProcessMark,
    wait_for_containers_to_end,
)

from footplate.cli.actions import doctor_checks
from footplate.config import Settings
from footplate.domain.agents.environment_config import Backend, EnvironmentConfig
from footplate.domain.errors import InvalidRequest, Unavailable
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.network.command_network_access import Network
from footplate.domain.ports.engine import OpenRequest
from footplate.domain.projects.allowed_directories import AllowedRoots
from footplate.environments.docker import abandoned_containers, container_owner, labels
from footplate.environments.docker.container_spec import SOCKET_TARGET
from footplate.environments.docker.engine_api import NoContainer, connect_engine, find_container, remove_container
from footplate.environments.docker.environment import DockerEnvironment, DockerHost
from footplate.environments.docker.factory import NamedContainerFactory, WorkerSettings
from footplate.environments.docker.image_inspection import ImageRecipe
from footplate.environments.docker.portable_python import PortablePython
from footplate.environments.docker.probe import probe_docker
from footplate.environments.docker.rendezvous_socket import RendezvousSocket
from footplate.environments.isolation.resource_limits import SandboxLimits
from footplate.lease_clock import lease_clock
from footplate.proxy.allow_list_proxy import AllowListProxy
from footplate.proxy.model_proxy import ModelProxy
from footplate.stack.services.dockerd import Dockerd
from footplate.wiring.shared_components import get_backend

pytestmark = pytest.mark.timing

Until = Callable[..., Awaitable[float]]
ContainerOpener = Callable[..., Awaitable[DockerEnvironment]]
MIB = 1 << 20
DEFAULT_OPTIONS: Any = {"config": EnvironmentConfig(), "models": None}
REQUEST_SCRIPT = """exec 3<>/dev/tcp/127.0.0.1/{port}
printf 'GET {target} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n' >&3; head -n 1 <&3"""


@pytest.fixture(name="dockerd")
def dockerd_fixture(engine: Dockerd | None) -> Dockerd:
    if engine is None:
        pytest.skip(f"no private dockerd: {ENGINE_PROBLEMS[0]}")
    return engine


@pytest.fixture
async def opened(dockerd: Dockerd, tmp_path: Path, mark: ProcessMark) -> AsyncIterator[ContainerOpener]:
    environments: list[DockerEnvironment] = []

    async def open_one(
        image: str = FULL, *, session: str = "session", limits: SandboxLimits | None = None
    ) -> DockerEnvironment:
        worker_settings = WorkerSettings(
            root=tmp_path / "workspaces", uid=UID, worker="worker_1", limits=limits or SandboxLimits()
        )
        found = await probe_docker(
            dockerd.address, worker_settings, tmp_path / "docker", image_or_container=ImageRecipe(image=image)
        )
        variables = {**mark.env, "FOOTPLATE_TURN_ID": "turn_1"}
        environment = await found.factory.open_environment(
            OpenRequest(
                organisation="acme",
                session_id=session,
                deadline=lease_clock() + 60,
                variables=variables,
                config=EnvironmentConfig(),
            )
        )
        assert isinstance(environment, DockerEnvironment)
        environments.append(environment)
        return environment

    yield open_one
    for environment in environments:
        await environment.aclose()
    assert await wait_for_containers_to_end(dockerd, 5) == []


async def run_for_output(environment: DockerEnvironment, command: str) -> str:
    return (await environment.shell(command, timeout=20)).stdout.decode().strip()


async def test_a_container_is_created_with_limits_and_labels(opened: ContainerOpener, dockerd: Dockerd) -> None:
    environment = await opened()
    await environment.run(["true"])
    async with connect_engine(dockerd.address) as docker:
        (listed,) = await docker.containers.list()
        created = (await docker.containers.get(listed.id))._container
    host = created["HostConfig"]
    assert created["Config"]["User"] == f"{UID}:{UID}" if os.geteuid() == 0 else created["Config"]["User"]
    assert (host["ReadonlyRootfs"], host["NetworkMode"], host["CapDrop"], host["Privileged"]) == (
        True,
        "none",
        ["ALL"],
        False,
    )
    assert "no-new-privileges" in host["SecurityOpt"]
    assert (host["Memory"], host["PidsLimit"], host["NanoCpus"]) == (4 << 30, 1024, 2_000_000_000)
    assert not any(dockerd.address.removeprefix("unix://") in mount["Source"] for mount in created["Mounts"])
    container_labels = created["Config"]["Labels"]
    assert {
        name: container_labels[name] for name in (labels.ORGANISATION, labels.SESSION, labels.TURN, labels.WORKER)
    } == {
        labels.ORGANISATION: "acme",
        labels.SESSION: "session",
        labels.TURN: "turn_1",
        labels.WORKER: "worker_1",
    }
    assert container_owner.is_alive(container_labels[labels.OWNER]) is True


async def test_other_users_of_the_machine_do_not_reach_the_sockets(opened: ContainerOpener, tmp_path: Path) -> None:
    await (await opened()).run(["true"])
    assert stat.S_IMODE((tmp_path / "docker" / "sockets").stat().st_mode) == 0o700


FOREIGN_CLIENT = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(1))"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user")
async def test_a_connection_from_another_user_is_not_accepted() -> None:
    switch_user = ("/usr/bin/setpriv", "--reuid=61234", "--regid=61234", "--clear-groups")
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)  # noqa: PTH101
        with RendezvousSocket(Path(directory), "holder", user=UID) as rendezvous:
            accepting = asyncio.create_task(rendezvous.accept())
            stranger = await asyncio.create_subprocess_exec(
                *switch_user,
                "/usr/bin/python3",
                "-c",
                FOREIGN_CLIENT,
                str(rendezvous.path),
                stdout=asyncio.subprocess.PIPE,
            )
            output, _ = await stranger.communicate()
            assert not accepting.done()
            accepting.cancel()
    assert output == b"b''\n"


@pytest.mark.requirement("K6")
async def test_a_command_has_no_privileges_and_no_network(opened: ContainerOpener, tmp_path: Path) -> None:
    environment = await opened()
    status = await run_for_output(environment, "cat /proc/self/status")
    fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert {fields[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    assert await run_for_output(environment, "whoami; pwd; echo $HOME") == "agent\n/workspace\n/home/agent"
    assert await run_for_output(environment, "touch /usr/x /etc/x /run/x 2>&1 | grep -c 'Read-only file system'") == "3"
    assert (
        await run_for_output(environment, "cat /sys/class/net/*/operstate 2>/dev/null | wc -l; ls /sys/class/net")
        == "1\nlo"
    )
    assert (await environment.shell("touch /tmp/a ~/b /mnt/session/outputs/c d", timeout=20)).exit_code == 0
    assert (tmp_path / "workspaces/acme/session/d").is_file()
    assert (tmp_path / "workspaces/acme/session.state/home/b").is_file()
    assert (await environment.shell("touch /mnt/session/uploads/e", timeout=20)).exit_code != 0


async def test_the_socket_is_closed_after_the_start(opened: ContainerOpener) -> None:
    environment = await opened()
    await environment.run(["true"])
    assert environment._container is not None
    with socket.socket(socket.AF_UNIX) as connection, pytest.raises(ConnectionRefusedError):
        connection.connect(f"/proc/{environment._container.main_pid}/root{SOCKET_TARGET}")


async def test_an_image_that_has_only_sh(opened: ContainerOpener, mark: ProcessMark, until: Until) -> None:
    environment = await opened(BARE)
    result = await environment.shell("x=5; cd /tmp; f() { echo f; }; echo $OF_THE_IMAGE", timeout=20)
    assert (result.exit_code, result.stdout) == (0, b"yes\n")
    assert await run_for_output(environment, "echo $x; pwd; f") == "5\n/tmp\nf"
    assert (await environment.shell("if", timeout=20)).exit_code == 2
    assert await run_for_output(environment, "echo $x") == "5", "a syntax error did not end the shell"
    assert (await environment.shell("exit 7", timeout=20)).exit_code == 7
    assert await run_for_output(environment, "echo x$x") == "x"
    await environment.write("deep/file", b"\0written")
    assert await environment.read("deep/file") == b"\0written"
    assert [file.path for file in await environment.list_files()] == ["deep/file"]
    result = await environment.shell("echo > /data/volume; sleep 3401 & sleep 3402", timeout=0.3)
    assert (result.timed_out, result.stderr) == (True, b"")
    await until(lambda: mark.find_processes() == [])


async def test_memory_that_runs_out_is_explained(opened: ContainerOpener) -> None:
    environment = await opened(limits=SandboxLimits(memory=64 * MIB))
    result = await environment.run(["bash", "-c", "x=$(yes | head -c 200000000); echo never"])
    assert result.exit_code != 0
    assert "memory limit of 64 MiB" in result.error
    assert (await environment.run(["echo", "again"])).stdout == b"again\n"


async def test_a_container_is_removed_while_a_command_runs(
    opened: ContainerOpener, dockerd: Dockerd, mark: ProcessMark, until: Until
) -> None:
    environment = await opened()
    command = asyncio.create_task(environment.shell("sleep 3403", timeout=60))
    await until(lambda: "sleep 3403" in mark.list_command_lines())
    async with connect_engine(dockerd.address) as docker:
        (listed,) = await docker.containers.list()
        await listed.delete(force=True)
    result = await command
    assert result.exit_code == 137
    assert "the next command starts in a new one" in result.error
    assert (await environment.run(["echo", "fresh"])).stdout == b"fresh\n"


async def test_processes_end_with_the_turn_although_the_engine_died(
    opened: ContainerOpener, dockerd: Dockerd, mark: ProcessMark, until: Until
) -> None:
    """Containers outlive their engine. A turn's processes still end with it, and its container is removed later."""
    environment = await opened()
    command = asyncio.create_task(environment.shell("sleep 3404", timeout=60))
    await until(lambda: "sleep 3404" in mark.list_command_lines())
    SHARED_PIDS.update(child.pid for child in psutil.Process(dockerd.pid).children())
    await dockerd.kill()
    try:
        assert "sleep 3404" in mark.list_command_lines()
        await environment.aclose()
        assert mark.find_processes() == []
    finally:
        await dockerd.start()
        assert dockerd.pid is not None
        SHARED_PIDS.add(dockerd.pid)
    with pytest.raises(Unavailable):
        await command


async def test_the_result_of_a_setup_script_is_cached(dockerd: Dockerd, tmp_path: Path) -> None:
    worker_settings = WorkerSettings(root=tmp_path / "workspaces", uid=UID)
    setup = "mkdir /opt; date +%N > /opt/made; echo made"
    wanted = ImageRecipe(image=FULL, setup=setup, setup_network="none")
    outputs = []
    for _ in range(2):
        found = await probe_docker(dockerd.address, worker_settings, tmp_path / "docker", image_or_container=wanted)
        environment = await found.factory.open_environment(
            OpenRequest(
                organisation="acme",
                session_id="session",
                deadline=lease_clock() + 60,
                variables={},
                config=EnvironmentConfig(),
            )
        )
        outputs.append((await environment.shell("cat /opt/made; echo $PATH", timeout=20)).stdout)
        await environment.aclose()
    assert outputs[0] == outputs[1], "the script ran once"
    assert b"/usr/bin" in outputs[0], "the image's own variables are set"
    async with connect_engine(dockerd.address) as docker:
        base = await docker.images.inspect(FULL)
        await docker.images.delete(wanted.result_name(base["Id"]), force=True)
    assert await wait_for_containers_to_end(dockerd, 5) == []


async def test_a_failing_setup_script_is_reported(dockerd: Dockerd, tmp_path: Path) -> None:
    worker_settings = WorkerSettings(root=tmp_path / "workspaces", uid=UID)
    wanted = ImageRecipe(image=FULL, setup="echo so it goes; exit 3", setup_network="none")
    with pytest.raises(NoContainer, match=r"status 3:\nso it goes") as caught:
        await probe_docker(dockerd.address, worker_settings, tmp_path / "docker", image_or_container=wanted)
    assert "FOOTPLATE_DOCKER_SETUP" in caught.value.help_text
    assert await wait_for_containers_to_end(dockerd, 5) == []


@pytest.mark.parametrize(
    ("address", "image", "problem", "advice"),
    [
        ("unix:///no/such.sock", FULL, "does not respond", "apt install docker.io"),
        ("", "no-such-image:1", "no image 'no-such-image:1'", "docker pull no-such-image:1"),
    ],
)
async def test_a_missing_engine_or_image_is_reported(
    dockerd: Dockerd, tmp_path: Path, address: str, image: str, problem: str, advice: str
) -> None:
    worker_settings = WorkerSettings(root=tmp_path / "workspaces", uid=UID)
    with pytest.raises(NoContainer, match=problem) as caught:
        await probe_docker(
            address or dockerd.address,
            worker_settings,
            tmp_path / "docker",
            image_or_container=ImageRecipe(image=image),
        )
    assert advice in caught.value.help_text


async def test_a_directory_with_the_engines_socket_is_refused(dockerd: Dockerd, tmp_path: Path) -> None:
    worker_settings = WorkerSettings(root=tmp_path / "workspaces", uid=UID, allowed_roots=AllowedRoots({"acme": ["/"]}))
    found = await probe_docker(
        dockerd.address, worker_settings, tmp_path / "docker", image_or_container=ImageRecipe(image=FULL)
    )
    variables = {"FOOTPLATE_CONTEXT": json.dumps({"directory": str(dockerd.directory)})}
    with pytest.raises(InvalidRequest, match="Docker engine's socket"):
        await found.factory.open_environment(
            OpenRequest(
                organisation="acme",
                session_id="session",
                deadline=lease_clock() + 60,
                variables=variables,
                config=EnvironmentConfig(),
            )
        )


async def test_the_data_directory_inside_a_named_directory_is_hidden(dockerd: Dockerd, tmp_path: Path) -> None:
    """The data directory is hidden, and the directory above it cannot be moved."""
    project, data = tmp_path / "project", tmp_path / "project" / "deep" / "data"
    data.mkdir(parents=True)
    (data / "secret").write_text("of the worker")
    for directory in (project, project / "deep"):
        os.chown(directory, UID, UID)
    worker_settings = WorkerSettings(
        root=data / "workspaces", uid=UID, allowed_roots=AllowedRoots({"acme": ["/"]}), hidden=[data]
    )
    found = await probe_docker(
        dockerd.address, worker_settings, data / "docker", image_or_container=ImageRecipe(image=FULL)
    )
    variables = {"FOOTPLATE_CONTEXT": json.dumps({"directory": str(project)})}
    environment = await found.factory.open_environment(
        OpenRequest(
            organisation="acme",
            session_id="session",
            deadline=lease_clock() + 60,
            variables=variables,
            config=EnvironmentConfig(),
        )
    )
    try:
        result = await environment.run(
            ["bash", "-c", "ls -A deep/data; touch deep/data/x; mv deep gone; touch here; pwd"]
        )
    finally:
        await environment.aclose()
    assert result.stdout.decode().split() == [str(project)]
    assert (project / "here").stat().st_uid == UID
    assert sorted(path.name for path in project.iterdir()) == ["deep", "here"]


async def test_containers_of_dead_owners_are_removed(opened: ContainerOpener, dockerd: Dockerd, tmp_path: Path) -> None:
    """A container is removed if its owner is dead. If the owner is not visible here, its worker's lease decides."""
    environment = await opened()
    await environment.run(["true"])
    own_name = container_owner.owner_name(os.getpid())
    boot, namespace, *rest = own_name.split("-")
    owners = {
        "other-boot": f"{'0' * 16}-{namespace}-{'-'.join(rest)}",
        "dead": f"{boot}-{namespace}-{os.getpid()}-1",
        "unseen": f"{boot}-1-{'-'.join(rest)}",
    }
    sockets = tmp_path / "docker" / "sockets"
    (sockets / f"{owners['dead']}-0").touch()
    (sockets / f"{own_name}-0").touch()
    async with connect_engine(dockerd.address) as docker:
        for name, holder in owners.items():
            config: dict[str, Any] = {"Image": FULL, "Cmd": ["sleep", "60"], "HostConfig": {"NetworkMode": "none"}}
            config["Labels"] = {labels.OWNER: holder, labels.WORKER: name}
            created = await docker.containers.create(config, name=name)
            await created.start()
    assert sorted(removed.name for removed in await abandoned_containers.find_abandoned(dockerd.address)) == [
        "dead",
        "other-boot",
    ]
    settings = Settings(
        environment="docker", docker_image=FULL, docker_host=dockerd.address, data_dir=tmp_path / "data",
        database_url="postgresql:///none?host=/nowhere",
    )  # fmt: skip
    check = await doctor_checks.check_leftovers(settings)
    assert (check.state, " 2 containers," in check.detail) == ("warning", True)
    check_without_engine = await doctor_checks.check_leftovers(
        settings.model_copy(update={"docker_host": "unix:///no/such.sock"})
    )
    assert "an unknown number of containers (the Docker engine does not respond)" in check_without_engine.detail
    assert len(await abandoned_containers.remove_abandoned(dockerd.address, sockets=sockets)) == 2
    assert [path.name for path in sockets.iterdir()] == [f"{own_name}-0"]
    assert (await environment.run(["echo", "alive"])).stdout == b"alive\n"

    async def lapsed(worker: str) -> bool:
        return worker == "unseen"

    assert [
        container.name
        for container in await abandoned_containers.remove_abandoned(dockerd.address, is_lease_expired=lapsed)
    ] == ["unseen"]
    assert await abandoned_containers.remove_abandoned(dockerd.address, is_lease_expired=lapsed) == []


async def test_a_stopped_container_of_an_invisible_owner_is_removed_after_a_day(
    monkeypatch: pytest.MonkeyPatch, dockerd: Dockerd
) -> None:
    """A running container stays as long as its worker's lease is not known to be over."""
    boot, _, *rest = container_owner.owner_name(os.getpid()).split("-")
    async with connect_engine(dockerd.address) as docker:
        for name in ("stopped", "running"):
            config: dict[str, Any] = {"Image": FULL, "Cmd": ["sleep", "60"], "HostConfig": {"NetworkMode": "none"}}
            config["Labels"] = {labels.OWNER: f"{boot}-1-{'-'.join(rest)}"}
            created = await docker.containers.create(config, name=name)
            if name == "running":
                await created.start()
    assert await abandoned_containers.find_abandoned(dockerd.address) == []
    monkeypatch.setattr(abandoned_containers, "_MAX_STOPPED_AGE", -60.0)
    assert [removed.name for removed in await abandoned_containers.remove_abandoned(dockerd.address)] == ["stopped"]
    async with connect_engine(dockerd.address) as docker:
        await remove_container(docker, "running")


class TestNamedContainer:
    @pytest.fixture
    async def named(self, dockerd: Dockerd, tmp_path: Path) -> AsyncIterator[str]:
        for name in ("workspaces", "docker"):
            (tmp_path / name).mkdir()
        mounts = [f"{tmp_path / 'workspaces'}:/srv/trees", f"{tmp_path / 'docker'}:/srv/footplate:ro"]
        config: dict[str, Any] = {"Image": FULL, "Cmd": ["sleep", "3500"]}
        config["HostConfig"] = {"NetworkMode": "none", "Binds": mounts}
        async with connect_engine(dockerd.address) as docker:
            created = await docker.containers.create(config, name="of-the-user")
            await created.start()
        yield "of-the-user"
        async with connect_engine(dockerd.address) as docker:
            found = await find_container(docker, "of-the-user")
            assert found is not None
            assert found["State"]["Running"], "a container of the user is never ended"
            await found.delete(force=True)

    @pytest.fixture
    async def environment(
        self, dockerd: Dockerd, tmp_path: Path, mark: ProcessMark, named: str
    ) -> AsyncIterator[DockerEnvironment]:
        worker_settings = WorkerSettings(root=tmp_path / "workspaces", uid=UID)
        found = await probe_docker(dockerd.address, worker_settings, tmp_path / "docker", image_or_container=named)
        assert isinstance(found.factory, NamedContainerFactory)
        environment = await found.factory.open_environment(
            OpenRequest(
                organisation="acme",
                session_id="session",
                deadline=lease_clock() + 60,
                variables=mark.env,
                config=EnvironmentConfig(),
            )
        )
        assert isinstance(environment, DockerEnvironment)
        yield environment
        await environment.aclose()

    async def test_commands_run_beside_the_containers_own_processes(
        self, environment: DockerEnvironment, tmp_path: Path
    ) -> None:
        assert (
            await run_for_output(environment, "pwd; id -u; ps -e -o args= | grep -c '^sleep 3500'")
            == f"/srv/trees/acme/session\n{UID}\n1"
        )
        await environment.write("file", b"1")
        assert (tmp_path / "workspaces/acme/session/file").read_bytes() == b"1"
        status = await run_for_output(environment, "grep -E 'CapEff|NoNewPrivs' /proc/self/status")
        assert status.split() == ["CapEff:", "0" * 16, "NoNewPrivs:", "1"]

    @pytest.mark.parametrize("how", ["close", "guardian", "inside", "stopped"])
    async def test_only_the_turns_processes_end(
        self, environment: DockerEnvironment, mark: ProcessMark, until: Until, how: str
    ) -> None:
        script = "setsid sleep 3501 & (setsid bash -c '(trap \"\" TERM; sleep 3502 &)' &); sleep 3503"
        command = asyncio.create_task(environment.shell(script, timeout=60))
        await until(lambda: mark.list_command_lines() >= {"sleep 3501", "sleep 3502", "sleep 3503"})
        inside = "for p in /proc/[0-9]*; do case $(cat $p/cmdline 2>/dev/null | tr '\\0' ' ') in *container_init*) "
        if how in {"inside", "stopped"}:
            number = "9" if how == "inside" else "STOP"
            await environment.run(
                ["bash", "-c", f"{inside} kill -{number} ${{p##*/}} 2>/dev/null;; esac; done"], timeout=1
            )
        if how == "guardian":
            assert environment._guardian is not None
            os.kill(environment._guardian.pid, signal.SIGKILL)
        if how in {"close", "stopped"}:
            await environment.aclose()
        await until(lambda: mark.find_processes() == [])
        await asyncio.gather(command, return_exceptions=True)

    async def test_a_container_that_does_not_mount_the_files_is_refused(
        self, dockerd: Dockerd, tmp_path: Path, named: str
    ) -> None:
        worker_settings = WorkerSettings(root=tmp_path / "elsewhere", uid=UID)
        with pytest.raises(NoContainer, match="does not have the host directory") as caught:
            await probe_docker(dockerd.address, worker_settings, tmp_path / "docker", image_or_container=named)
        assert "docker run -v" in caught.value.help_text


async def test_mounted_sockets_and_the_environments_hosts(dockerd: Dockerd, tmp_path: Path) -> None:
    """The operator allows one of the engine's networks. The environment restricts it to one port of a host."""
    worker_settings = WorkerSettings(
        root=tmp_path / "workspaces",
        data=tmp_path,
        backend=Backend(name="docker", network=Network("open"), can_limit_network=True, supports_allow_lists=True),
        egress=AllowListProxy(AddressPolicy(["127.0.0.1"])),
        uid=UID,
    )
    found = await probe_docker(
        dockerd.address,
        worker_settings,
        tmp_path / "docker",
        image_or_container=ImageRecipe(image=FULL),
        network="host",
    )
    config = EnvironmentConfig(limited=True, hosts=("127.0.0.1:81",))
    async with ModelProxy({}) as proxy:
        models = proxy.grant(deadline=lease_clock() + 60)
        environment = await found.factory.open_environment(
            OpenRequest(
                organisation="acme",
                session_id="session",
                deadline=lease_clock() + 60,
                variables={},
                config=config,
                models=models,
            )
        )
        try:
            requests = [(3128, "http://127.0.0.1:80/"), (3128, "http://127.0.0.1:81/"), (3129, "/anthropic/v1/models")]
            statuses = [
                (await environment.run(["bash", "-c", REQUEST_SCRIPT.format(port=port, target=target)])).stdout.split()[
                    1
                ]
                for port, target in requests
            ]
            interfaces = await environment.shell("cut -d: -f1 < /proc/net/dev | tail -n +3 | tr -d ' '", timeout=20)
        finally:
            await environment.aclose()
            await models.aclose()
    assert statuses == [b"403", b"502", b"401"]
    assert interfaces.stdout == b"lo\n"
    assert [*(tmp_path / "leases").iterdir()] == []


async def test_the_network_of_a_named_container_cannot_be_limited(dockerd: Dockerd, tmp_path: Path) -> None:
    settings = Settings(environment="docker", docker_container="theirs")
    worker_settings = WorkerSettings(root=tmp_path / "workspaces", backend=get_backend(settings, "docker"), uid=UID)
    host = DockerHost(
        engine=dockerd.address, runtime=PortablePython(tmp_path, ""), rendezvous_dir=tmp_path, passwd_dir=tmp_path
    )
    with pytest.raises(InvalidRequest, match=r"config\.networking: the backend `docker` cannot limit the network"):
        await NamedContainerFactory(worker_settings, host, "theirs").open_environment(
            OpenRequest(
                organisation="acme",
                session_id="session",
                deadline=lease_clock() + 60,
                variables={},
                config=EnvironmentConfig(limited=True),
            )
        )


async def test_no_file_grows_on_a_full_disk(opened: ContainerOpener) -> None:
    environment = await opened(limits=SandboxLimits(disk=20 * MIB))
    filled = await environment.shell("for n in 0 1 2; do head -c 15M /dev/zero > $n; done; sleep 30", timeout=40)
    assert "delete some" in filled.error
    assert (await environment.shell("echo more > more", timeout=10)).exit_code != 0
    await environment.shell("rm 0 1 2; sleep 5", timeout=10)
    again = await environment.shell("echo more > more && cat more", timeout=10)
    assert (again.stdout, again.error) == (b"more\n", "")
