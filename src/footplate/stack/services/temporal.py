"""Runs Temporal's development server, with its state in a file that survives a kill.

The server has no authentication, and its HTTP port cannot be disabled. It therefore runs in its own network namespace,
behind a unix socket that only this user can open. If the machine permits no namespace, the server listens on loopback,
and `exposure` gives the reason.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.service import RPCError

from footplate.domain.json import Json
from footplate.stack import binaries, child_command
from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.network_namespace import isolated_command, make_private_directory, namespace_obstacle, socket_path
from footplate.stack.services.service import Service
from footplate.stack.temporal_connection import UNIX_PREFIX, connect_temporal

_DYNAMIC_CONFIG: Final[Mapping[str, Json]] = {
    # Keeps the turns of one busy organisation from delaying those of others.
    "matching.enableFairness": True,
}
# A write-ahead log is as durable as SQLite's default journal and reduces the server's work by a quarter.
_PRAGMAS: Final = ("--sqlite-pragma", "journal_mode=WAL")


class Temporal(Service):
    title = "Temporal"
    stop_timeout = 10.0

    def __init__(
        self,
        directory: Path,
        *,
        log_file: Path,
        port: int | None = None,
        namespace: str = "default",
        dynamic_config: Mapping[str, Json] | None = None,
        in_memory: bool = False,
    ) -> None:
        super().__init__(directory, log_file=log_file)
        self.port = port or find_free_port()
        self.namespace = namespace
        self._dynamic_config = {**_DYNAMIC_CONFIG, **(dynamic_config or {})}
        self._in_memory = in_memory

    @property
    def exposure(self) -> str:
        """Why other users of this machine can reach the server; empty if they cannot."""
        return namespace_obstacle()

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}" if self.exposure else f"{UNIX_PREFIX}{self._socket}"

    @property
    def database_file(self) -> Path:
        return self.directory / "temporal.db"

    @property
    def program(self) -> Path:
        return binaries.find_temporal()

    def arguments(self) -> Sequence[str]:
        storage = [] if self._in_memory else ["--db-filename", str(self.database_file), *_PRAGMAS]
        dynamic = [f"--dynamic-config-value={key}={json.dumps(value)}" for key, value in self._dynamic_config.items()]
        return [
            *("server", "start-dev", "--headless", "--log-level", "warn"),
            *("--ip", LOOPBACK, "--port", str(self.port), "--namespace", self.namespace),
            *storage,
            *dynamic,
        ]

    def command(self) -> list[str]:
        if self.exposure:
            return super().command()
        isolated = isolated_command([str(self.program), *self.arguments()], socket=self._socket, port=self.port)
        return child_command.command_bound_to_launcher(isolated, death_signal=self.death_signal)

    async def prepare(self) -> None:
        await super().prepare()
        make_private_directory(self._socket.parent)

    async def is_ready(self) -> bool:
        if not self.exposure and not self._socket.is_socket():
            return False
        try:
            client = await connect_temporal(self.address)
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=self.namespace))
        except (RPCError, RuntimeError, OSError):
            return False
        return True

    @property
    def _socket(self) -> Path:
        return socket_path(self.directory, "temporal.sock")
