"""The `sandbox` environment of one turn: everything that the agent does happens inside one bubblewrap."""

import asyncio
import contextlib
import dataclasses
import errno
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import structlog

from footplate.domain.ports import CommandResult, FileInfo
from footplate.environments.guarded import GRACE, GuardedEnvironment
from footplate.environments.guardian import Guardian
from footplate.environments.output import DEFAULT_LIMIT
from footplate.environments.sandbox import calls
from footplate.environments.sandbox.bubblewrap import Sandbox, SandboxEnded, command
from footplate.environments.sandbox.cgroups import Cgroup, Cgroups
from footplate.environments.sandbox.view import HOME, STAGE, Plan, View
from footplate.environments.sandbox.watch import DiskWatch
from footplate.environments.spawner import Spawner

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What a worker found out about its machine when it started."""

    program: str
    """Where bubblewrap is."""
    cgroups: Cgroups | None
    """None where the worker may not make control groups."""


class SandboxEnvironment(GuardedEnvironment):
    def __init__(
        self,
        view: View,
        host: Host,
        *,
        user: tuple[int, int],
        deadline: float,
        env: Mapping[str, str] | None = None,
        grace: float = GRACE,
        output_limit: int = DEFAULT_LIMIT,
    ) -> None:
        """`user`: whom commands run as, seen from outside: uid and gid."""
        super().__init__(view.root, deadline=deadline, home=HOME, env=env, grace=grace, output_limit=output_limit)
        self._view = view
        self._host = host
        self._user = user
        self._plan = Plan(staged=user[0] != os.geteuid())
        self._argv = command(host.program, view, self._plan)
        self._sandbox: Sandbox | None = None
        self._cgroup: Cgroup | None = None
        self._memory_kills = 0
        # A directory that the user named is theirs to fill; the session's own are ours to keep small.
        places = [view.state] if view.named else [view.state, view.tree]
        self._disk = DiskWatch(view.state, places, view.limits.disk)
        self._watcher: asyncio.Task[None] | None = None
        self._may_write = True
        self._overfull = False

    async def shell(self, command: str, *, timeout: float) -> CommandResult:  # noqa: ASYNC109 - the port's
        began = time.monotonic()
        try:
            result = await super().shell(command, timeout=timeout)
        except SandboxEnded:
            result = _ended(began)
        return await self._explained(result)

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout: float = 60,  # noqa: ASYNC109 - the port's
    ) -> CommandResult:
        began = time.monotonic()
        try:
            result = await super().run(argv, stdin=stdin, timeout=timeout)
        except SandboxEnded:
            result = _ended(began)
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

    async def aclose(self) -> None:
        await self._stop_watching()
        await super().aclose()
        if self._sandbox is not None:
            self._sandbox.disconnect()
        if self._cgroup is not None:
            cgroup, self._cgroup = self._cgroup, None
            if not await asyncio.to_thread(cgroup.remove):
                log.error("cgroup not removed", action="sandbox.cgroup_left")

    async def _start_guardian(self) -> Guardian:
        staged = (STAGE, *self._plan.sources) if self._plan.staged else ()
        return await Guardian.start(self._deadline, user=self._user, staged=staged)

    async def _spawner(self, guardian: Guardian) -> Spawner:
        if self._sandbox is not None and not self._sandbox.over:
            if self._may_write != self._disk.full:
                return self._sandbox
            await self._sandbox.end_all()  # what it may write can only be said when it starts
        await self._stop_watching()
        if self._cgroup is None and self._host.cgroups is not None:
            name = secrets.token_hex(8)
            self._cgroup = await asyncio.to_thread(self._host.cgroups.make, name, self._view.limits)
        self._may_write = not self._disk.full
        limits = self._view.limits.of_a_process(grouped=self._cgroup is not None, may_write=self._may_write)
        self._sandbox = await Sandbox.start(guardian, self._argv, self._plan.data, self._cgroup, limits)
        self._watcher = asyncio.create_task(self._disk.watch(self._end_overfull))
        return self._sandbox

    async def _end_overfull(self) -> None:
        if self._sandbox is not None:
            self._overfull = True
            await self._sandbox.end_all()

    async def _stop_watching(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
            self._watcher = None

    async def _explained(self, result: CommandResult) -> CommandResult:
        """Why a limit of the sandbox ended it, if one did."""
        reasons = []
        if self._overfull:
            self._overfull = False
            reasons.append("what ran in the sandbox was ended, because the session's files became too large")
        if self._disk.full:
            limit = _size(self._view.limits.disk)
            reasons.append(f"the session's files take more than {limit} of disk: delete some, until then none can grow")
        if result.exit_code != 0 and self._cgroup is not None:
            kills = await asyncio.to_thread(self._cgroup.memory_kills)
            if kills > self._memory_kills:
                reasons.append(f"processes were killed: a sandbox has {_size(self._view.limits.memory)} of memory")
            self._memory_kills = kills
        if self._sandbox is not None and self._sandbox.over:
            reasons.append("the sandbox ended with all that ran in it; the next command gets a fresh one")
        return dataclasses.replace(result, error="; ".join(reasons)) if reasons else result


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """A sandbox that ends under a file access fails the access, not the turn."""
    try:
        yield
    except SandboxEnded as ended:
        raise OSError(errno.EIO, ended.message, path) from ended


def _ended(began: float) -> CommandResult:
    return CommandResult(exit_code=None, stdout=b"", stderr=b"", duration=time.monotonic() - began)


def _size(number: int) -> str:
    return f"{number / (1 << 30):g} GiB" if number >= 1 << 30 else f"{number / (1 << 20):g} MiB"
