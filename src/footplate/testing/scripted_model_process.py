"""Runs the scripted model server (a model server for tests that sends prepared replies) in a separate process.

The server ends together with the process that started it, even if that process is killed. Use it if the model server
must not share an event loop or a processor with the code under test.
"""

import asyncio
import os
import sys
import urllib.request
from collections.abc import Mapping
from typing import Final, Self
from urllib.parse import quote

import orjson

from footplate.domain.json import JsonObject
from footplate.testing import script_json
from footplate.testing.model_scripts import Replies

# Requests on loopback must not go through a proxy from the environment.
_open_url = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

_STOP_TIMEOUT: Final = 5.0


class ModelProcess:
    def __init__(self, scripts: Mapping[str, Replies] | None = None, *, port: int = 0) -> None:
        self._scripts = dict(scripts or {})
        self._port = port
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""

    async def start(self) -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "footplate.testing", "--port", str(self._port)),
            *("--any-key", "--exit-with-stdin"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ},
        )
        self._process = process
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line:
            raise RuntimeError(f"the scripted model exited with code {await process.wait()} before it was ready")
        self.url = str(orjson.loads(line)["url"])
        for name, script in self._scripts.items():
            await self.install(name, script)

    async def aclose(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOP_TIMEOUT)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI clients, which includes the version."""
        return f"{self.url}/v1"

    async def install(self, name: str, script: Replies) -> None:
        await self._call("PUT", f"scripts/{quote(name)}", script_json.dumps(script))

    async def requests(self, script: str | None = None, *, bodies: bool = True) -> list[JsonObject]:
        query = f"?bodies={str(bodies).lower()}" + (f"&script={quote(script)}" if script else "")
        data: list[JsonObject] = (await self._call("GET", f"requests{query}"))["data"]
        return data

    async def clear(self) -> None:
        await self._call("DELETE", "requests")

    async def _call(self, method: str, path: str, body: bytes | None = None) -> dict[str, list[JsonObject]]:
        request = urllib.request.Request(f"{self.url}/_control/{path}", data=body, method=method)  # noqa: S310 - http
        response: dict[str, list[JsonObject]] = orjson.loads(await asyncio.to_thread(_fetch, request))
        return response


def _fetch(request: urllib.request.Request) -> bytes:
    with _open_url(request, timeout=30) as response:
        content: bytes = response.read()
        return content
