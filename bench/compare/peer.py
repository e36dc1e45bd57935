"""Defines the interface of each measured system, and starts the peers that are one server process."""

import asyncio
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import httpx2
import orjson

from bench.support import cluster_processes
from bench.support.speed.process_cpu import cpu_seconds
from bench.support.speed.sample_repository import make_repository
from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.services.python_service import is_http_ok
from footplate.stack.services.service import Service
from footplate.testing.reply_steps import Tool, tool
from footplate.testing.scripted_model_process import ModelProcess

MODEL: Final = "claude-sonnet-4-5"
TURN_TIMEOUT: Final = 120.0
REPOSITORY_FILES: Final = 20
_ENDS_WITHIN: Final = 30.0
_NO_PROXY: Final = "http://127.0.0.1:9"
"""Nothing listens there, so a request to another machine fails at once."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """The interrupted call as a client sees it after the restart."""

    state: Literal["settled", "open", "lost"]
    """`settled`: the call has a result. `open`: it still looks as if it is running. `lost`: there is no call."""
    text: str


class Peer(Protocol):
    """One system: Footplate or one of its peers."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def model(self) -> ModelProcess: ...

    def call_shell(self, command: str) -> Tool:
        """Returns the scripted call of its tool that runs a shell command."""

    async def install(self) -> None: ...

    async def start(self) -> None: ...

    async def create_session(self) -> str: ...

    async def run_turn(self, session: str, prompt: str) -> float:
        """Runs a turn to its end and returns the seconds from the request to the first piece of text."""

    async def send_message(self, session: str, prompt: str) -> None:
        """Starts a turn and does not wait for it."""

    async def kill(self) -> None:
        """Sends SIGKILL to the server and waits until it is dead."""

    async def restart(self) -> None: ...

    async def describe_call(self, session: str) -> CallRecord: ...

    def cpu_seconds(self) -> float:
        """Returns the CPU time of all its processes so far, without the model's."""

    async def aclose(self) -> None: ...


class PeerServer(Service):
    """A peer that is one process: a scrubbed environment, a directory and a scripted model of its own."""

    death_signal = signal.SIGKILL
    owns_directory = False  # The comparison checks which processes survive; `kill` and `restart` must not end them.
    start_timeout = 240.0

    def __init__(self, title: str, ready_path: str) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="footplate-compare-")).resolve()
        super().__init__(self.root / "work", log_file=self.root / "server.log")
        self.title = title
        self.id = secrets.token_hex(8)
        self.port = find_free_port()
        self.model = ModelProcess()
        self.client = httpx2.AsyncClient(base_url=self.url, timeout=TURN_TIMEOUT, trust_env=False)
        self._ready_path = ready_path

    @property
    def name(self) -> str:
        return self.title

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    async def is_ready(self) -> bool:
        return await is_http_ok(LOOPBACK, self.port, self._ready_path)

    def environment(self) -> Mapping[str, str]:
        home = self.root / "home"
        return {
            **super().environment(),
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _NO_PROXY),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
            "HOME": str(home),
            "TMPDIR": str(home),
            "TMUX_TMPDIR": str(home),
            "DO_NOT_TRACK": "1",
            "PYTHONUNBUFFERED": "1",
            cluster_processes.CLUSTER_VARIABLE: self.id,
        }

    async def start(self) -> None:
        if not self.model.url:
            await asyncio.to_thread((self.root / "home").mkdir)
            await asyncio.to_thread(make_repository, self.directory, REPOSITORY_FILES)
            await self.model.start()
            await asyncio.to_thread(self.write_configuration)
        await super().start()

    async def restart(self) -> None:
        await self.start()

    def write_configuration(self) -> None:
        """Writes its files before the first start. The model's address is known by then."""

    def cpu_seconds(self) -> float:
        return cpu_seconds(cluster_processes.find_cluster_processes(self.id, self.root))

    async def aclose(self) -> None:
        """Ends the server, the model and every remaining process of the server, and deletes its directory."""
        await self.client.aclose()
        await self.stop()
        await self.model.aclose()
        async with asyncio.timeout(_ENDS_WITHIN):
            while remaining := cluster_processes.find_cluster_processes(self.id, self.root):
                for pid in remaining:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                await asyncio.sleep(0.1)
        await asyncio.to_thread(partial(shutil.rmtree, ignore_errors=True), self.root)

    async def post(self, path: str, body: Mapping[str, object]) -> Any:
        response = await self.client.post(path, json=dict(body))
        response.raise_for_status()
        return orjson.loads(response.content) if response.content else None

    async def get(self, path: str) -> Any:
        response = await self.client.get(path)
        response.raise_for_status()
        return orjson.loads(response.content)


def call_bash(command: str) -> Tool:
    """Returns the call of a tool named `bash`, with the description that models send along."""
    return tool("bash", {"command": command, "description": "Runs a command"})


async def read_events(response: httpx2.Response) -> AsyncIterator[tuple[str, Any]]:
    """Yields the name and the JSON data of each server-sent event."""
    event = "message"
    async for line in response.aiter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            event = value
        elif field == "data":
            yield event, orjson.loads(value)
        elif not line:
            event = "message"


async def run_command(argv: Sequence[str], environment: Mapping[str, str]) -> None:
    process = await asyncio.create_subprocess_exec(
        *argv, env=dict(environment), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(argv[:3])} failed:\n{output.decode(errors='replace')[-2000:]}")
