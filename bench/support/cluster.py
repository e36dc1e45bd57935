"""Starts a whole cell for a claim: the real stack, a scripted model, api replicas and workers, each in its own process.

    async with open_cluster(apis=2, workers=2) as cluster:
        client = AsyncAnthropic(base_url=cluster.base_urls[0], api_key=cluster.key)

When it closes it checks that none of its processes is alive. A group of claims can share the stack. Each cluster has
its own database, task queue and processes.
"""

import asyncio
import secrets
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from temporalio.client import ScheduleActionStartWorkflow
from temporalio.service import RPCError

from bench.prove.figure import NotHeld
from bench.support import cluster_processes, databases
from bench.support.forked_program import ForkedProgram
from bench.support.pgbouncer import Pgbouncer
from footplate import wiring
from footplate.cli.dev.child_process_definitions import WORKER_READY
from footplate.config import Settings
from footplate.stack import PythonService, Stack, StackSettings
from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.orphan_processes import wait_until
from footplate.stack.services.python_service import is_http_ok
from footplate.stack.temporal_connection import connect_temporal
from footplate.testing.scripted_model_process import ModelProcess

_BASE: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONUNBUFFERED": "1"}
_GONE_WITHIN: Final = 10.0
_shared: list[Stack] = []


@asynccontextmanager
async def share_stack(*, enabled: bool) -> AsyncIterator[None]:
    """While this context is open, clusters share one stack."""
    if not enabled:
        yield
        return
    directory = _new_directory()
    try:
        async with Stack(directory) as stack:
            _shared.append(stack)
            try:
                yield
            finally:
                _shared.remove(stack)
    finally:
        shutil.rmtree(directory)


@asynccontextmanager
async def open_cluster(
    *,
    apis: int = 1,
    workers: int = 1,
    environment: Mapping[str, str] | None = None,
    postgres_settings: Mapping[str, str] | None = None,
    stack: Stack | None = None,
    worker_module: str = "footplate",
    connections: str = "",
    pooled_connections: int = 0,
) -> AsyncIterator["Cluster"]:
    """Starts a cluster. `environment` reaches the api and the workers (`FOOTPLATE_LINGER`, …). Its files are deleted at
    the end.

    It uses `stack`, which must be running, or the shared one, or starts its own. `worker_module`: a module that starts
    the worker in a different way. `connections`: the file of model connections, in which `{model}` is replaced by the
    URL of the scripted model. `pooled_connections`: the api and the workers reach PostgreSQL through a pgbouncer in
    transaction mode, which opens this many connections.
    """
    directory = _new_directory()
    try:
        async with AsyncExitStack() as ending:
            if stack is None and _shared and not postgres_settings:
                stack = _shared[0]
            if stack is None:
                stack = await ending.enter_async_context(
                    Stack(directory / "stack", postgres_settings=postgres_settings)
                )
            cluster = Cluster(
                directory,
                stack,
                apis=apis,
                workers=workers,
                environment=environment or {},
                worker_module=worker_module,
                connections=connections,
                pooled_connections=pooled_connections,
            )
            ending.push_async_callback(cluster.aclose)
            await cluster.start()
            yield cluster
    finally:
        shutil.rmtree(directory)


