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
from tests.integration.environments.conftest import BARE, FULL, NO_ENGINE, NOT_OURS, UID, Mark, left_after

from footplate.cli import checks
from footplate.config import Settings
from footplate.domain.addresses import Reach
from footplate.domain.environments import Backend, EnvironmentConfig
from footplate.domain.errors import InvalidRequest, Unavailable
from footplate.domain.named_directories import NamedRoots
from footplate.domain.networks import Network
from footplate.environments.docker import holders, labels, sweep
from footplate.environments.docker.body import SOCKET
from footplate.environments.docker.engine import NoContainer, connected, container, remove
from footplate.environments.docker.environment import DockerEnvironment, Host
from footplate.environments.docker.images import Recipe
from footplate.environments.docker.meeting import Meeting
from footplate.environments.docker.opening import Ground, InNamedContainer
from footplate.environments.docker.probe import find
from footplate.environments.docker.runtime import Runtime
from footplate.environments.guardian import clock
from footplate.environments.sandbox.limits import Limits
from footplate.proxy.egress import AllowListProxy
from footplate.proxy.models import ModelProxy
from footplate.stack.dockerd import Dockerd
from footplate.wiring.parts import backend_of

pytestmark = pytest.mark.timing

Until = Callable[..., Awaitable[float]]
Opened = Callable[..., Awaitable[DockerEnvironment]]
MIB = 1 << 20
UNASKED: Any = {"config": EnvironmentConfig(), "models": None}
ASK = """exec 3<>/dev/tcp/127.0.0.1/{port}
printf 'GET {target} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n' >&3; head -n 1 <&3"""


@pytest.fixture(name="dockerd")
def dockerd_fixture(engine: Dockerd | None) -> Dockerd:
    if engine is None:
        pytest.skip(f"no private dockerd: {NO_ENGINE[0]}")
    return engine


@pytest.fixture
async def opened(dockerd: Dockerd, tmp_path: Path, mark: Mark) -> AsyncIterator[Opened]:
    environments: list[DockerEnvironment] = []

    async def open_one(
        image: str = FULL, *, session: str = "session", limits: Limits | None = None
    ) -> DockerEnvironment:
        worker_settings = Ground(root=tmp_path / "workspaces", uid=UID, worker="worker_1", limits=limits or Limits())
        found = await find(dockerd.address, worker_settings, tmp_path / "docker", wanted=Recipe(image=image))
        variables = {**mark.env, "FOOTPLATE_TURN_ID": "turn_1"}
        environment = await found.environments.open(
            "acme", session, deadline=clock() + 60, variables=variables, config=EnvironmentConfig(), models=None
        )
        assert isinstance(environment, DockerEnvironment)
        environments.append(environment)
        return environment

    yield open_one
    for environment in environments:
        await environment.aclose()
    assert await left_after(dockerd, 5) == []


async def printed(environment: DockerEnvironment, command: str) -> str:
    return (await environment.shell(command, timeout=20)).stdout.decode().strip()


async def test_what_a_container_is_made_like(opened: Opened, dockerd: Dockerd) -> None:
    environment = await opened()
    await environment.run(["true"])
    async with connected(dockerd.address) as docker:
        (listed,) = await docker.containers.list()
        made = (await docker.containers.get(listed.id))._container
    host = made["HostConfig"]
    assert made["Config"]["User"] == f"{UID}:{UID}" if os.geteuid() == 0 else made["Config"]["User"]
    assert (host["ReadonlyRootfs"], host["NetworkMode"], host["CapDrop"], host["Privileged"]) == (
        True,
        "none",
        ["ALL"],
        False,
    )
    assert "no-new-privileges" in host["SecurityOpt"]
    assert (host["Memory"], host["PidsLimit"], host["NanoCpus"]) == (4 << 30, 1024, 2_000_000_000)
    assert not any(dockerd.address.removeprefix("unix://") in mount["Source"] for mount in made["Mounts"])
    marks = made["Config"]["Labels"]
    assert {name: marks[name] for name in (labels.ORGANISATION, labels.SESSION, labels.TURN, labels.WORKER)} == {
        labels.ORGANISATION: "acme",
        labels.SESSION: "session",
        labels.TURN: "turn_1",
        labels.WORKER: "worker_1",
    }
    assert holders.lives(marks[labels.HOLDER]) is True


