"""The HTTP proxy of a turn whose commands may reach only a list of hosts. It is the only way out of such a sandbox.

The proxy accepts CONNECT requests and requests with complete `http://` URLs. It checks the host name against the list,
resolves it once, and connects only if the address policy permits all its addresses. Redirects are not followed; the
client sends them as new requests.
"""

import asyncio
import contextlib
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import h11
import structlog

from footplate.domain.network.address_policy import Address, AddressPolicy
from footplate.domain.network.command_network_access import Network
from footplate.domain.network.dns_lookup import NameLookup
from footplate.domain.ports.engine import Egress, EgressProxy
from footplate.proxy import asgi_socket_server
from footplate.proxy.http_proxy_connection import (
    ConnectionBroken,
    ProxyClient,
    ProxyRequestRefused,
    ProxyTarget,
    run_tunnel,
)

ResolveHost: TypeAlias = Callable[[str, int], Awaitable[Sequence[Address]]]

log = structlog.get_logger(__name__)

_MAX_CONNECTIONS: Final = 256
_MAX_LOOKUPS: Final = 4
_HEAD_SECONDS: Final = 30.0
_CONNECT_SECONDS: Final = 10.0
_MAX_LOGGED: Final = 100
_NAME_LOOKUP: Final = NameLookup(socket.getaddrinfo)


async def resolve_host(host: str, port: int) -> Sequence[Address]:
    return await _NAME_LOOKUP.resolve(host, port)


class AllowListProxy(Egress):
    """The proxy of one worker. Each turn has its own listener."""

    def __init__(self, address_policy: AddressPolicy, resolve: ResolveHost = resolve_host) -> None:
        self._address_policy = address_policy
        self._resolve = resolve

    def create_proxy(self, network: Network) -> EgressProxy:
        return _TurnProxy(network, self._address_policy, self._resolve)


class _TurnProxy(EgressProxy):
    def __init__(self, network: Network, address_policy: AddressPolicy, resolve: ResolveHost) -> None:
        self._network = network
        self._address_policy = address_policy
        self._resolve = resolve
        self._lookups = asyncio.Semaphore(_MAX_LOOKUPS)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._logged: set[tuple[str, int]] = set()

    async def listen(self, path: Path) -> None:
        listener = await asyncio.to_thread(asgi_socket_server.listen_at_path, path)
        self._server = await asyncio.start_unix_server(self._accept_connection, sock=listener)

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept_connection(self, reader: StreamReader, writer: StreamWriter) -> None:
        if len(self._tasks) >= _MAX_CONNECTIONS:
            writer.close()
            return
        task = asyncio.create_task(self._serve_client(ProxyClient(reader, writer)), name="egress")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve_client(self, client: ProxyClient) -> None:
        # An error ends this connection only.
        with contextlib.suppress(OSError, h11.ProtocolError, TimeoutError, ConnectionBroken):
            try:
                async with asyncio.timeout(_HEAD_SECONDS):
                    target = await client.read_target()
                await self._forward(client, target)
            except ProxyRequestRefused as refused:
                await client.refuse(refused)
            finally:
                client.close()

    async def _forward(self, client: ProxyClient, target: ProxyTarget) -> None:
        addresses = await self._resolve_allowed(target)
        reader, writer = await _connect(target, addresses)
        try:
            if target.is_tunnel:
                await client.accept_tunnel()
                await run_tunnel(client, reader, writer)
            else:
                await client.relay_request(target, reader, writer)
        finally:
            writer.close()

    async def _resolve_allowed(self, target: ProxyTarget) -> Sequence[Address]:
        host, port = target.host, target.port
        if not self._network.permits(host, port):
            self._log_refusal(target, "not in the list of allowed hosts")
            raise ProxyRequestRefused(
                403,
                f"{target} is not in this environment's list of allowed hosts. The operator can add it to the "
                "environment's allowed_hosts or to FOOTPLATE_SANDBOX_ALLOWED_HOSTS (ports 80 and 443 unless a port is "
                "given).",
            )
        async with self._lookups:
            try:
                addresses = await self._resolve(host, port)
            except (OSError, UnicodeError) as error:
                raise ProxyRequestRefused(502, f"The host name {host!r} cannot be resolved.") from error
        for address in addresses:
            if not self._address_policy.permits(host, address):
                self._log_refusal(target, f"resolves to {address}")
                raise ProxyRequestRefused(
                    403,
                    f"{host} has the address {address}, which is not a public internet address. The operator of this "
                    "server can allow it with FOOTPLATE_WEB_ALLOW.",
                )
        return addresses

    def _log_refusal(self, target: ProxyTarget, reason: str) -> None:
        """Logs each target once, up to a limit, so that an agent cannot fill the log."""
        key = (target.host, target.port)
        if key not in self._logged and len(self._logged) < _MAX_LOGGED:
            self._logged.add(key)
            log.warning(
                "outgoing connection refused",
                action="egress.refused",
                host=target.host,
                port=target.port,
                reason=reason,
            )


async def _connect(target: ProxyTarget, addresses: Sequence[Address]) -> tuple[StreamReader, StreamWriter]:
    """Connects to the first address that responds."""
    for address in addresses:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await asyncio.open_connection(str(address), target.port)
    raise ProxyRequestRefused(502, f"{target} does not respond.")
