"""Starts a complete `footplate dev` as a user does, and lists its processes, ports and secrets."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from bench.prove.figure import require
from footplate.cli.profile import dev_server
from footplate.stack.free_ports import LOOPBACK, find_free_port

_READY: Final = b"Ctrl-C stops everything"
_PATIENCE: Final = 180.0


@dataclass(frozen=True, slots=True)
class DevServer:
    pid: int
    port: int
    data: Path

    @property
    def base_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def key(self) -> str:
        return dev_server.load_api_key(self.data) or ""

    def processes(self) -> Sequence[psutil.Process]:
        own = psutil.Process(self.pid)
        return [own, *own.children(recursive=True)]

    def listening_ports(self) -> list[int]:
        """Returns the ports that other users of the machine can reach: those in the host's network namespace."""
        found = set()
        for inode, port in _listeners().items():
            if any(inode in _sockets_of(process.pid) for process in self.processes()):
                found.add(port)
        return sorted(found)

    def secrets(self) -> dict[str, str]:
        """Returns all secrets, by the file that contains them."""
        names = ("api-key", "metrics-token", "postgres/password", "redis/password")
        return {name: (self.data / name).read_text().strip() for name in names}


@asynccontextmanager
async def open_dev_server() -> AsyncIterator[DevServer]:
    """Starts the server with a home directory that other users may enter, so its own file modes must protect it."""
    home = _open_home()
    port = find_free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "footplate", "dev", "--port", str(port), "--scripted", "demo"),
        env={"PATH": os.environ["PATH"], "HOME": str(home), "NO_COLOR": "1", "LANG": "C.UTF-8"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        assert process.stdout is not None
        output = b""
        async with asyncio.timeout(_PATIENCE):
            while line := await process.stdout.readline():
                output += line
                if _READY in line:
                    break
        require(holds=_READY in output, otherwise=f"`footplate dev` did not start: {output.decode()[-500:]}")
        yield DevServer(process.pid, port, home / ".local/share/footplate")
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        await process.communicate()
        shutil.rmtree(home, ignore_errors=True)


def _open_home() -> Path:
    home = Path(tempfile.mkdtemp(prefix="footplate-guard-"))
    home.chmod(0o755)
    return home


def _listeners() -> dict[str, int]:
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


def _sockets_of(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        if Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink():
            return set()
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                target = str(entry.readlink())
                if target.startswith("socket:["):
                    found.add(target[8:-1])
    return found
