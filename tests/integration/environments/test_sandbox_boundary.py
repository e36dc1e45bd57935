"""Checks the boundary of a sandbox layer by layer: what is mounted, what can be written, and which rights remain.

Many layers back up another one, so an attack may still fail when one of them is missing. All checks share two
sandboxes: one in the session's own directory, and one in a directory that a user named. In the second, a root worker's
commands are root to the kernel.
"""

import asyncio
import errno
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from footplate.environments.isolation.filesystem_view import python_path
from footplate.environments.isolation.isolated_environment import EnclosedEnvironment
from footplate.environments.isolation.resource_limits import SandboxLimits
from footplate.environments.sandbox.probe import SandboxProbe

from .test_sandbox_attacks import open_sandbox

COMMAND_TIMEOUT = 120
"""Seconds for one command. A busy machine may need many of them, and no check depends on the number."""
PIDS = 345
PREFIX = Path(sys.base_prefix).resolve()
"""The interpreter that runs inside. Unless it is below /usr, it is mounted by itself."""
SYSTEM_DIRECTORIES = [
    path for path in map(Path, ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")) if path.exists()
]
DEVICES = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")}
SYSTEM_FILES = {
    f"/etc/{name}"
    for name in (
        "alternatives", "ca-certificates", "debian_version", "group", "hosts", "ld.so.cache", "ld.so.conf",
        "ld.so.conf.d", "localtime", "magic", "mime.types", "os-release", "passwd", "pki/ca-trust", "pki/tls/certs",
        "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "timezone",
    )
}  # fmt: skip
"""Not every machine has all of them."""
LIST_DIRECTORIES = "import json, os, sys; print(json.dumps([sorted(os.listdir(path)) for path in sys.argv[1:]]))"
CREATE_FILES = """
import errno, json, sys, tempfile
found = []
for path in sys.argv[1:]:
    try:
        tempfile.TemporaryFile(dir=path).close()
        found.append("created")
    except OSError as error:
        found.append(errno.errorcode[error.errno])
print(json.dumps(found))
"""
MAKE_USER_NAMESPACES = """
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
new_user_namespace, child_signal = 0x10000000, 17
clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
found = []
for call in (
    lambda: libc.unshare(new_user_namespace),
    lambda: libc.syscall(clone, new_user_namespace | child_signal, 0, 0, 0, 0) or os._exit(0),
):
    found.append(errno.errorcode[ctypes.get_errno()] if call() < 0 else "made")
print(json.dumps(found))
"""
JOIN_AND_MAKE_USER_NAMESPACE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
new_user_namespace = 0x10000000
if libc.setns(os.open(sys.argv[1], os.O_RDONLY), new_user_namespace):
    sys.exit(f"setns: {os.strerror(ctypes.get_errno())}")
print(ctypes.get_errno() if libc.unshare(new_user_namespace) else 0)
"""


@dataclass(frozen=True, kw_only=True)
class OpenedSandbox:
    environment: EnclosedEnvironment
    tree: str
    """The working directory, as a path inside."""
    named: bool
    """Whether a user named the tree. Then Footplate's data directory lies in it."""
    data: Path
    """Footplate's data directory, as a path on the host."""

    async def run(self, *argv: str) -> str:
        result = await self.environment.run(argv, timeout=COMMAND_TIMEOUT)
        assert (result.exit_code, result.stderr) == (0, b"")
        return result.stdout.decode()

    async def run_python(self, program: str, *arguments: str) -> list[object]:
        found = json.loads(await self.run(python_path(), "-I", "-S", "-c", program, *arguments))
        assert isinstance(found, list)
        return found

    async def mounts(self) -> dict[str, set[str]]:
        """The options of each mount, by its path. Without those below /proc, which only hide or protect."""
        lines = [line.split() for line in (await self.run("cat", "/proc/self/mountinfo")).splitlines()]
        return {fields[4]: set(fields[5].split(",")) for fields in lines if not fields[4].startswith("/proc/")}


@pytest.fixture(scope="module", params=["own", "named"])
async def sandbox(
    request: pytest.FixtureRequest, sandbox_host: SandboxProbe | None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[OpenedSandbox]:
    directory = tmp_path_factory.mktemp("boundary").resolve()
    named = request.param == "named"
    data = directory / "below" / "data"
    data.mkdir(parents=True)
    limits = SandboxLimits(pids=PIDS)
    async with open_sandbox(
        sandbox_host, data, limits=limits, directory=directory if named else None, hidden=[data], lease=600
    ) as environment:
        assert isinstance(environment, EnclosedEnvironment)
        yield OpenedSandbox(
            environment=environment,
            tree=str(directory) if named else "/workspace",
            named=named,
            data=data,
        )


def interpreter_mounts() -> set[str]:
    return set() if PREFIX.is_relative_to("/usr") else {str(PREFIX)}


def data_mounts(sandbox: OpenedSandbox) -> tuple[set[str], set[str]]:
    """In a named tree: the directory above the data directory, which must stay in place, and the data directory."""
    return ({str(sandbox.data.parent)}, {str(sandbox.data)}) if sandbox.named else (set(), set())


async def test_only_listed_directories_are_mounted(sandbox: OpenedSandbox) -> None:
    found = {path for path in await sandbox.mounts() if path not in SYSTEM_FILES}
    system = {str(path) for path in SYSTEM_DIRECTORIES if not path.is_symlink()}
    own = {"/home/agent", "/mnt/session/outputs", "/mnt/session/uploads", "/run/footplate", "/run/footplate-proxy"}
    pseudo = {"/", "/proc", "/dev", "/dev/pts", "/dev/shm", "/tmp"}
    above, data = data_mounts(sandbox)
    expected = {"/usr", *system, *pseudo, *DEVICES, *own, *interpreter_mounts(), sandbox.tree, *above, *data}
    assert found == expected


async def test_the_root_directory_shows_nothing_else_of_the_host(sandbox: OpenedSandbox) -> None:
    [found] = await sandbox.run_python(LIST_DIRECTORIES, "/")
    made = {"dev", "etc", "home", "mnt", "proc", "run", "tmp", "usr", "var", "workspace"}
    system = {path.name for path in SYSTEM_DIRECTORIES}
    parents = {Path(path).parts[1] for path in (sandbox.tree, *interpreter_mounts())}
    assert found == sorted(made | system | parents)


async def test_only_the_sessions_own_directories_are_mounted_writable(sandbox: OpenedSandbox) -> None:
    mounts = await sandbox.mounts()
    found = {path for path, options in mounts.items() if "ro" not in options} - DEVICES
    above, _ = data_mounts(sandbox)
    own = {"/home/agent", "/mnt/session/outputs", sandbox.tree}
    assert found == {*own, *above, "/proc", "/dev/pts", "/dev/shm", "/tmp"}


async def test_no_file_can_be_created_in_the_system(sandbox: OpenedSandbox) -> None:
    protected = ["/", "/usr", "/usr/bin", "/etc", "/var", "/dev", "/run/footplate", "/mnt/session/uploads"]
    writable = [sandbox.tree, "/home/agent", "/tmp"]
    found = await sandbox.run_python(CREATE_FILES, *protected, *writable)
    assert found == ["EROFS"] * len(protected) + ["created"] * len(writable)


async def test_no_command_makes_a_user_namespace(sandbox: OpenedSandbox) -> None:
    """The system call filter refuses both ways; the kernel itself would report ENOSPC (see the next test)."""
    assert await sandbox.run_python(MAKE_USER_NAMESPACES) == ["ENOSYS", "EPERM"]


async def test_the_kernel_makes_no_user_namespace_below_that_of_a_sandbox(sandbox: OpenedSandbox) -> None:
    """Even without the filter. The process that tries it joins from outside, so no filter applies to it."""
    await sandbox.run("true")
    enclosure = sandbox.environment._enclosure
    assert enclosure is not None
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        "-c",
        JOIN_AND_MAKE_USER_NAMESPACE,
        f"/proc/{enclosure.peer_pid}/ns/user",
        stdout=asyncio.subprocess.PIPE,
    )
    stdout, _ = await process.communicate()
    assert process.returncode == 0
    assert os.strerror(int(stdout)) == os.strerror(errno.ENOSPC)


async def test_commands_have_no_capability(sandbox: OpenedSandbox) -> None:
    status = await sandbox.run("cat", "/proc/self/status")
    fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    names = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    assert {name: int(fields[name], 16) for name in names} == dict.fromkeys(names, 0)
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


async def test_the_control_group_limits_the_number_of_processes(sandbox: OpenedSandbox) -> None:
    await sandbox.run("true")
    group, enclosure = sandbox.environment._find_cgroup(), sandbox.environment._enclosure
    if group is None:
        pytest.skip("no control groups can be made on this machine")
    assert enclosure is not None
    [directory] = [hierarchy.path for hierarchy in group._hierarchies if "pids" in hierarchy.controllers]
    assert (directory / "pids.max").read_text().strip() == str(PIDS)
    assert str(enclosure.peer_pid) in (directory / "cgroup.procs").read_text().split()


async def test_footplates_data_directory_is_hidden(sandbox: OpenedSandbox) -> None:
    assert (sandbox.data / "workspaces").is_dir()
    parent, data = str(sandbox.data.parent), str(sandbox.data)
    if not sandbox.named:
        listed = await sandbox.environment.run(["ls", data], timeout=COMMAND_TIMEOUT)
        assert b"No such file or directory" in listed.stderr
        return
    assert await sandbox.run_python(LIST_DIRECTORIES, parent, data) == [["data"], []]
    assert await sandbox.run_python(CREATE_FILES, data) == ["EROFS"]
    moved = await sandbox.environment.run(["mv", parent, f"{parent}-moved"], timeout=COMMAND_TIMEOUT)
    assert b"Device or resource busy" in moved.stderr
