"""The model proxy of one worker: holds the providers' credentials and forwards the turns' model requests.

    harness in the worker ──── in process ─┐
    program on the host ──────── loopback ─┼─ token checked ── credential added ── provider
    process in a sandbox ── turn's socket ─┘

Every request carries the token of its turn. The socket of a turn accepts only the token of that turn.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from footplate.domain.network.host_and_origin_check import GuardedApp, RequestGuard
from footplate.domain.ports.engine import ModelAccess, ModelGrant
from footplate.domain.ports.harness import Endpoint
from footplate.proxy import asgi_socket_server
from footplate.proxy.asgi_socket_server import AppServer
from footplate.proxy.in_process_model_proxy import InProcessModelProxy
from footplate.proxy.model_grants import Grant, Grants
from footplate.proxy.model_request_forwarder import GRANT_STATE_KEY, ModelRequestForwarder
from footplate.proxy.provider_client import ProviderClient
from footplate.proxy.provider_gateway import ProviderGateway

_MAX_TURN_CONNECTIONS: Final = 64
_MAX_CONNECTIONS: Final = 4096
_PLACEHOLDER_TOKEN: Final = "each-turn-brings-its-own"  # noqa: S105 - a placeholder for a key


class ModelProxy(ModelAccess):
    """An async context manager. It is served by the worker's event loop."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        organisations: Mapping[str, Mapping[str, Endpoint]] | None = None,
    ) -> None:
        """`endpoints`: the real credentials, by connection. `organisations`: connections that only one organisation may
        use, which replace those of the same name.
        """
        self._grants = Grants()
        self._upstream = ProviderClient(endpoints, organisations or {})
        gateway = ProviderGateway(self._grants, self._upstream)
        self.in_process = InProcessModelProxy(gateway)
        """For harnesses that run in this process."""
        self._app = ModelRequestForwarder(gateway)
        # Every user of the machine can connect to loopback, and so can a web page in a browser on it.
        self._server = AppServer(GuardedApp(self._app, RequestGuard()), {}, _MAX_CONNECTIONS)
        self._url = ""

    async def __aenter__(self) -> Self:
        listener = asgi_socket_server.listen_on_loopback()
        self._url = f"http://{asgi_socket_server.LOOPBACK}:{listener.getsockname()[1]}"
        await self._server.serve(listener)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        await self._upstream.aclose()

    @property
    def endpoints(self) -> Mapping[str, Endpoint]:
        """Endpoints for clients that are created once. The URLs are valid for all turns, the key for none."""
        return self.endpoints_for(_PLACEHOLDER_TOKEN, None)

    def grant(self, *, deadline: float, organisation: str | None = None) -> ModelGrant:
        return TurnGrant(self, self._app, self._grants, self._grants.issue(deadline, organisation))

    def endpoints_for(self, token: str, organisation: str | None) -> Mapping[str, Endpoint]:
        connections = self._upstream.list_connections(organisation)
        return {
            name: Endpoint(token, f"{self._url}/{name}", connection.provider)
            for name, connection in sorted(connections.items())
        }


class TurnGrant(ModelGrant):
    def __init__(self, proxy: ModelProxy, app: ModelRequestForwarder, grants: Grants, grant: Grant) -> None:
        self._proxy = proxy
        self._app = app
        self._grants = grants
        self._grant = grant
        self._servers: list[AppServer] = []

    @property
    def endpoints(self) -> Mapping[str, Endpoint]:
        return self._proxy.endpoints_for(self._grant.token, self._grant.organisation)

    def renew(self, deadline: float) -> None:
        self._grant.renew(deadline)

    def pause(self) -> None:
        self._grant.pause()

    async def listen(self, path: Path) -> None:
        server = AppServer(self._app, {GRANT_STATE_KEY: self._grant}, _MAX_TURN_CONNECTIONS)
        await server.serve(await asyncio.to_thread(asgi_socket_server.listen_at_path, path))
        self._servers.append(server)

    async def aclose(self) -> None:
        self._grants.revoke(self._grant)
        for served in self._servers:
            served.close()
        self._servers.clear()
