"""Attacks from inside a sandbox that once succeeded. None of them works any more."""

import asyncio
import contextlib
import ctypes
import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import psutil
import pytest

from footplate.domain.agents.environment_config import Backend, EnvironmentConfig
from footplate.domain.errors import InvalidRequest
from footplate.domain.network.command_network_access import Network
from footplate.domain.ports.engine import OpenRequest
from footplate.domain.projects.allowed_directories import AllowedRoots
from footplate.environments.base_environment import BaseEnvironment
from footplate.environments.factory import SandboxFactory
from footplate.environments.isolation import disk_usage
from footplate.environments.isolation.disk_watch import DiskWatch
from footplate.environments.isolation.filesystem_view import check_named_directory
from footplate.environments.isolation.resource_limits import SandboxLimits
from footplate.environments.sandbox.probe import SandboxProbe
from footplate.environments.session_directories import WORKSPACES, remove_session_directories
from footplate.lease_clock import lease_clock
from footplate.proxy.model_proxy import ModelProxy

from .conftest import UID

pytestmark = pytest.mark.timing

MIB = 1 << 20
CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")
BACKEND = Backend(name="sandbox", network=Network(), can_limit_network=True)
FILE_MAX = Path("/proc/sys/fs/file-max")


@pytest.fixture
def backend() -> str:
    return "sandbox"


@contextlib.asynccontextmanager
async def open_sandbox(
    sandbox_host: SandboxProbe | None,
    root: Path,
    *,
    limits: SandboxLimits | None = None,
    directory: Path | None = None,
    hidden: Sequence[Path] = (),
    lease: float = 100,
) -> AsyncIterator[BaseEnvironment]:
    """Opens a sandbox the way a worker does."""
    if sandbox_host is None:
        pytest.skip("no sandbox can be made on this machine")
    context = json.dumps({"directory": str(directory)} if directory else {})
    environments = SandboxFactory(
        root,
        BACKEND,
        sandbox_host.host,
        uid=UID,
        allowed_roots=AllowedRoots({"org": ["/"]}),
        hidden=hidden,
        limits=limits,
    )
    async with ModelProxy({}) as proxy:
        models = proxy.grant(deadline=lease_clock() + lease)
        environment = await environments.open_environment(
            OpenRequest(
                organisation="org",
                session_id="session",
                deadline=lease_clock() + lease,
                variables={"FOOTPLATE_CONTEXT": context},
                config=EnvironmentConfig(),
                models=models,
            )
        )
        assert isinstance(environment, BaseEnvironment)
        try:
            yield environment
        finally:
            await environment.aclose()
            await models.aclose()


async def test_no_signal_reaches_the_init_process(environment: BaseEnvironment) -> None:
    result = await environment.shell("for n in $(seq 1 64); do kill -$n 1 2>/dev/null; done; echo lives", timeout=10)
    assert (result.stdout, result.error) == (b"lives\n", "")


@pytest.mark.parametrize(
    "writer", ["head -c 200M /dev/zero | tr '\\0' 7", "head -c 200M /dev/zero", "yes 0", "echo four"]
)
async def test_a_command_that_writes_to_the_shells_status_ends_the_shell(
    environment: BaseEnvironment, writer: str
) -> None:
    """The worker reads one short number from that descriptor, and neither trusts nor buffers anything else."""
    before = psutil.Process().memory_info().rss
    result = await environment.shell(f"({writer}) >&11; sleep 60", timeout=20)
    assert result.exit_code is None
    assert result.duration < 18
    assert psutil.Process().memory_info().rss - before < 20 * MIB
    assert (await environment.shell("echo next", timeout=10)).stdout == b"next\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only a root worker's commands can be root's")
