"""`ScriptedModel`: the scripted model server inside the caller's own event loop."""

import asyncio
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from footplate.domain.request_guard import GuardedApp, RequestGuard
from footplate.testing.app import ModelApp
from footplate.testing.journal import KEEP_BYTES, Journal, Record
from footplate.testing.scripts import Script

if TYPE_CHECKING:
    from footplate.testing.serving import LoopServer


class ScriptedModel:
    """A model on loopback. Any API key will do, unless it is given one.

    Point `ANTHROPIC_BASE_URL`, or an Anthropic client's `base_url`, at `url`, and OpenAI's at `openai_url`.
    """

    def __init__(
        self,
        scripts: Mapping[str, Script] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        keep_bytes: int = KEEP_BYTES,
        key: str | None = None,
    ) -> None:
        self._app = ModelApp(scripts or {}, Journal(keep_bytes=keep_bytes), key)
        self._address = (host, port)
        self._server: LoopServer | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        from footplate.testing import serving

        listener = socket.create_server(self._address, backlog=2048)
        # asyncio sets it only on sockets made with an explicit protocol; without it each answer waits 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._address = listener.getsockname()[:2]
        # Every user of the machine, and a web page in a browser on it, reaches loopback.
        self._server = serving.server(GuardedApp(self._app, RequestGuard()))
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]), name="scripted-model")
        await self._server.ready.wait()

    async def aclose(self) -> None:
        if self._server is None or self._task is None:
            return
        self._server.should_exit = True
        self._app.abort()
        await self._task
        self._server = self._task = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def url(self) -> str:
        host, port = self._address
        return f"http://{host}:{port}"

    @property
    def openai_url(self) -> str:
        """OpenAI's clients count the version as part of the base."""
        return f"{self.url}/v1"

    def install(self, name: str, script: Script) -> None:
        """Add or replace a script. Named like a session's id, it answers that session whatever its prompts say."""
        self._app.scripts[name] = script

    def requests(self, script: str | None = None) -> list[Record]:
        """Everything that was asked, oldest first; with a name, the message requests that its script answered."""
        return self._app.journal.list(script=script)

    def clear(self) -> None:
        self._app.clear()
