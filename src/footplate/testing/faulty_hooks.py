"""Hooks for tests of error handling: an HTTP hook server, and Python hooks that hang, crash or print too much."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from footplate.domain.json import Json

_HOOK_SOURCE: Final = """
import os, signal, sys, time

def hangs(told, options):
    time.sleep(600)

def crashes(told, options):
    raise ValueError("out of order")

def exits(told, options):
    sys.exit(3)

def killed(told, options):
    os.kill(os.getpid(), signal.SIGKILL)

def floods(told, options):
    return {"reason": "x" * 3_000_000}

def chatters(told, options):
    while True:
        print("x" * 65_536)

def eats(told, options):
    kept = [b"x" * (64 << 20) for _ in range(100)]
    return {"decision": "approve", "reason": str(len(kept))}

def garbage(told, options):
    return {"decision": {1, 2}}

def words(told, options):
    return "yes"

def polite(told, options):
    print("thinking")
    return {"decision": "block", "reason": "not %s" % options["what"]}

def silent(told, options):
    print(sorted(os.environ))
"""


@dataclass
class HookServer:
    port: int = 0
    requests: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)
    """Headers and body of each request."""
    response: bytes | None = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    """The response to every request. None: never respond."""
    floods: bool = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/check?token=secret"

    def set_response(self, content: "Json | bytes", status: str = "200 OK", extra: str = "") -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.response = f"HTTP/1.1 {status}\r\n{extra}content-length: {len(body)}\r\n\r\n".encode() + body

    async def handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:-2]
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head)}
            self.requests.append((headers, await reader.readexactly(int(headers["content-length"]))))
            if self.response is None:
                await reader.read()
            else:
                writer.write(self.response)
            while self.floods:
                writer.write(b"{" * 65_536)
                await writer.drain()
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def start_hook_server() -> AsyncIterator[HookServer]:
    hook_server = HookServer()
    async with await asyncio.start_server(hook_server.handle_connection, "127.0.0.1", 0) as server:
        hook_server.port = server.sockets[0].getsockname()[1]
        yield hook_server


def install_faulty_hooks(site: Path) -> None:
    """Installs the faulty hooks as a package in `site`, which must be on the Python path."""
    about = site / "bad_hooks-1.dist-info"
    about.mkdir(parents=True)
    (site / "bad_hooks.py").write_text(_HOOK_SOURCE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-hooks\nVersion: 1\n")
    names = [line.split()[1].partition("(")[0] for line in _HOOK_SOURCE.splitlines() if line.startswith("def ")]
    points = "".join(f"{name} = bad_hooks:{name}\n" for name in names)
    (about / "entry_points.txt").write_text(f"[footplate.hooks]\n{points}")