async def test_the_kernels_settings_cannot_be_written_by_roots_own_commands(
    sandbox_host: SandboxProbe | None, tmp_path: Path
) -> None:
    """In a directory owned by root, a root worker's commands are root to the kernel, which checks no capability."""
    named = tmp_path / "named"
    named.mkdir()
    before = CORE_PATTERN.read_text()  # noqa: ASYNC240 - the kernel responds at once
    async with open_sandbox(sandbox_host, tmp_path, directory=named) as environment:
        written = await environment.shell(
            "find /proc/sys /proc/irq /proc/bus /proc/fs -type f -writable 2>/dev/null | wc -l\n"
            "cat /proc/sys/kernel/core_pattern > /tmp/pattern && cat /tmp/pattern > /proc/sys/kernel/core_pattern",
            timeout=20,
        )
        hidden = await environment.shell("cat /proc/cmdline /proc/kpagecount /proc/slabinfo | wc -c", timeout=10)
    assert written.stdout == b"0\n"
    assert b"Read-only file system" in written.stderr
    assert hidden.stdout == b"0\n"
    assert CORE_PATTERN.read_text() == before  # noqa: ASYNC240


async def test_no_crash_starts_the_machines_crash_handler(environment: BaseEnvironment) -> None:
    """With a limit of 0 the kernel starts the machine's crash handler, as root; with 1 it does not."""
    tries = "import resource; resource.setrlimit(4, (0, 0)); resource.prlimit(0, 4, (0, 0))"
    result = await environment.shell(f'exec python3 -c "{tries}; print(resource.getrlimit(4))"', timeout=10)
    assert result.stdout == b"(1, 1)\n", result.stderr


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("libc.syscall(206, 128, ctypes.byref(ctypes.c_ulong(0)))", "ENOSYS"),  # io_setup
        ("libc.fallocate(os.open('f', os.O_RDWR | os.O_CREAT), 0, 0, 1 << 20)", "ENOTSUP"),
        ("libc.socket(16, 3, 15)", "ENOSYS"),  # netlink, uevents
        ("libc.socket(16, 3, 12)", "ENOSYS"),  # netlink, netfilter
        ("libc.socket(2, 1, 132)", "ENOSYS"),  # SCTP
        ("libc.socket(40, 1, 0)", "ENOSYS"),  # AF_VSOCK
        ("libc.socket(16, 3, 0) - 10**6", "0"),  # netlink, routes: allowed
    ],
)
async def test_the_filter_refuses_system_calls(environment: BaseEnvironment, call: str, error: str) -> None:
    program = (
        "import ctypes, errno, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"assert {call} < 0\nprint(errno.errorcode.get(ctypes.get_errno(), 0))"
    )
    result = await environment.run(["python3", "-c", program], timeout=10)
    assert result.stdout.decode().strip() == error, result.stderr
    assert ctypes.sizeof(ctypes.c_ulong) == 8


@pytest.mark.parametrize(
    "directory",
    ["/", "/etc/cron.d", "/usr/local", "/run/user/1000", "/proc/1", "/dev/shm", "/sys/kernel", "/var", "/tmp"],
)
def test_system_directories_cannot_be_named(directory: str) -> None:
    with pytest.raises(InvalidRequest, match="system or shared directory"):
        check_named_directory(Path(directory), [])


def test_other_directories_can_be_named() -> None:
    for directory in ("/home/ada", "/srv/project", "/usrlocal", "/var/www", "/tmp/x", "/root"):
        check_named_directory(Path(directory), [])