class Cluster:
    def __init__(
        self,
        directory: Path,
        stack: Stack,
        *,
        apis: int,
        workers: int,
        environment: Mapping[str, str],
        worker_module: str = "footplate",
        connections: str = "",
        pooled_connections: int = 0,
    ) -> None:
        self.id = secrets.token_hex(8)
        self.directory = directory
        self.stack = stack
        self.model = ModelProcess()
        self.key = ""
        self.failpoints = directory / "failpoints"
        """Arm one by writing a file there; see `footplate.failpoints`."""
        self._ports = [find_free_port() for _ in range(apis)]
        self._workers = workers
        self._extra = dict(environment)
        self._worker_module = worker_module
        self._connections = connections
        self._pooled_connections = pooled_connections
        self._pooler: Pgbouncer | None = None
        self.apis: list[PythonService] = []
        self.workers: list[PythonService] = []

    @property
    def settings(self) -> StackSettings:
        """Returns the stack's settings with the cluster's own database."""
        of_stack = self.stack.settings
        url = databases.dsn(self.stack, self._database)
        return StackSettings(database_url=url, redis_url=of_stack.redis_url, temporal_address=of_stack.temporal_address)

    @property
    def ports(self) -> list[int]:
        """The ports of the api replicas."""
        return list(self._ports)

    @property
    def base_urls(self) -> list[str]:
        return [f"http://{LOOPBACK}:{port}" for port in self._ports]

    @property
    def task_queue(self) -> str:
        return f"footplate-{self.id}"

    async def start(self) -> None:
        self.failpoints.mkdir()
        await databases.create_database(self.stack, self._database)
        await self.model.start()
        if self._pooled_connections:
            url = self.settings.database_url
            self._pooler = Pgbouncer(self.directory / "pgbouncer", url, connections=self._pooled_connections)
            await self._pooler.start()
        if self._connections:
            self._connections_file.write_text(self._connections.replace("{model}", self.model.url))
        self.key = await self.create_key("default")
        self.apis = [self._api(number, port) for number, port in enumerate(self._ports)]
        self.workers = [self._worker(number) for number in range(self._workers)]
        async with asyncio.TaskGroup() as group:
            for program in [*self.apis, *self.workers]:
                group.create_task(program.start())

    async def aclose(self) -> None:
        """Stops everything, then raises `NotHeld` if a process is still alive."""
        await asyncio.gather(*(program.stop() for program in [*self.apis, *self.workers]))
        await self.model.aclose()
        if self._pooler is not None:
            await self._pooler.stop()
        await databases.drop_database(self.stack, self._database)
        await _delete_schedules(self.settings.temporal_address, self.task_queue)

        async def none_alive() -> bool:
            return not self.alive()

        if not await wait_until(none_alive, _GONE_WITHIN):
            raise NotHeld(f"processes are still running: {self.alive()}")

    def alive(self) -> dict[int, str]:
        """Returns all living processes of the api, workers, tools and guardians."""
        own = cluster_processes.find_cluster_processes(self.id, self.directory)
        return {pid: command for pid, command in own.items() if not self._belongs_to_stack(pid)}

    async def kill_worker(self, index: int, number: signal.Signals = signal.SIGKILL) -> None:
        """Sends a signal. Waits for the end after SIGKILL, and not after any other (SIGSTOP, SIGCONT, SIGTERM)."""
        await _kill(self.workers[index], number)

    async def kill_api(self, index: int, number: signal.Signals = signal.SIGKILL) -> None:
        await _kill(self.apis[index], number)

    async def add_worker(self) -> None:
        self.workers.append(self._worker(len(self.workers)))
        await self.workers[-1].start()

    async def restart_worker(self, index: int) -> None:
        """Starts it again, whether it was killed or still runs."""
        await self.workers[index].restart()

    async def restart_api(self, index: int) -> None:
        await self.apis[index].restart()

    async def create_key(self, organisation: str, *, name: str = "proof") -> str:
        return await wiring.create_key(self._own_settings(), organisation, name, ["admin"])

    def environment(self) -> dict[str, str]:
        """Returns the complete environment of an api or a worker. Nothing of this machine's is passed on."""
        return {
            **_BASE,
            **self.settings.environment(),
            "HOME": str(self.directory),
            "FOOTPLATE_DATA_DIR": str(self.directory / "data"),
            "FOOTPLATE_TASK_QUEUE": self.task_queue,
            "FOOTPLATE_FAILPOINTS": str(self.failpoints),
            "FOOTPLATE_ANTHROPIC_API_KEY": "scripted",
            "FOOTPLATE_ANTHROPIC_BASE_URL": self.model.url,
            "FOOTPLATE_OPENAI_API_KEY": "scripted",
            "FOOTPLATE_OPENAI_BASE_URL": self.model.openai_url,
            "FOOTPLATE_METRICS_ADDRESS": "off",
            cluster_processes.CLUSTER_VARIABLE: self.id,
            **(
                {"FOOTPLATE_DATABASE_URL": self._pooler.url, "FOOTPLATE_DATABASE_POOLER": "transaction"}
                if self._pooler
                else {}
            ),
            **({"FOOTPLATE_MODEL_CONNECTIONS": str(self._connections_file)} if self._connections else {}),
            **self._extra,
        }

    @property
    def _connections_file(self) -> Path:
        return self.directory / "connections.toml"

    def _own_settings(self) -> Settings:
        of_stack = self.settings
        return Settings(
            database_url=of_stack.database_url,
            redis_url=of_stack.redis_url,
            temporal_address=of_stack.temporal_address,
            data_dir=self.directory / "data",
        )

    def _api(self, number: int, port: int) -> PythonService:
        return ForkedProgram(
            self.directory / f"api-{number}",
            title=f"api {number}",
            module="footplate",
            arguments=("api",),
            environment={**self.environment(), "FOOTPLATE_HOST": LOOPBACK, "FOOTPLATE_PORT": str(port)},
            log_file=self.directory / "logs" / f"api-{number}.log",
            address=f"{LOOPBACK}:{port}",
            probe=partial(is_http_ok, LOOPBACK, port, "/readyz"),
        )

    def _worker(self, number: int) -> PythonService:
        return ForkedProgram(
            self.directory / f"worker-{number}",
            title=f"worker {number}",
            module=self._worker_module,
            arguments=("worker",),
            environment=self.environment(),
            log_file=self.directory / "logs" / f"worker-{number}.log",
            ready_mark=WORKER_READY,
        )

    @property
    def _database(self) -> str:
        return f"cluster_{self.id}"

    def _belongs_to_stack(self, pid: int) -> bool:
        """Whether the process is one of the stack's servers, which the stack itself stops later."""
        try:
            return Path(f"/proc/{pid}/cwd").readlink().is_relative_to(self.stack.directory)
        except OSError:
            return False


async def _delete_schedules(temporal_address: str, task_queue: str) -> None:
    """Deletes the schedules of a cluster. Otherwise Temporal would go on starting their workflows."""
    with suppress(RPCError, RuntimeError):  # Temporal was stopped, or a schedule is gone
        client = await connect_temporal(temporal_address)
        async for listed in await client.list_schedules():
            handle = client.get_schedule_handle(listed.id)
            action = (await handle.describe()).schedule.action
            if isinstance(action, ScheduleActionStartWorkflow) and action.task_queue == task_queue:
                await handle.delete()


async def _kill(program: PythonService, number: signal.Signals) -> None:
    if number is signal.SIGKILL:
        await program.kill()
    else:
        program.send_signal(number)


def _new_directory() -> Path:
    return Path(tempfile.mkdtemp(prefix="footplate-")).resolve()
