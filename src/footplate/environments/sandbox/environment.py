"""The `sandbox` environment of one turn: all processes of the agent run inside one bubblewrap sandbox."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from footplate.environments.base_environment import DEFAULT_GRACE
from footplate.environments.isolation.cgroups import Cgroup, CgroupFactory
from footplate.environments.isolation.filesystem_view import STAGING_DIRECTORY, BubblewrapPlan, FilesystemView
from footplate.environments.isolation.isolated_environment import EnclosedEnvironment
from footplate.environments.isolation.mounted_sockets import MountedSockets
from footplate.environments.leases import Lease, new_lease_id
from footplate.environments.processes.guardian_client import Guardian
from footplate.environments.processes.output_capture import DEFAULT_OUTPUT_LIMIT
from footplate.environments.sandbox.bubblewrap import Sandbox, build_command

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxHost:
    """The sandboxing features that a worker found on its machine at its start."""

    bubblewrap_path: str
    """The path of bubblewrap."""
    cgroups: CgroupFactory | None
    """None if the worker may not create control groups."""


class SandboxEnvironment(EnclosedEnvironment):
    backend = "sandbox"
    noun = "sandbox"

    def __init__(
        self,
        view: FilesystemView,
        host: SandboxHost,
        *,
        user: tuple[int, int],
        deadline: float,
        sockets: MountedSockets | None = None,
        env: Mapping[str, str] | None = None,
        grace: float = DEFAULT_GRACE,
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
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
        self._plan = BubblewrapPlan(staged=user[0] != os.geteuid())
        self._argv = build_command(host.bubblewrap_path, view, self._plan)
        self._cgroup: Cgroup | None = None

    async def _release_resources(self) -> bool:
        clean = await super()._release_resources()
        if self._cgroup is not None:
            cgroup, self._cgroup = self._cgroup, None
            if not await asyncio.to_thread(cgroup.remove):
                log.error("control group could not be removed", action="sandbox.cgroup_left")
                clean = False
        return clean

    def _cgroup_directories(self) -> Sequence[Path]:
        return self._host.cgroups.paths if self._host.cgroups is not None else ()

    async def _create_guardian(self, lease_id: str) -> Guardian:
        staged = (STAGING_DIRECTORY, *self._plan.sources) if self._plan.staged else ()
        return await Guardian.start(self._deadline, user=self._user, staged=staged, lease_id=lease_id)

    async def _start_enclosure(self, guardian: Guardian, *, may_write: bool) -> Sandbox:
        if self._cgroup is None and self._host.cgroups is not None:
            name = self._lease.id if self._lease is not None else new_lease_id()
            self._cgroup = await asyncio.to_thread(self._host.cgroups.create_cgroup, name, self._view.limits)
        limits = self._view.limits.process_limits(has_cgroup=self._cgroup is not None, may_write=may_write)
        return await Sandbox.start(guardian, self._argv, self._plan.data, self._cgroup, limits)

    def _find_cgroup(self) -> Cgroup | None:
        return self._cgroup
