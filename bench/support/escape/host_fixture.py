"""Sets up the host as an attacker wants it: secrets in their usual places, services and a victim process. All is
removed at the end.
"""

import asyncio
import contextlib
import ctypes
import fcntl
import os
import platform
import pty
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, Self

METADATA: Final = ("169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200")
OWN_ADDRESS: Final = "10.77.0.1"
KEY: Final = "footplate-escape"
USER_KEYRING: Final = -4
_SIOCSIFADDR, _SIOCSIFFLAGS = 0x8916, 0x8914
_VICTIM: Final = """
import ctypes, os, sys, time
secret = ctypes.create_string_buffer(os.environ["VICTIM_MEMORY"].encode())
held = os.open(sys.argv[1], os.O_RDONLY)
os.dup2(held, 9)
os.unlink(sys.argv[1])
libc = ctypes.CDLL(None)
libc.prctl(15, sys.argv[2][:15].encode(), 0, 0, 0)
print(ctypes.addressof(secret), flush=True)
time.sleep(100000)
"""
_NUMBERS: Final = {
    "x86_64": {
        "add_key": 248, "request_key": 249, "keyctl": 250, "open_by_handle_at": 304, "setns": 308,
        "process_vm_readv": 310, "io_setup": 206,
    },
    "aarch64": {
        "add_key": 217, "request_key": 218, "keyctl": 219, "open_by_handle_at": 265, "setns": 268,
        "process_vm_readv": 270, "io_setup": 0,
    },
}  # fmt: skip
_SAME_EVERYWHERE: Final = {"pidfd_send_signal": 424, "open_tree": 428, "pidfd_open": 434, "pidfd_getfd": 438}


