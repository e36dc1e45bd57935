"""Runs the scripted model server in the caller's event loop. The scripted model is a model server for tests that sends
prepared replies.
"""

import asyncio
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from footplate.domain.network.host_and_origin_check import GuardedApp, RequestGuard
from footplate.testing.model_scripts import Script
from footplate.testing.server.app import ModelApp
from footplate.testing.server.request_journal import MAX_BODY_BYTES, Record, RequestJournal

if TYPE_CHECKING:
    from footplate.testing.server.http_server import LoopServer


class ScriptedModel:
    """A scripted model server on loopback. It accepts any API key, unless it is created with one.

    Set `ANTHROPIC_BASE_URL`, or the `base_url` of an Anthropic client, to `url`, and that of OpenAI to `openai_url`.
    """

    def __init__(
        self,
        scripts: Mapping[str, Script] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        keep_bytes: int = MAX_BODY_BYTES,
        key: str | None = None,
    ) -> None:
        self._app = ModelApp(scripts or {}, RequestJournal(keep_bytes=keep_bytes), key)
        self._address = (host, port)
        self._server: LoopServer | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        from footplate.testing.server import http_server

        listener = socket.create_server(self._address, backlog=2048)
        # asyncio sets TCP_NODELAY only on sockets with an explicit protocol. Without it, each response waits 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._address = listener.getsockname()[:2]
        # Loopback can be reached by every user of the machine, and by web pages in a browser.
        self._server = http_server.create_server(GuardedApp(self._app, RequestGuard()))
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]), name="scripted-model")
        await self._server.ready.wait()

    async def aclose(self) -> None:
        if self._server is None or self._task is None:
            return
        self._server.should_exit = True
        self._app.abort_all()
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
        """The base URL for OpenAI clients, which includes the version."""
        return f"{self.url}/v1"

    @property
    def mistral_url(self) -> str:
        """The base URL for Mistral clients. Those of the Gemini API and Amazon Bedrock use `url`."""
        return f"{self.url}/mistral"

    def install(self, name: str, script: Script) -> None:
        """Adds or replaces a script. A script named after a session id serves that session, regardless of prompts."""
        self._app.scripts[name] = script

    def requests(self, script: str | None = None) -> list[Record]:
        """Returns all requests, oldest first. With `script`, only the requests that this script served."""
        return self._app.journal.list_records(script=script)

    def clear(self) -> None:
        self._app.clear()