async def test_a_full_disk_ends_the_sandbox_and_no_file_grows(
    sandbox_host: SandboxProbe | None, tmp_path: Path, until: Callable[..., object]
) -> None:
    limits = SandboxLimits(disk=20 * MIB)
    async with open_sandbox(sandbox_host, tmp_path, limits=limits) as environment:
        # One command: on a busy machine the files may be measured before the last one is written.
        write = "for number in 0 1 2; do head -c 19M /dev/urandom > $number; done; sleep 90"
        result = await environment.shell(write, timeout=100)
        assert "delete some" in result.error
        assert result.duration < 80
        refused = await environment.shell("echo more > more; head -c 1M /dev/zero >> 0", timeout=10)
        assert refused.exit_code != 0
        assert "delete some" in refused.error
    tree = tmp_path / WORKSPACES / "org" / "session"
    full = sum(file.stat().st_size for file in tree.iterdir())
    async with open_sandbox(sandbox_host, tmp_path, limits=limits) as environment:  # the next turn
        assert (await environment.shell("echo more > more", timeout=10)).exit_code != 0
        with pytest.raises(OSError, match="large"):
            await environment.write("other", b"text")
        assert sum(file.stat().st_size for file in tree.iterdir()) == full
        await environment.shell("rm -f 0 1 2; sleep 5", timeout=10)
        again = await environment.shell("echo more > more && cat more", timeout=10)
        assert (again.stdout, again.error) == (b"more\n", "")


async def test_background_jobs_cannot_fill_the_disk_between_commands(
    sandbox_host: SandboxProbe | None, tmp_path: Path
) -> None:
    async with open_sandbox(sandbox_host, tmp_path, limits=SandboxLimits(disk=20 * MIB)) as environment:
        script = "while :; do head -c 1M /dev/zero > $RANDOM$RANDOM; sleep 0.02; done"
        await environment.shell(f"setsid bash -c '{script}' >/dev/null 2>&1 & disown", timeout=10)
        await asyncio.sleep(6)
        size = disk_usage.measure_usage(str(tmp_path / WORKSPACES / "org" / "session"))
        await asyncio.sleep(1)
        assert 20 * MIB < size == disk_usage.measure_usage(str(tmp_path / WORKSPACES / "org" / "session"))
        assert "were killed" in (await environment.shell("true", timeout=10)).error


async def test_a_disk_that_fills_fast_is_counted_sooner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting a large tree takes long and is done rarely, so the free space is checked in between."""
    counts = []
    ended = asyncio.Event()

    async def end() -> None:
        ended.set()

    def used() -> int:
        counts.append(1)
        return 200 * MIB

    watch = DiskWatch(tmp_path, [tmp_path], 100 * MIB)
    free = iter([1000 * MIB, 1000 * MIB, 800 * MIB])
    monkeypatch.setattr(watch, "_free", lambda: next(free))
    monkeypatch.setattr(watch, "_used", used)
    monkeypatch.setattr("footplate.environments.isolation.disk_watch._MEASURE_INTERVAL", 3600)
    monkeypatch.setattr("footplate.environments.isolation.disk_watch._FREE_SPACE_INTERVAL", 0.01)
    task = asyncio.create_task(watch.watch(end))
    await asyncio.wait_for(ended.wait(), 5)
    task.cancel()
    assert counts == [1]
    assert DiskWatch(tmp_path, [tmp_path], 100 * MIB).is_full


def test_empty_files_count_towards_the_limit(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / str(number)).touch()
    assert disk_usage.measure_usage(str(tmp_path)) >= 100 * disk_usage.MIN_FILE_BYTES


async def test_a_very_deep_tree_is_deleted(sandbox_host: SandboxProbe | None, tmp_path: Path) -> None:
    script = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"
    async with open_sandbox(sandbox_host, tmp_path) as environment:
        assert (await environment.run(["python3", "-c", script], timeout=30)).exit_code == 0
    await remove_session_directories(tmp_path / WORKSPACES, "org", "session")
    assert list((tmp_path / WORKSPACES / "org").iterdir()) == []


async def test_one_sandbox_cannot_use_all_open_files_of_the_machine(environment: BaseEnvironment) -> None:
    found = int((await environment.shell("ulimit -Hn", timeout=10)).stdout)
    half = int(FILE_MAX.read_text()) // 2  # noqa: ASYNC240 - the kernel responds at once
    assert found * SandboxLimits().pids <= max(half, 512 * SandboxLimits().pids)