class HostFixture:
    def __init__(self, directory: Path, *, own_network: bool) -> None:
        self.directory = directory
        self._own_network = own_network
        self.received: Counter[str] = Counter()
        """The number of messages, by the name of the listener."""
        self.victim: subprocess.Popen[bytes] | None = None
        self.core_pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
        self.fields: dict[str, str] = {}
        """Values for the attempts. An attacker is assumed to know every path, port and pid."""
        self._tokens: dict[str, str] = {}
        self._pty = pty.openpty()
        self._server_files: list[socket.socket] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def create(cls, *, own_network: bool) -> AsyncIterator[Self]:
        """Sets up the host. `own_network`: this process is alone in its network namespace, so it may add addresses."""
        directory = new_directory("footplate-escape-")
        host = cls(directory, own_network=own_network)
        loop = asyncio.get_running_loop()
        watched = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGIO)
        try:
            host._write_files()
            await host._listen()
            host._start_victim()
            host._store_key()
            for number in watched:
                loop.add_signal_handler(number, host._count_message, "worker")
            yield host
        finally:
            for number in watched:
                loop.remove_signal_handler(number)
            host._close()
            await asyncio.to_thread(shutil.rmtree, directory)

    def token(self, name: str) -> str:
        """Returns a random token that exists only at the named place."""
        return self._tokens.setdefault(name, secrets.token_hex(8))

    def path(self, name: str) -> Path:
        return self.directory / name

    def write_token(self, name: str, path: Path | None = None) -> Path:
        path = path or self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.token(name) + "\n")
        return path

    def read_terminal(self) -> bytes:
        """Returns what was written to the terminal of a user on the host."""
        os.set_blocking(self._pty[0], False)
        try:
            return os.read(self._pty[0], 1 << 16)
        except BlockingIOError:
            return b""

    def count_refused_descriptors(self) -> int:
        """Returns 1 if this process can no longer pass a descriptor, as a worker does for every command."""
        one, other = socket.socketpair()
        with one, other:
            try:
                socket.send_fds(one, [b"x"], [one.fileno()])
            except OSError:
                return 1
            return 0

    def _count_message(self, name: str) -> None:
        self.received[name] += 1

    def _write_files(self) -> None:
        secret = self.write_token("secret")
        self.write_token("data", self.path("data/objects/secret"))
        self.write_token("home", self.path("home/.ssh/id_ed25519"))
        self.path("victim").write_text("untouched")
        self.path("victim").chmod(0o666)
        self.path("open").mkdir()
        self.path("open").chmod(0o777)
        numbers = {**_NUMBERS.get(platform.machine(), {}), **_SAME_EVERYWHERE}
        self.fields = {
            "secret": str(secret),
            "data": str(self.path("data/objects/secret")),
            "home": str(self.path("home/.ssh/id_ed25519")),
            "victim": str(self.path("victim")),
            "directory": str(self.directory),
            "open": str(self.path("open")),
            "worker": str(os.getpid()),
            "terminal": os.ttyname(self._pty[1]),
            "handle": _file_handle(secret),
            "metadata": " ".join(METADATA),
            "own_address": OWN_ADDRESS,
            "key": KEY,
            "token": secrets.token_hex(8),
            **{f"NR_{name}": str(number) for name, number in numbers.items()},
        }
        device = secret.stat().st_dev
        self.fields |= {"major": str(os.major(device)), "minor": str(os.minor(device))}

    async def _listen(self) -> None:
        """Listens on its own addresses if this process has its own network, and on existing ones otherwise."""
        for number, address in enumerate((OWN_ADDRESS, *METADATA) if self._own_network else ()):
            _add_address(number, address)
        self.fields["port"] = str(await self._tcp("everywhere", socket.AF_INET, "0.0.0.0"))
        self.fields["loopback_port"] = str(await self._tcp("loopback", socket.AF_INET, "127.0.0.1"))
        self.fields["port6"] = str(await self._tcp("loopback6", socket.AF_INET6, "::1"))
        for address in METADATA:
            with contextlib.suppress(OSError):
                await self._tcp("metadata", socket.AF_INET, address, 80)
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("0.0.0.0", 0))
        self.fields["udp_port"] = str(udp.getsockname()[1])
        self._datagrams("udp", udp)
        name = f"footplate-{self.token('abstract name')}"
        self.fields["abstract"] = name
        await self._stream("abstract", socket.AF_UNIX, f"\0{name}")
        datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        datagrams.bind(f"\0{name}-d")
        self._datagrams("abstract", datagrams)
        self.fields["docker"] = str(self.path("docker.sock"))
        await self._stream("docker", socket.AF_UNIX, self.fields["docker"])
        self.path("docker.sock").chmod(0o666)

    async def _tcp(self, name: str, family: int, host: str, port: int = 0) -> int:
        return await self._stream(name, family, (host, port))

    async def _stream(self, name: str, family: int, address: object) -> int:
        """Starts a stream listener, and returns its port, if it has one."""
        listener = socket.socket(family, socket.SOCK_STREAM)
        if family != socket.AF_UNIX:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)  # pyrefly: ignore[bad-argument-type]
        listener.listen()
        listener.setblocking(False)
        self._server_files.append(listener)

        def accept() -> None:
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                self._count_message(name)

        asyncio.get_running_loop().add_reader(listener, accept)
        return 0 if family == socket.AF_UNIX else int(listener.getsockname()[1])

    def _datagrams(self, name: str, listener: socket.socket) -> None:
        listener.setblocking(False)
        self._server_files.append(listener)

        def receive() -> None:
            with contextlib.suppress(BlockingIOError):
                listener.recv(4096)
                self._count_message(name)

        asyncio.get_running_loop().add_reader(listener, receive)

    def _start_victim(self) -> None:
        held = self.write_token("held", self.path("held"))
        variables = {"VICTIM_KEY": self.token("variable"), "VICTIM_MEMORY": self.token("memory")}
        argv = [sys.executable, "-I", "-S", "-c", _VICTIM, str(held), self.token("name"), self.token("argument")]
        self.victim = subprocess.Popen(argv, env=variables, stdout=subprocess.PIPE)
        assert self.victim.stdout is not None
        self.fields |= {"pid": str(self.victim.pid), "memory": self.victim.stdout.readline().decode().strip()}

    def victim_state(self) -> dict[str, str]:
        assert self.victim is not None
        lines = Path(f"/proc/{self.victim.pid}/status").read_text().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def _store_key(self) -> None:
        """Stores a secret in the kernel's keyring of the worker's user."""
        payload = self.token("key").encode()
        libc = ctypes.CDLL(None)
        number = int(self.fields.get("NR_add_key", -1))
        libc.syscall(number, b"user", KEY.encode(), payload, ctypes.c_size_t(len(payload)), USER_KEYRING)

    def has_key(self, description: str) -> bool:
        libc = ctypes.CDLL(None)
        search = 10  # KEYCTL_SEARCH
        number = int(self.fields.get("NR_keyctl", -1))
        return int(libc.syscall(number, search, USER_KEYRING, b"user", description.encode(), 0)) > 0

    def _close(self) -> None:
        loop = asyncio.get_running_loop()
        for listener in self._server_files:
            loop.remove_reader(listener)
            listener.close()
        if self.victim is not None:
            self.victim.kill()
            self.victim.wait()
            assert self.victim.stdout is not None
            self.victim.stdout.close()
        for fd in self._pty:
            os.close(fd)


def new_directory(prefix: str) -> Path:
    """Creates a directory that every user of the machine may enter."""
    directory = Path(tempfile.mkdtemp(prefix=prefix))
    directory.chmod(0o755)
    return directory


def enable_loopback() -> None:
    """Brings up the loopback interface in a new network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        fcntl.ioctl(line.fileno(), _SIOCSIFFLAGS, b"lo".ljust(16, b"\0") + (1).to_bytes(2, sys.byteorder) + bytes(22))


def _add_address(number: int, address: str) -> None:
    """Adds an address to the loopback interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        where = socket.AF_INET.to_bytes(2, sys.byteorder) + bytes(2) + socket.inet_aton(address) + bytes(8)
        fcntl.ioctl(line.fileno(), _SIOCSIFADDR, f"lo:{number}".encode().ljust(16, b"\0") + where.ljust(24, b"\0"))


def _file_handle(path: Path) -> str:
    """Returns the handle by which the kernel opens the file without its path, for callers that are allowed to."""
    buffer = ctypes.create_string_buffer((128).to_bytes(4, sys.byteorder) + bytes(132), 136)
    mount = ctypes.c_int()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.name_to_handle_at(-100, str(path).encode(), buffer, ctypes.byref(mount), 0) != 0:
        return ""
    size = int.from_bytes(buffer.raw[:4], sys.byteorder)
    return buffer.raw[: 8 + size].hex()
