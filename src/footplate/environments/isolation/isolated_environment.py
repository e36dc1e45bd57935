"""Base class of the `sandbox` and `docker` environments, which run a turn in one enclosure: a sandbox or a container.

It enforces the disk limit of the turn, and reports exceeded limits in the results of commands.

    worker ── guardian (lease) ── anchor process ── init process ── shell, programs, file access
       └───────────────────── socket ──────────────────┘

The anchor process is a child of the guardian process: bubblewrap, or a process that holds a connection to the
container. When the guardian ends, the anchor process and all processes in the enclosure end too.
"""

import abc
import asyncio
import contextlib
import dataclasses
import errno
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import urlsplit

import structlog

from footplate.domain.errors import FootplateError, Unavailable
from footplate.domain.ports.harness import CommandResult, Endpoint, FileInfo
from footplate.domain.ports.terminals import TerminalProcess, TerminalSize
from footplate.environments.base_environment import DEFAULT_GRACE, BaseEnvironment
from footplate.environments.isolation import file_access, working_tree_paths
from footplate.environments.isolation.cgroups import Cgroup
from footplate.environments.isolation.cpu_weight import lower_weight_while_throttled
from footplate.environments.isolation.disk_watch import DiskWatch
from footplate.environments.isolation.filesystem_view import (
    FORWARDED_PORTS,
    HOME,
    HOME_MOUNT,
    MODEL_SOCKET,
    OUTPUTS,
    OUTPUTS_MOUNT,
    OUTPUTS_VARIABLE,
    FilesystemView,
)
from footplate.environments.isolation.mounted_sockets import MountedSockets
from footplate.environments.leases import Lease
from footplate.environments.processes.guardian_client import Guardian
from footplate.environments.processes.output_capture import DEFAULT_OUTPUT_LIMIT
from footplate.environments.processes.pty_process import PtyProcess
from footplate.environments.processes.spawner_client import SpawnedCommand, Spawner

log = structlog.get_logger(__name__)

_SIGKILL_STATUS: Final = 137
SCRATCH_DIRECTORY: Final = "/tmp/footplate"  # noqa: S108 - inside the enclosure, and removed with it


class EnclosureEnded(Unavailable):
    """The whole enclosure ended while a command was being started: by itself, or because it ran out of memory."""


class Enclosure(Spawner):
    """The worker's connection to a sandbox or a container. The guardian ends the enclosure; `has_ended` is then
    True.
    """

    noun: ClassVar[str]
    stop_timeout = 3.0

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self.has_ended = False
        self._anchor: SpawnedCommand | None = None
        self._kill_task: asyncio.Task[None] | None = None

    async def end_all(self) -> None:
        """Ends the enclosure from outside. Processes inside cannot prevent it."""
        if self._anchor is not None:
            with contextlib.suppress(Unavailable):
                await self._anchor.kill()
        self.disconnect()

    def connection_error(self) -> FootplateError:
        return EnclosureEnded(f"The {self.noun} stopped.", help_text="The next command starts in a new one.")

    def handle_disconnect(self) -> None:
        """Kills the anchor process in case it is still alive. The guardian then reports whether the enclosure ended by
        itself or together with the guardian.
        """
        if self._kill_task is None and self._anchor is not None:
            self._loop.remove_reader(self._connection)
            self._kill_task = asyncio.create_task(self._anchor.kill())

    def set_anchor(self, anchor: SpawnedCommand) -> None:
        self._anchor = anchor
        anchor.exited.add_done_callback(self._handle_anchor_exit)

    def _handle_anchor_exit(self, exited: "asyncio.Future[int]") -> None:
        """Settles all running commands. If the guardian was lost, the turn fails. If only the enclosure ended, every
        running command gets the result of a killed process.
        """
        self.has_ended = True
        error = exited.exception()
        if isinstance(error, FootplateError):
            self.fail_all(error)
        else:
            log.warning("sandbox or container exited", action=f"{self.noun}.ended", code=exited.result())
            self.finish_all(_SIGKILL_STATUS)
        self.disconnect()


