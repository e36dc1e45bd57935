"""A connection to one MCP server, in its own task because the library must enter and exit its context in one task.

A call is sent once. If the connection is lost while the call runs, its result says that the outcome is unknown.
"""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import httpx2
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from footplate.harness.mcp import transport
from footplate.harness.mcp.transport import CheckedTransport, NotAllowed

T = TypeVar("T")

_MOST_TOOLS: Final = 256
_MOST_PAGES: Final = 32
_CLOSE_SECONDS: Final = 2.0
_DENIED: Final = frozenset({401, 403})

# Errors of a third-party server are reported to the agent. They do not belong in the worker's log.
logging.getLogger("mcp.client").setLevel(logging.CRITICAL)


class Unusable(Exception):
    """The server cannot be used."""

    def __init__(self, message: str, *, needs_credentials: bool = False) -> None:
        super().__init__(message)
        self.denied = needs_credentials
        """Whether the server requires credentials."""


class Lost(Exception):
    """The connection was lost during a request."""


class ServerConnection:
    """Created by `connect`. The caller must call `aclose`."""

    def __init__(self, url: str, checked: CheckedTransport) -> None:
        self._url = url
        self._checked = checked
        self._client: Client | None = None
        self._ready = asyncio.Event()
        self._leaving = asyncio.Event()
        self._why: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, url: str, checked: CheckedTransport, *, seconds: float, call_seconds: float
    ) -> "ServerConnection":
        """Connects to the server, or raises `ServerUnusable`. `call_seconds`: the read timeout of later requests."""
        connection = cls(url, checked)
        connection._task = asyncio.create_task(connection._live(call_seconds), name="mcp")
        try:
            async with asyncio.timeout(seconds):
                ready = asyncio.create_task(connection._ready.wait())
                await asyncio.wait({ready, connection._task}, return_when=asyncio.FIRST_COMPLETED)
                ready.cancel()
        except TimeoutError:
            await connection.aclose()
            raise Unusable(f"it did not respond within {seconds:g} s.") from None
        except BaseException:
            await connection.aclose()
            raise
        if connection._client is None:
            raise connection._unusable()
        return connection

    @property
    def alive(self) -> bool:
        return self._task is not None and not self._task.done() and not self._checked.exhausted.is_set()

    async def tools(self) -> list[types.Tool]:
        assert self._client is not None
        self._checked.grant_answer()
        found: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            try:
                page = await self._ask(self._client.list_tools(cursor=cursor))
            except (MCPError, Lost, ValueError) as error:
                raise self._unusable(error) from error
            found += page.tools
            cursor = page.next_cursor
            if not cursor or len(found) > _MOST_TOOLS:
                break
        return found[:_MOST_TOOLS]

    async def call(self, tool: str, arguments: dict[str, Any]) -> types.CallToolResult:
        """Calls a tool. Raises `ConnectionLost` if the connection breaks, and `MCPError` if the server refuses the
        call.
        """
        assert self._client is not None
        self._checked.grant_answer()
        return await self._ask(self._client.call_tool(tool, arguments))

    async def aclose(self) -> None:
        if self._task is None:
            return
        self._leaving.set()
        if self._client is None:
            self._task.cancel()  # still waiting for the server's first response
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.wait({self._task})
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _live(self, call_seconds: float) -> None:
        try:
            async with (
                transport.client(self._checked, call_seconds) as http,
                Client(streamable_http_client(self._url, http_client=http), cache=None) as client,
            ):
                self._client = client
                self._ready.set()
                await self._leaving.wait()
        except Exception as error:  # noqa: BLE001 - reported to the next request
            self._why = _first(error)

    async def _ask(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._task is not None
        request = asyncio.create_task(work)
        exhausted = asyncio.create_task(self._checked.exhausted.wait())
        try:
            await asyncio.wait({request, self._task, exhausted}, return_when=asyncio.FIRST_COMPLETED)
            if exhausted.done() and not request.done():
                raise Lost(f"its response is larger than {transport.LARGEST} bytes")
            if not request.done():
                raise Lost(_told(self._why))
            return request.result()
        finally:
            exhausted.cancel()
            request.cancel()
            await asyncio.gather(request, exhausted, return_exceptions=True)

    def _unusable(self, error: BaseException | None = None) -> Unusable:
        if self._checked.refused is not None:
            return Unusable(str(self._checked.refused))
        if self._checked.status in _DENIED:
            return Unusable(f"it requires credentials ({self._checked.status}).", needs_credentials=True)
        status = f" (it responded with {self._checked.status})" if self._checked.status else ""
        return Unusable(f"{_told(error or self._why)}{status}.")


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _told(error: BaseException | None) -> str:
    """A message for the agent. A server's URL may contain a secret; the messages of these exceptions never
    include it.
    """
    if isinstance(error, httpx2.HTTPError | MCPError | NotAllowed | Lost):
        return str(error).strip().rstrip(".") or type(error).__name__
    return type(error).__name__ if error is not None else "the connection ended"
