"""Base class of the environments with an isolation boundary: one enclosure (sandbox or container) per turn.

It enforces the limits of the enclosure and explains them in the results of commands.

    worker ── guardian (lease) ── anchor process ── init process ── shell, programs, file access
       └───────────────────── socket ──────────────────┘

The anchor process is a child of the guardian: bubblewrap, or the process that holds the lifeline of a container. When
the guardian ends, the anchor process ends, and everything inside ends with it.
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
from footplate.domain.ports import CommandResult, Endpoint, FileInfo
from footplate.environments import trees
from footplate.environments.doors import Doors
from footplate.environments.guarded import GRACE, GuardedEnvironment
from footplate.environments.guardian import Guardian
from footplate.environments.output import DEFAULT_LIMIT
from footplate.environments.reaper.leases import Lease
from footplate.environments.sandbox import calls
from footplate.environments.sandbox.cgroups import Cgroup
from footplate.environments.sandbox.view import HOME, MODEL_DOOR, PORTS, View
from footplate.environments.sandbox.watch import DiskWatch
from footplate.environments.sandbox.yielding import give_way
from footplate.environments.spawner import Spawned, Spawner

log = structlog.get_logger(__name__)

_KILLED: Final = 137
SCRATCH: Final = "/tmp/footplate"  # noqa: S108 - inside the enclosure, and removed with it


class Ended(Unavailable):
    """The whole enclosure ended while a command was being started: by itself, or because it ran out of memory."""


class Enclosure(Spawner):
    """The worker's connection to a sandbox or a container. The guardian ends the enclosure; `has_ended` is then
    True.
    """

    noun: ClassVar[str]
    stop_patience = 3.0

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self.over = False
        self._keeper: Spawned | None = None
        self._ending: asyncio.Task[None] | None = None

    async def end_all(self) -> None:
        """Ends the enclosure from outside. Processes inside cannot prevent it."""
        if self._keeper is not None:
            with contextlib.suppress(Unavailable):
                await self._keeper.kill()
        self.disconnect()

    def loss(self) -> FootplateError:
        return Ended(f"The {self.noun} stopped.", help_text="The next command starts in a new one.")

    def hung_up(self) -> None:
        """Kills the anchor process in case it is still alive. The guardian then reports whether the enclosure ended by
        itself or together with the guardian.
        """
        if self._ending is None and self._keeper is not None:
            self._loop.remove_reader(self._connection)
            self._ending = asyncio.create_task(self._keeper.kill())

    def kept_by(self, anchor: Spawned) -> None:
        self._keeper = anchor
        anchor.exited.add_done_callback(self._keeper_ended)

    def _keeper_ended(self, exited: "asyncio.Future[int]") -> None:
        """Settles all running commands. If the guardian was lost, the turn fails. If only the enclosure ended, every
        running command gets the result of a killed process.
        """
        self.over = True
        error = exited.exception()
        if isinstance(error, FootplateError):
            self.fail_all(error)
        else:
            log.warning("enclosure ended", action=f"{self.noun}.ended", code=exited.result())
            self.settle_all(_KILLED)
        self.disconnect()


class EnclosedEnvironment(GuardedEnvironment):
    """A subclass creates the enclosure and names the control group that holds it."""

    noun: ClassVar[str]

    def __init__(
        self,
        view: View,
        *,
        deadline: float,
        sockets: Doors | None = None,
        env: Mapping[str, str] | None = None,
        grace: float = GRACE,
        output_limit: int = DEFAULT_LIMIT,
        lease: Lease | None = None,
    ) -> None:
        """`sockets` are the sockets that the view mounts."""
        super().__init__(
            view.root, deadline=deadline, home=HOME, env=env, grace=grace, output_limit=output_limit, lease=lease
        )
        self._view = view
        self._doors = sockets
        self._enclosure: Enclosure | None = None
        self._memory_kills = 0
        # The disk limit applies to the session's own directories, not to a directory that the user named.
        directories = [view.state] if view.named else [view.state, view.tree]
        self._disk = DiskWatch(view.state, directories, view.limits.disk)
        self._watchers: list[asyncio.Task[None]] = []
        self._may_write = True
        self._overfull = False

    @property
    def trees(self) -> Mapping[str, Path]:
        return trees.own(self._view.trees, self._view.tree, named=self._view.named)

    @property
    def seen(self) -> Mapping[str, str]:
        return trees.seen(self._view.trees)

    @property
    def scratch(self) -> str:
        """The directory is named after the lease, because in a container that the operator started /tmp is older than
        the turn.
        """
        return SCRATCH if self._lease is None else f"{SCRATCH}-{self._lease.id}"

    def reach(self, endpoint: Endpoint) -> Endpoint:
        """Returns the forwarded port if there is one. An environment that shares the worker's network uses the endpoint
        as it is.
        """
        if not self._view.ports or endpoint.base_url is None:
            return endpoint
        path = urlsplit(endpoint.base_url).path
        return dataclasses.replace(endpoint, base_url=f"http://127.0.0.1:{PORTS[MODEL_DOOR]}{path}")

    async def shell(self, command: str, *, timeout: float) -> CommandResult:  # noqa: ASYNC109 - as in the port
        started_at = time.monotonic()
        try:
            result = await super().shell(command, timeout=timeout)
        except Ended:
            result = _ended(started_at)
        return await self._explained(result)

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
        except Ended:
            result = _ended(started_at)
        return await self._explained(result)

    async def read(self, path: str) -> bytes:
        with _told(path):
            return await calls.read(await self._living_spawner(), self._root, path)

    async def write(self, path: str, content: bytes) -> None:
        with _told(path):
            await calls.write(await self._living_spawner(), self._root, path, content)

    async def list_files(self, path: str = ".") -> Sequence[FileInfo]:
        with _told(path):
            return await calls.list_files(await self._living_spawner(), self._root, path)

    async def real(self, paths: Sequence[str]) -> Sequence[str | None]:
        try:
            return await calls.real(await self._living_spawner(), self._root, paths)
        except OSError:
            return [None] * len(paths)

    async def _end(self) -> bool:
        await self._stop_watching()
        clean = await super()._end()
        if self._enclosure is not None:
            self._enclosure.disconnect()
        if self._doors is not None:
            await self._doors.close()
        return clean

    @abc.abstractmethod
    async def _guard(self, lease_id: str) -> Guardian:
        """Starts the guardian with the options of the backend."""

    @abc.abstractmethod
    async def _enclose(self, guardian: Guardian, *, may_write: bool) -> Enclosure:
        """Starts a new enclosure: the first one, or a replacement. `may_write` is False if files may not grow in it."""

    @abc.abstractmethod
    def _group(self) -> Cgroup | None:
        """Returns the control group of this environment's enclosures, or None if the worker cannot see one."""

    async def _start_guardian(self, lease_id: str) -> Guardian:
        if self._doors is not None:
            await self._doors.open()
        return await self._guard(lease_id)

    async def _spawner(self, guardian: Guardian) -> Spawner:
        if self._enclosure is not None and not self._enclosure.over:
            if self._may_write != self._disk.full:
                return self._enclosure
            await self._enclosure.end_all()  # the limit on file growth can only be set at its start
        await self._stop_watching()
        self._may_write = not self._disk.full
        self._enclosure = await self._enclose(guardian, may_write=self._may_write)
        self._watchers.append(asyncio.create_task(self._disk.watch(self._end_overfull)))
        if (group := self._group()) is not None:
            self._watchers.append(asyncio.create_task(give_way(group)))
        return self._enclosure

    async def _end_overfull(self) -> None:
        if self._enclosure is not None:
            self._overfull = True
            await self._enclosure.end_all()

    async def _stop_watching(self) -> None:
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)

    async def _explained(self, result: CommandResult) -> CommandResult:
        """Adds to the result which limits of the enclosure were exceeded, if any."""
        reasons = []
        if self._overfull:
            self._overfull = False
            reasons.append(f"everything in the {self.noun} was killed: the session's files exceeded the disk limit")
        if self._disk.full:
            limit = _size(self._view.limits.disk)
            reasons.append(f"the session's files exceed {limit} of disk: delete some before any file can grow")
        if result.exit_code != 0:
            group = self._group()
            kills = await asyncio.to_thread(group.memory_kills) if group is not None else 0
            if kills > self._memory_kills:
                reasons.append(f"processes killed: the {self.noun}'s memory limit is {_size(self._view.limits.memory)}")
            self._memory_kills = kills
        if self._enclosure is not None and self._enclosure.over:
            reasons.append(f"the {self.noun} stopped with all its processes; the next command starts in a new one")
        return dataclasses.replace(result, error="; ".join(reasons)) if reasons else result


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """Turns the end of the enclosure during a file access into an OSError, so that the access fails and the turn
    continues.
    """
    try:
        yield
    except Ended as ended:
        raise OSError(errno.EIO, ended.message, path) from ended


def _ended(began: float) -> CommandResult:
    return CommandResult(exit_code=None, stdout=b"", stderr=b"", duration=time.monotonic() - began)


def _size(number: int) -> str:
    return f"{number / (1 << 30):g} GiB" if number >= 1 << 30 else f"{number / (1 << 20):g} MiB"
