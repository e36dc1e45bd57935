"""The `sandbox` environment of one turn: all processes of the agent run inside one bubblewrap sandbox."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from footplate.environments.doors import Doors
from footplate.environments.enclosed import EnclosedEnvironment
from footplate.environments.guarded import GRACE
from footplate.environments.guardian import Guardian
from footplate.environments.output import DEFAULT_LIMIT
from footplate.environments.reaper.leases import Lease, new_id
from footplate.environments.sandbox.bubblewrap import Sandbox, command
from footplate.environments.sandbox.cgroups import Cgroup, Cgroups
from footplate.environments.sandbox.view import STAGE, Plan, View

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The sandboxing features that a worker found on its machine at its start."""

    program: str
    """The path of bubblewrap."""
    cgroups: Cgroups | None
    """None if the worker may not create control groups."""


class SandboxEnvironment(EnclosedEnvironment):
    noun = "sandbox"

    def __init__(
        self,
        view: View,
        host: Host,
        *,
        user: tuple[int, int],
        deadline: float,
        sockets: Doors | None = None,
        env: Mapping[str, str] | None = None,
        grace: float = GRACE,
        output_limit: int = DEFAULT_LIMIT,
        lease: Lease | None = None,
    ) -> None:
        """`user` is the uid and gid of commands as seen from outside. `sockets` are the sockets that the view
        mounts.
        """
        super().__init__(
            view, deadline=deadline, sockets=sockets, env=env, grace=grace, output_limit=output_limit, lease=lease
        )
        self._host = host
        self._user = user
        self._plan = Plan(staged=user[0] != os.geteuid())
        self._argv = command(host.program, view, self._plan)
        self._cgroup: Cgroup | None = None

    async def _end(self) -> bool:
        clean = await super()._end()
        if self._cgroup is not None:
            cgroup, self._cgroup = self._cgroup, None
            if not await asyncio.to_thread(cgroup.remove):
                log.error("control group not removed", action="sandbox.cgroup_left")
                clean = False
        return clean

    def _groups(self) -> Sequence[Path]:
        return self._host.cgroups.places if self._host.cgroups is not None else ()

    async def _guard(self, lease_id: str) -> Guardian:
        staged = (STAGE, *self._plan.sources) if self._plan.staged else ()
        return await Guardian.start(self._deadline, user=self._user, staged=staged, lease_id=lease_id)

    async def _enclose(self, guardian: Guardian, *, may_write: bool) -> Sandbox:
        if self._cgroup is None and self._host.cgroups is not None:
            name = self._lease.id if self._lease is not None else new_id()
            self._cgroup = await asyncio.to_thread(self._host.cgroups.make, name, self._view.limits)
        limits = self._view.limits.of_a_process(has_cgroup=self._cgroup is not None, may_write=may_write)
        return await Sandbox.start(guardian, self._argv, self._plan.data, self._cgroup, limits)

    def _group(self) -> Cgroup | None:
        return self._cgroup