async def test_other_users_of_the_machine_do_not_reach_the_sockets(opened: Opened, tmp_path: Path) -> None:
    await (await opened()).run(["true"])
    assert stat.S_IMODE((tmp_path / "docker" / "sockets").stat().st_mode) == 0o700


STRANGER = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(1))"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user")
async def test_another_user_is_not_taken_for_a_container() -> None:
    become = ("/usr/bin/setpriv", "--reuid=61234", "--regid=61234", "--clear-groups")
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)  # noqa: PTH101
        with Meeting(Path(directory), "holder", user=UID) as place:
            accepting = asyncio.create_task(place.accept())
            stranger = await asyncio.create_subprocess_exec(
                *become, "/usr/bin/python3", "-c", STRANGER, str(place.path), stdout=asyncio.subprocess.PIPE
            )
            heard, _ = await stranger.communicate()
            assert not accepting.done()
            accepting.cancel()
    assert heard == b"b''\n"


@pytest.mark.requirement("K6")
async def test_what_a_command_sees(opened: Opened, tmp_path: Path) -> None:
    environment = await opened()
    status = await printed(environment, "cat /proc/self/status")
    fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert {fields[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    assert await printed(environment, "whoami; pwd; echo $HOME") == "agent\n/workspace\n/home/agent"
    assert await printed(environment, "touch /usr/x /etc/x /run/x 2>&1 | grep -c 'Read-only file system'") == "3"
    assert (
        await printed(environment, "cat /sys/class/net/*/operstate 2>/dev/null | wc -l; ls /sys/class/net") == "1\nlo"
    )
    assert (await environment.shell("touch /tmp/a ~/b /mnt/session/outputs/c d", timeout=20)).exit_code == 0
    assert (tmp_path / "workspaces/acme/session/d").is_file()
    assert (tmp_path / "workspaces/acme/session.state/home/b").is_file()
    assert (await environment.shell("touch /mnt/session/uploads/e", timeout=20)).exit_code != 0


async def test_nothing_answers_on_the_socket_any_more(opened: Opened) -> None:
    environment = await opened()
    await environment.run(["true"])
    assert environment._container is not None
    with socket.socket(socket.AF_UNIX) as connection, pytest.raises(ConnectionRefusedError):
        connection.connect(f"/proc/{environment._container.process}/root{SOCKET}")


async def test_an_image_with_nothing_but_a_plain_sh(opened: Opened, mark: Mark, until: Until) -> None:
    environment = await opened(BARE)
    result = await environment.shell("x=5; cd /tmp; f() { echo f; }; echo $OF_THE_IMAGE", timeout=20)
    assert (result.exit_code, result.stdout) == (0, b"yes\n")
    assert await printed(environment, "echo $x; pwd; f") == "5\n/tmp\nf"
    assert (await environment.shell("if", timeout=20)).exit_code == 2
    assert await printed(environment, "echo $x") == "5", "a syntax error did not end the shell"
    assert (await environment.shell("exit 7", timeout=20)).exit_code == 7
    assert await printed(environment, "echo x$x") == "x"
    await environment.write("deep/file", b"\0written")
    assert await environment.read("deep/file") == b"\0written"
    assert [file.path for file in await environment.list_files()] == ["deep/file"]
    result = await environment.shell("echo > /data/volume; sleep 3401 & sleep 3402", timeout=0.3)
    assert (result.timed_out, result.stderr) == (True, b"")
    await until(lambda: mark.processes() == [])


async def test_memory_that_runs_out_is_explained(opened: Opened) -> None:
    environment = await opened(limits=Limits(memory=64 * MIB))
    result = await environment.run(["bash", "-c", "x=$(yes | head -c 200000000); echo never"])
    assert result.exit_code != 0
    assert "memory limit is 64 MiB" in result.error
    assert (await environment.run(["echo", "again"])).stdout == b"again\n"


async def test_a_container_that_is_removed_under_a_command(
    opened: Opened, dockerd: Dockerd, mark: Mark, until: Until
) -> None:
    environment = await opened()
    command = asyncio.create_task(environment.shell("sleep 3403", timeout=60))
    await until(lambda: "sleep 3403" in mark.command_lines())
    async with connected(dockerd.address) as docker:
        (listed,) = await docker.containers.list()
        await listed.delete(force=True)
    result = await command
    assert result.exit_code == 137
    assert "the next command starts in a new one" in result.error
    assert (await environment.run(["echo", "fresh"])).stdout == b"fresh\n"


async def test_an_engine_that_dies(opened: Opened, dockerd: Dockerd, mark: Mark, until: Until) -> None:
    """Containers outlive their engine. A turn's processes still end with it, and its container is removed later."""
    environment = await opened()
    command = asyncio.create_task(environment.shell("sleep 3404", timeout=60))
    await until(lambda: "sleep 3404" in mark.command_lines())
    NOT_OURS.update(child.pid for child in psutil.Process(dockerd.pid).children())
    await dockerd.kill()
    try:
        assert "sleep 3404" in mark.command_lines()
        await environment.aclose()
        assert mark.processes() == []
    finally:
        await dockerd.start()
        assert dockerd.pid is not None
        NOT_OURS.add(dockerd.pid)
    with pytest.raises(Unavailable):
        await command


async def test_setup_script_and_its_cached_result(dockerd: Dockerd, tmp_path: Path) -> None:
    worker_settings = Ground(root=tmp_path / "workspaces", uid=UID)
    setup = "mkdir /opt; date +%N > /opt/made; echo made"
    wanted = Recipe(image=FULL, setup=setup, setup_network="none")
    seen = []
    for _ in range(2):
        found = await find(dockerd.address, worker_settings, tmp_path / "docker", wanted=wanted)
        environment = await found.environments.open(
            "acme", "session", deadline=clock() + 60, variables={}, config=EnvironmentConfig(), models=None
        )
        seen.append((await environment.shell("cat /opt/made; echo $PATH", timeout=20)).stdout)
        await environment.aclose()
    assert seen[0] == seen[1], "the script ran once"
    assert b"/usr/bin" in seen[0], "the image's own variables are set"
    async with connected(dockerd.address) as docker:
        base = await docker.images.inspect(FULL)
        await docker.images.delete(wanted.result(base["Id"]), force=True)
    assert await left_after(dockerd, 5) == []


async def test_a_setup_script_that_fails(dockerd: Dockerd, tmp_path: Path) -> None:
    worker_settings = Ground(root=tmp_path / "workspaces", uid=UID)
    wanted = Recipe(image=FULL, setup="echo so it goes; exit 3", setup_network="none")
    with pytest.raises(NoContainer, match=r"status 3:\nso it goes") as caught:
        await find(dockerd.address, worker_settings, tmp_path / "docker", wanted=wanted)
    assert "FOOTPLATE_DOCKER_SETUP" in caught.value.help_text
    assert await left_after(dockerd, 5) == []


@pytest.mark.parametrize(
    ("address", "image", "problem", "advice"),
    [
        ("unix:///no/such.sock", FULL, "does not respond", "apt install docker.io"),
        ("", "no-such-image:1", "no image 'no-such-image:1'", "docker pull no-such-image:1"),
    ],
)
async def test_what_is_missing_is_said(
    dockerd: Dockerd, tmp_path: Path, address: str, image: str, problem: str, advice: str
) -> None:
    worker_settings = Ground(root=tmp_path / "workspaces", uid=UID)
    with pytest.raises(NoContainer, match=problem) as caught:
        await find(address or dockerd.address, worker_settings, tmp_path / "docker", wanted=Recipe(image=image))
    assert advice in caught.value.help_text


async def test_a_directory_with_the_engines_socket_is_refused(dockerd: Dockerd, tmp_path: Path) -> None:
    worker_settings = Ground(root=tmp_path / "workspaces", uid=UID, named=NamedRoots({"acme": ["/"]}))
    found = await find(dockerd.address, worker_settings, tmp_path / "docker", wanted=Recipe(image=FULL))
    variables = {"FOOTPLATE_CONTEXT": json.dumps({"directory": str(dockerd.directory)})}
    with pytest.raises(InvalidRequest, match="docker engine's socket"):
        await found.environments.open(
            "acme", "session", deadline=clock() + 60, variables=variables, config=EnvironmentConfig(), models=None
        )


async def test_a_directory_with_our_own_data_in_it(dockerd: Dockerd, tmp_path: Path) -> None:
    """The data directory is hidden, and the directory above it cannot be moved."""
    project, data = tmp_path / "project", tmp_path / "project" / "deep" / "data"
    data.mkdir(parents=True)
    (data / "secret").write_text("of the worker")
    for place in (project, project / "deep"):
        os.chown(place, UID, UID)
    worker_settings = Ground(root=data / "workspaces", uid=UID, named=NamedRoots({"acme": ["/"]}), hidden=[data])
    found = await find(dockerd.address, worker_settings, data / "docker", wanted=Recipe(image=FULL))
    variables = {"FOOTPLATE_CONTEXT": json.dumps({"directory": str(project)})}
    environment = await found.environments.open(
        "acme", "session", deadline=clock() + 60, variables=variables, config=EnvironmentConfig(), models=None
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


async def test_sweep(opened: Opened, dockerd: Dockerd, tmp_path: Path) -> None:
    """A container is removed if its owner is dead. If the owner is not visible here, its worker's lease decides."""
    environment = await opened()
    await environment.run(["true"])
    here = holders.name(os.getpid())
    boot, namespace, *rest = here.split("-")
    marks = {
        "other-boot": f"{'0' * 16}-{namespace}-{'-'.join(rest)}",
        "dead": f"{boot}-{namespace}-{os.getpid()}-1",
        "unseen": f"{boot}-1-{'-'.join(rest)}",
    }
    sockets = tmp_path / "docker" / "sockets"
    (sockets / f"{marks['dead']}-0").touch()
    (sockets / f"{here}-0").touch()
    async with connected(dockerd.address) as docker:
        for name, holder in marks.items():
            config: dict[str, Any] = {"Image": FULL, "Cmd": ["sleep", "60"], "HostConfig": {"NetworkMode": "none"}}
            config["Labels"] = {labels.HOLDER: holder, labels.WORKER: name}
            made = await docker.containers.create(config, name=name)
            await made.start()
    assert sorted(left.name for left in await sweep.abandoned(dockerd.address)) == ["dead", "other-boot"]
    settings = Settings(
        environment="docker", docker_image=FULL, docker_host=dockerd.address, data_dir=tmp_path / "data",
        database_url="postgresql:///none?host=/nowhere",
    )  # fmt: skip
    told = await checks.leftovers(settings)
    assert (told.state, " 2 containers," in told.detail) == ("warning", True)
    silent = await checks.leftovers(settings.model_copy(update={"docker_host": "unix:///no/such.sock"}))
    assert "an unknown number of containers (the Docker engine does not respond)" in silent.detail
    assert len(await sweep.sweep(dockerd.address, sockets=sockets)) == 2
    assert [path.name for path in sockets.iterdir()] == [f"{here}-0"]
    assert (await environment.run(["echo", "alive"])).stdout == b"alive\n"

    async def lapsed(worker: str) -> bool:
        return worker == "unseen"

    assert [left.name for left in await sweep.sweep(dockerd.address, lapsed=lapsed)] == ["unseen"]
    assert await sweep.sweep(dockerd.address, lapsed=lapsed) == []


async def test_what_cannot_be_seen_is_let_be_for_a_day(monkeypatch: pytest.MonkeyPatch, dockerd: Dockerd) -> None:
    """A running container stays as long as its worker's lease is not known to be over."""
    boot, _, *rest = holders.name(os.getpid()).split("-")
    async with connected(dockerd.address) as docker:
        for name in ("stopped", "running"):
            config: dict[str, Any] = {"Image": FULL, "Cmd": ["sleep", "60"], "HostConfig": {"NetworkMode": "none"}}
            config["Labels"] = {labels.HOLDER: f"{boot}-1-{'-'.join(rest)}"}
            made = await docker.containers.create(config, name=name)
            if name == "running":
                await made.start()
    assert await sweep.abandoned(dockerd.address) == []
    monkeypatch.setattr(sweep, "_OLD", -60.0)
    assert [left.name for left in await sweep.sweep(dockerd.address)] == ["stopped"]
    async with connected(dockerd.address) as docker:
        await remove(docker, "running")


class TestNamed:
    @pytest.fixture
    async def named(self, dockerd: Dockerd, tmp_path: Path) -> AsyncIterator[str]:
        for name in ("workspaces", "docker"):
            (tmp_path / name).mkdir()
        mounts = [f"{tmp_path / 'workspaces'}:/srv/trees", f"{tmp_path / 'docker'}:/srv/footplate:ro"]
        config: dict[str, Any] = {"Image": FULL, "Cmd": ["sleep", "3500"]}
        config["HostConfig"] = {"NetworkMode": "none", "Binds": mounts}
        async with connected(dockerd.address) as docker:
            made = await docker.containers.create(config, name="of-the-user")
            await made.start()
        yield "of-the-user"
        async with connected(dockerd.address) as docker:
            there = await container(docker, "of-the-user")
            assert there is not None
            assert there["State"]["Running"], "a container of the user is never ended"
            await there.delete(force=True)

    @pytest.fixture
    async def environment(
        self, dockerd: Dockerd, tmp_path: Path, mark: Mark, named: str
    ) -> AsyncIterator[DockerEnvironment]:
        worker_settings = Ground(root=tmp_path / "workspaces", uid=UID)
        found = await find(dockerd.address, worker_settings, tmp_path / "docker", wanted=named)
        assert isinstance(found.environments, InNamedContainer)
        environment = await found.environments.open(
            "acme", "session", deadline=clock() + 60, variables=mark.env, config=EnvironmentConfig(), models=None
        )
        assert isinstance(environment, DockerEnvironment)
        yield environment
        await environment.aclose()

    async def test_commands_run_beside_what_runs_there(self, environment: DockerEnvironment, tmp_path: Path) -> None:
        assert (
            await printed(environment, "pwd; id -u; ps -e -o args= | grep -c '^sleep 3500'")
            == f"/srv/trees/acme/session\n{UID}\n1"
        )
        await environment.write("file", b"1")
        assert (tmp_path / "workspaces/acme/session/file").read_bytes() == b"1"
        status = await printed(environment, "grep -E 'CapEff|NoNewPrivs' /proc/self/status")
        assert status.split() == ["CapEff:", "0" * 16, "NoNewPrivs:", "1"]

    @pytest.mark.parametrize("how", ["close", "guardian", "inside", "stopped"])
    async def test_all_of_the_turn_ends_and_nothing_else(
        self, environment: DockerEnvironment, mark: Mark, until: Until, how: str
    ) -> None:
        script = "setsid sleep 3501 & (setsid bash -c '(trap \"\" TERM; sleep 3502 &)' &); sleep 3503"
        command = asyncio.create_task(environment.shell(script, timeout=60))
        await until(lambda: mark.command_lines() >= {"sleep 3501", "sleep 3502", "sleep 3503"})
        inside = "for p in /proc/[0-9]*; do case $(cat $p/cmdline 2>/dev/null | tr '\\0' ' ') in *container_main*) "
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
        await until(lambda: mark.processes() == [])
        await asyncio.gather(command, return_exceptions=True)

    async def test_one_that_does_not_see_the_files(self, dockerd: Dockerd, tmp_path: Path, named: str) -> None:
        worker_settings = Ground(root=tmp_path / "elsewhere", uid=UID)
        with pytest.raises(NoContainer, match="does not mount") as caught:
            await find(dockerd.address, worker_settings, tmp_path / "docker", wanted=named)
        assert "docker run -v" in caught.value.help_text


async def test_doors_and_an_environment_s_hosts(dockerd: Dockerd, tmp_path: Path) -> None:
    """The operator allows one of the engine's networks. The environment restricts it to one port of a host."""
    worker_settings = Ground(
        root=tmp_path / "workspaces",
        data=tmp_path,
        backend=Backend(name="docker", network=Network("open"), cuts_network=True, allow_lists=True),
        egress=AllowListProxy(Reach(["127.0.0.1"])),
        uid=UID,
    )
    found = await find(dockerd.address, worker_settings, tmp_path / "docker", wanted=Recipe(image=FULL), network="host")
    config = EnvironmentConfig(limited=True, hosts=("127.0.0.1:81",))
    async with ModelProxy({}) as proxy:
        models = proxy.grant(deadline=clock() + 60)
        environment = await found.environments.open(
            "acme", "session", deadline=clock() + 60, variables={}, config=config, models=models
        )
        try:
            asked = [(3128, "http://127.0.0.1:80/"), (3128, "http://127.0.0.1:81/"), (3129, "/anthropic/v1/models")]
            answers = [
                (await environment.run(["bash", "-c", ASK.format(port=port, target=target)])).stdout.split()[1]
                for port, target in asked
            ]
            interfaces = await environment.shell("cut -d: -f1 < /proc/net/dev | tail -n +3 | tr -d ' '", timeout=20)
        finally:
            await environment.aclose()
            await models.aclose()
    assert answers == [b"403", b"502", b"401"]
    assert interfaces.stdout == b"lo\n"
    assert [*(tmp_path / "leases").iterdir()] == []


async def test_a_named_container_s_network_cannot_be_limited(dockerd: Dockerd, tmp_path: Path) -> None:
    settings = Settings(environment="docker", docker_container="theirs")
    worker_settings = Ground(root=tmp_path / "workspaces", backend=backend_of(settings), uid=UID)
    host = Host(engine=dockerd.address, runtime=Runtime(tmp_path, ""), sockets=tmp_path, users=tmp_path)
    with pytest.raises(InvalidRequest, match=r"config\.networking: the backend `docker` cannot limit the network"):
        await InNamedContainer(worker_settings, host, "theirs").open(
            "acme", "session", deadline=clock() + 60, variables={}, config=EnvironmentConfig(limited=True), models=None
        )


async def test_a_full_disk_lets_no_file_grow(opened: Opened) -> None:
    environment = await opened(limits=Limits(disk=20 * MIB))
    filled = await environment.shell("for n in 0 1 2; do head -c 15M /dev/zero > $n; done; sleep 30", timeout=40)
    assert "delete some" in filled.error
    assert (await environment.shell("echo more > more", timeout=10)).exit_code != 0
    await environment.shell("rm 0 1 2; sleep 5", timeout=10)
    again = await environment.shell("echo more > more && cat more", timeout=10)
    assert (again.stdout, again.error) == (b"more\n", "")
