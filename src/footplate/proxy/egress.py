"""The allow-list proxy of a turn: the only way out of a sandbox that may reach a list of hosts.

It accepts CONNECT, and requests with complete `http://` URLs. It checks the host name against the list, resolves it
once, checks the addresses against the address policy, and connects to one of the checked addresses. Redirects are left
to the client: they arrive here as new requests.
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

from footplate.domain.addresses import Address, Reach
from footplate.domain.name_lookup import NameLookup
from footplate.domain.networks import Network
from footplate.domain.running import Egress, EgressDoor
from footplate.proxy import serving
from footplate.proxy.relaying import BrokenOff, Client, Refused, Target, tunnel

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[Address]]]

log = structlog.get_logger(__name__)

_MOST: Final = 256
_LOOKUPS: Final = 4
_HEAD_SECONDS: Final = 30.0
_CONNECT_SECONDS: Final = 10.0
_MOST_LOGGED: Final = 100
_NAMES: Final = NameLookup(socket.getaddrinfo)


async def look_up(host: str, port: int) -> Sequence[Address]:
    return await _NAMES.find(host, port)


class AllowListProxy(Egress):
    """The proxy of one worker. Each turn has its own listener."""

    def __init__(self, address_policy: Reach, resolve: Resolve = look_up) -> None:
        self._reach = address_policy
        self._resolve = resolve

    def door(self, network: Network) -> EgressDoor:
        return _Door(network, self._reach, self._resolve)


class _Door(EgressDoor):
    def __init__(self, network: Network, address_policy: Reach, resolve: Resolve) -> None:
        self._network = network
        self._reach = address_policy
        self._resolve = resolve
        self._lookups = asyncio.Semaphore(_LOOKUPS)
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._told: set[tuple[str, int]] = set()

    async def listen(self, path: Path) -> None:
        listener = await asyncio.to_thread(serving.at_path, path)
        self._server = await asyncio.start_unix_server(self._welcome, sock=listener)

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _welcome(self, reader: StreamReader, writer: StreamWriter) -> None:
        if len(self._serving) >= _MOST:
            writer.close()
            return
        task = asyncio.create_task(self._serve(Client(reader, writer)), name="egress")
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, client: Client) -> None:
        # An error ends this connection only.
        with contextlib.suppress(OSError, h11.ProtocolError, TimeoutError, BrokenOff):
            try:
                async with asyncio.timeout(_HEAD_SECONDS):
                    target = await client.target()
                await self._pass(client, target)
            except Refused as refused:
                await client.refuse(refused)
            finally:
                client.close()

    async def _pass(self, client: Client, target: Target) -> None:
        addresses = await self._addresses(target)
        reader, writer = await _connect(target, addresses)
        try:
            if target.is_tunnel:
                await client.accept_tunnel()
                await tunnel(client, reader, writer)
            else:
                await client.relay(target, reader, writer)
        finally:
            writer.close()

    async def _addresses(self, target: Target) -> Sequence[Address]:
        host, port = target.host, target.port
        if not self._network.permits(host, port):
            self._tell(target, "not in the list")
            raise Refused(
                403,
                f"{target} is not in this environment's list of allowed hosts. The operator can add it to the "
                "environment's allowed_hosts or to FOOTPLATE_SANDBOX_ALLOWED_HOSTS (ports 80 and 443 unless a port is "
                "given).",
            )
        async with self._lookups:
            try:
                addresses = await self._resolve(host, port)
            except (OSError, UnicodeError) as error:
                raise Refused(502, f"The host name {host!r} cannot be resolved.") from error
        for address in addresses:
            if not self._reach.permits(host, address):
                self._tell(target, f"resolves to {address}")
                raise Refused(
                    403,
                    f"{host} has the address {address}, which is not a public internet address. The operator of this "
                    "server can allow it with FOOTPLATE_WEB_ALLOW.",
                )
        return addresses

    def _tell(self, target: Target, reason: str) -> None:
        """Logs each target once, up to a limit, so that an agent cannot fill the log."""
        key = (target.host, target.port)
        if key not in self._told and len(self._told) < _MOST_LOGGED:
            self._told.add(key)
            log.warning("egress refused", action="egress.refused", host=target.host, port=target.port, reason=reason)


async def _connect(target: Target, addresses: Sequence[Address]) -> tuple[StreamReader, StreamWriter]:
    """Connects to the first address that responds."""
    for address in addresses:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await asyncio.open_connection(str(address), target.port)
    raise Refused(502, f"{target} does not respond.")
