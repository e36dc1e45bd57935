"""Temporal's own development server, with its state in a file, so that it survives being killed."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from footplate.domain.json import Json
from footplate.stack import binaries
from footplate.stack.part import Part
from footplate.stack.ports import LOOPBACK, free_port

_DYNAMIC_CONFIG: Final[Mapping[str, Json]] = {
    # Turns of one busy organisation do not hold up another's.
    "matching.enableFairness": True,
}
# A write-ahead log is as durable as SQLite's usual journal and takes a quarter off the server's work.
_PRAGMAS: Final = ("--sqlite-pragma", "journal_mode=WAL")


class Temporal(Part):
    title = "Temporal"
    stop_patience = 10.0

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
        self.port = port or free_port()
        self.namespace = namespace
        self._dynamic_config = {**_DYNAMIC_CONFIG, **(dynamic_config or {})}
        self._in_memory = in_memory

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def program(self) -> Path:
        return binaries.temporal()

    def arguments(self) -> Sequence[str]:
        storage = [] if self._in_memory else ["--db-filename", str(self.directory / "temporal.db"), *_PRAGMAS]
        dynamic = [f"--dynamic-config-value={key}={json.dumps(value)}" for key, value in self._dynamic_config.items()]
        return [
            *("server", "start-dev", "--headless", "--log-level", "warn"),
            *("--ip", LOOPBACK, "--port", str(self.port), "--namespace", self.namespace),
            *storage,
            *dynamic,
        ]

    async def ready(self) -> bool:
        try:
            client = await Client.connect(self.address)
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=self.namespace))
        except (RPCError, RuntimeError, OSError):
            return False
        return True
