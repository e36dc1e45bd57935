"""Keeps the connection to one MCP server in an asyncio task of its own.

The MCP library requires that the same task opens and closes a connection. Each tool call is sent only once. If the
connection is lost during a call, the result says that the outcome is unknown.
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
from footplate.harness.mcp.transport import CheckedTransport, ServerForbidden

T = TypeVar("T")

_MAX_TOOLS: Final = 256
_MAX_PAGES: Final = 32
_CLOSE_SECONDS: Final = 2.0
_CREDENTIAL_STATUSES: Final = frozenset({401, 403})

# Errors of a third-party server are reported to the agent. They do not belong in the worker's log.
logging.getLogger("mcp.client").setLevel(logging.CRITICAL)


class ServerUnusable(Exception):
    """The server cannot be used."""

    def __init__(self, message: str, *, needs_credentials: bool = False) -> None:
        super().__init__(message)
        self.needs_credentials = needs_credentials
        """Whether the server requires credentials."""


class ConnectionLost(Exception):
    """The connection was lost during a request."""


class ServerConnection:
    """Created by `connect`. The caller must call `aclose`."""

    def __init__(self, url: str, checked: CheckedTransport) -> None:
        self._url = url
        self._checked = checked
        self._client: Client | None = None
        self._ready = asyncio.Event()
        self._closing = asyncio.Event()
        self._error: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def connect(
        cls, url: str, checked: CheckedTransport, *, seconds: float, call_seconds: float
    ) -> "ServerConnection":
        """Connects to the server, or raises `ServerUnusable`. `call_seconds`: the read timeout of later requests."""
        connection = cls(url, checked)
        connection._task = asyncio.create_task(connection._run(call_seconds), name="mcp")
        try:
            async with asyncio.timeout(seconds):
                ready = asyncio.create_task(connection._ready.wait())
                await asyncio.wait({ready, connection._task}, return_when=asyncio.FIRST_COMPLETED)
                ready.cancel()
        except TimeoutError:
            await connection.aclose()
            raise ServerUnusable(f"it did not respond within {seconds:g} s.") from None
        except BaseException:
            await connection.aclose()
            raise
        if connection._client is None:
            raise connection._unusable_error()
        return connection

    @property
    def alive(self) -> bool:
        return self._task is not None and not self._task.done() and not self._checked.exhausted.is_set()

    async def list_tools(self) -> list[types.Tool]:
        assert self._client is not None
        self._checked.grant_response()
        found: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            try:
                page = await self._request(self._client.list_tools(cursor=cursor))
            except (MCPError, ConnectionLost, ValueError) as error:
                raise self._unusable_error(error) from error
            found += page.tools
            cursor = page.next_cursor
            if not cursor or len(found) > _MAX_TOOLS:
                break
        return found[:_MAX_TOOLS]

    async def call_tool(
        self, tool: str, arguments: dict[str, Any], meta: types.RequestParamsMeta | None = None
    ) -> types.CallToolResult:
        """Calls a tool. `meta`: the fields of the request's `_meta`. Raises `ConnectionLost` if the connection breaks,
        and `MCPError` if the server refuses the call.
        """
        assert self._client is not None
        self._checked.grant_response()
        return await self._request(self._client.call_tool(tool, arguments, meta=meta))

    async def aclose(self) -> None:
        if self._task is None:
            return
        self._closing.set()
        if self._client is None:
            self._task.cancel()  # still waiting for the server's first response
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.wait({self._task})
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, call_seconds: float) -> None:
        try:
            async with (
                transport.create_client(self._checked, call_seconds) as http,
                Client(streamable_http_client(self._url, http_client=http), cache=None) as client,
            ):
                self._client = client
                self._ready.set()
                await self._closing.wait()
        except Exception as error:  # noqa: BLE001 - reported to the next request
            self._error = _first_error(error)

    async def _request(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._task is not None
        request = asyncio.create_task(work)
        exhausted = asyncio.create_task(self._checked.exhausted.wait())
        try:
            await asyncio.wait({request, self._task, exhausted}, return_when=asyncio.FIRST_COMPLETED)
            if exhausted.done() and not request.done():
                raise ConnectionLost(f"its response is larger than {transport.MAX_RESPONSE_BYTES} bytes")
            if not request.done():
                raise ConnectionLost(_error_text(self._error))
            return request.result()
        finally:
            exhausted.cancel()
            request.cancel()
            await asyncio.gather(request, exhausted, return_exceptions=True)

    def _unusable_error(self, error: BaseException | None = None) -> ServerUnusable:
        if self._checked.refusal is not None:
            return ServerUnusable(str(self._checked.refusal))
        if self._checked.status in _CREDENTIAL_STATUSES:
            return ServerUnusable(f"it requires credentials ({self._checked.status}).", needs_credentials=True)
        status = f" (it responded with {self._checked.status})" if self._checked.status else ""
        return ServerUnusable(f"{_error_text(error or self._error)}{status}.")


def _first_error(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _error_text(error: BaseException | None) -> str:
    """A message for the agent. A server's URL may contain a secret; the messages of these exceptions never
    include it.
    """
    if isinstance(error, httpx2.HTTPError | MCPError | ServerForbidden | ConnectionLost):
        return str(error).strip().rstrip(".") or type(error).__name__
    return type(error).__name__ if error is not None else "the connection ended"
