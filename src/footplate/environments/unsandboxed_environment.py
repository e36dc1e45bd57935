"""The `unsandboxed` environment: commands run on the worker's machine as the worker's user, without isolation.

A guardian process starts all processes of a turn, and kills them when the turn or its lease ends. Files can be written
only until the lease ends, so a worker that was suspended and resumed cannot change them.
"""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from footplate.domain.files.snapshots import SCRATCH_TREE
from footplate.domain.ports.harness import FileInfo
from footplate.environments import local_files
from footplate.environments.base_environment import DEFAULT_GRACE, BaseEnvironment
from footplate.environments.isolation.filesystem_view import OUTPUTS_VARIABLE
from footplate.environments.leases import Lease
from footplate.environments.processes.guardian_client import Guardian
from footplate.environments.processes.output_capture import DEFAULT_OUTPUT_LIMIT
from footplate.environments.processes.process_identity import LEASE_VARIABLE


class UnsandboxedEnvironment(BaseEnvironment):
    backend = "unsandboxed"

    def __init__(
        self,
        root: str,
        *,
        deadline: float,
        home: str | None = None,
        working_directory: str | None = None,
        env: Mapping[str, str] | None = None,
        grace: float = DEFAULT_GRACE,
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        namespaces: bool = True,
        lease: Lease | None = None,
        trees: Mapping[str, Path] | None = None,
        outputs: Path | None = None,
    ) -> None:
        absolute_root = str(Path(root).absolute())
        super().__init__(
            absolute_root,
            deadline=deadline,
            home=home or absolute_root,
            working_directory=working_directory,
            env={
                **({OUTPUTS_VARIABLE: str(outputs)} if outputs is not None else {}),
                **(env or {}),
                **({LEASE_VARIABLE: lease.id} if lease is not None else {}),
            },
            grace=grace,
            output_limit=output_limit,
            lease=lease,
        )
        self._namespaces = namespaces
        self._trees = trees or {}
        self._outputs_directory = outputs
        self._home_files = None if home is None else Path(home).absolute()

    @property
    def trees(self) -> Mapping[str, Path]:
        return self._trees

    @property
    def outputs(self) -> Path | None:
        return self._outputs_directory

    @property
    def home_files(self) -> Path | None:
        return self._home_files

    @property
    def inside_paths(self) -> Mapping[str, str]:
        return {name: str(tree) for name, tree in self._trees.items() if name != SCRATCH_TREE}

    async def read(self, path: str) -> bytes:
        return await asyncio.to_thread(local_files.read_file, self._absolute_path(path))

    async def write(self, path: str, content: bytes) -> None:
        self._check_lease()
        await asyncio.to_thread(
            local_files.write_file, self._absolute_path(path), content, before_replace=self._check_lease
        )

    async def list_files(self, path: str = ".") -> Sequence[FileInfo]:
        return await asyncio.to_thread(local_files.list_files, self._absolute_path(path))

    async def resolve_paths(self, paths: Sequence[str]) -> Sequence[str | None]:
        return await asyncio.to_thread(local_files.resolve_paths, paths)

    async def _release_resources(self) -> bool:
        clean = await super()._release_resources()
        # With a lease, the scratch directory is also removed with the lease.
        await asyncio.to_thread(shutil.rmtree, self.scratch, ignore_errors=True)
        return clean

    async def _start_guardian(self, lease_id: str) -> Guardian:
        return await Guardian.start(self._deadline, namespaces=self._namespaces, lease_id=lease_id)