class EnclosedEnvironment(BaseEnvironment):
    """A subclass creates the enclosure and names the control group that holds it."""

    noun: ClassVar[str]

    def __init__(
        self,
        view: FilesystemView,
        *,
        deadline: float,
        sockets: MountedSockets | None = None,
        env: Mapping[str, str] | None = None,
        grace: float = DEFAULT_GRACE,
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        lease: Lease | None = None,
    ) -> None:
        """`sockets` are the sockets that the view mounts."""
        super().__init__(
            view.root,
            deadline=deadline,
            home=HOME_MOUNT,
            working_directory=f"{view.root}/{view.subdirectory}" if view.subdirectory else None,
            env={OUTPUTS_VARIABLE: OUTPUTS_MOUNT, **(env or {})},
            grace=grace,
            output_limit=output_limit,
            lease=lease,
        )
        self._view = view
        self._sockets = sockets
        self._enclosure: Enclosure | None = None
        self._memory_kills = 0
        # The disk limit applies to the session's own directories, not to a directory that the user named.
        directories = [view.state] if view.named else [view.state, view.tree]
        self._disk = DiskWatch(view.state, directories, view.limits.disk)
        self._watchers: list[asyncio.Task[None]] = []
        self._may_write = True
        self._disk_limit_exceeded = False
        self._terminals: list[PtyProcess] = []

    @property
    def trees(self) -> Mapping[str, Path]:
        return working_tree_paths.session_trees(self._view.trees, self._view.tree, named=self._view.named)

    @property
    def platform(self) -> str:
        return self.noun

    @property
    def outputs(self) -> Path:
        return self._view.state / OUTPUTS

    @property
    def home_files(self) -> Path:
        return self._view.state / HOME

    @property
    def inside_paths(self) -> Mapping[str, str]:
        return working_tree_paths.paths_inside(self._view.trees)

    @property
    def scratch(self) -> str:
        """The directory is named after the lease, because in a container that the operator started /tmp is older than
        the turn.
        """
        return SCRATCH_DIRECTORY if self._lease is None else f"{SCRATCH_DIRECTORY}-{self._lease.id}"

    def translate_endpoint(self, endpoint: Endpoint) -> Endpoint:
        """Returns the forwarded port if there is one. An environment that shares the worker's network uses the endpoint
        as it is.
        """
        if not self._view.ports or endpoint.base_url is None:
            return endpoint
        path = urlsplit(endpoint.base_url).path
        return dataclasses.replace(endpoint, base_url=f"http://127.0.0.1:{FORWARDED_PORTS[MODEL_SOCKET]}{path}")

    async def shell(self, command: str, *, timeout: float) -> CommandResult:  # noqa: ASYNC109 - as in the port
        started_at = time.monotonic()
        try:
            result = await super().shell(command, timeout=timeout)
        except EnclosureEnded:
            result = _killed_result(started_at)
        return await self._add_limit_reasons(result)

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout: float = 60,  # noqa: ASYNC109 - as in the port
    ) -> CommandResult:
        started_at = time.monotonic()
        try:
            result = await super().run(argv, stdin=stdin, timeout=timeout)
        except EnclosureEnded:
            result = _killed_result(started_at)
        return await self._add_limit_reasons(result)

    async def open_terminal(self, command: str | None, size: TerminalSize) -> TerminalProcess:
        self.has_run_commands = True
        spawner = await self._ensure_spawner()
        terminal = await PtyProcess.start(
            spawner,
            command,
            dialect=await self._detect_dialect(spawner),
            cwd=self._working_directory,
            env=self._env,
            size=size,
            output_limit=self._output_limit,
        )
        self._terminals = [each for each in self._terminals if not each.is_closed] + [terminal]
        return terminal

    async def read(self, path: str) -> bytes:
        with _as_file_error(path):
            return await file_access.read_file(await self._ensure_spawner(), self._root, self._absolute_path(path))

    async def write(self, path: str, content: bytes) -> None:
        with _as_file_error(path):
            await file_access.write_file(await self._ensure_spawner(), self._root, self._absolute_path(path), content)

    async def list_files(self, path: str = ".") -> Sequence[FileInfo]:
        with _as_file_error(path):
            return await file_access.list_files(await self._ensure_spawner(), self._root, self._absolute_path(path))

    async def resolve_paths(self, paths: Sequence[str]) -> Sequence[str | None]:
        try:
            return await file_access.resolve_paths(await self._ensure_spawner(), self._root, paths)
        except OSError:
            return [None] * len(paths)

    async def _release_resources(self) -> bool:
        await self._stop_watching()
        clean = await super()._release_resources()
        for terminal in self._terminals:
            terminal.close()
        if self._enclosure is not None:
            self._enclosure.disconnect()
        if self._sockets is not None:
            await self._sockets.close_sockets()
        return clean

    @abc.abstractmethod
    async def _create_guardian(self, lease_id: str) -> Guardian:
        """Starts the guardian with the options of the backend."""

    @abc.abstractmethod
    async def _start_enclosure(self, guardian: Guardian, *, may_write: bool) -> Enclosure:
        """Starts a new enclosure: the first one, or a replacement. `may_write` is False if files may not grow in it."""

    @abc.abstractmethod
    def _find_cgroup(self) -> Cgroup | None:
        """Returns the control group of this environment's enclosures, or None if the worker cannot see one."""

    async def _start_guardian(self, lease_id: str) -> Guardian:
        if self._sockets is not None:
            await self._sockets.open_sockets()
        return await self._create_guardian(lease_id)

    async def _get_spawner(self, guardian: Guardian) -> Spawner:
        if self._enclosure is not None and not self._enclosure.has_ended:
            if self._may_write != self._disk.is_full:
                return self._enclosure
            await self._enclosure.end_all()  # the limit on file growth can only be set at its start
        await self._stop_watching()
        self._may_write = not self._disk.is_full
        self._enclosure = await self._start_enclosure(guardian, may_write=self._may_write)
        self._watchers.append(asyncio.create_task(self._disk.watch(self._end_over_limit)))
        if (group := self._find_cgroup()) is not None:
            self._watchers.append(asyncio.create_task(lower_weight_while_throttled(group)))
        return self._enclosure

    async def _end_over_limit(self) -> None:
        if self._enclosure is not None:
            self._disk_limit_exceeded = True
            await self._enclosure.end_all()

    async def _stop_watching(self) -> None:
        watchers = self._watchers
        self._watchers = []
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)

    async def _add_limit_reasons(self, result: CommandResult) -> CommandResult:
        """Adds to the result which limits of the enclosure were exceeded, if any."""
        reasons = []
        if self._disk_limit_exceeded:
            self._disk_limit_exceeded = False
            reasons.append(f"all processes in the {self.noun} were killed: the session's files exceeded the disk limit")
        if self._disk.is_full:
            limit = _format_size(self._view.limits.disk)
            reasons.append(f"the session's files exceed the disk limit of {limit}: delete some before you write more")
        if result.exit_code != 0:
            group = self._find_cgroup()
            kills = await asyncio.to_thread(group.memory_kill_count) if group is not None else 0
            if kills > self._memory_kills:
                reasons.append(
                    f"processes were killed: they exceeded the {self.noun}'s memory limit of "
                    f"{_format_size(self._view.limits.memory)}"
                )
            self._memory_kills = kills
        if self._enclosure is not None and self._enclosure.has_ended:
            reasons.append(f"the {self.noun} stopped with all its processes; the next command starts in a new one")
        return dataclasses.replace(result, error="; ".join(reasons)) if reasons else result


@contextlib.contextmanager
def _as_file_error(path: str) -> Iterator[None]:
    """Turns the end of the enclosure during a file access into an OSError, so that the access fails and the turn
    continues.
    """
    try:
        yield
    except EnclosureEnded as ended:
        raise OSError(errno.EIO, ended.message, path) from ended


def _killed_result(started_at: float) -> CommandResult:
    return CommandResult(exit_code=None, stdout=b"", stderr=b"", duration=time.monotonic() - started_at)


def _format_size(number: int) -> str:
    return f"{number / (1 << 30):g} GiB" if number >= 1 << 30 else f"{number / (1 << 20):g} MiB"
