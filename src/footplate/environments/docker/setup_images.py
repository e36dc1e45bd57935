"""Builds Docker images by running setup scripts.

Several turns and workers may need the same image at once, and a worker may be killed while it runs the script.
The container in which the script runs is therefore a lock between workers: its name depends only on the image to
build. A second worker waits until the image exists or the owner of the container is dead. An image exists only
if its script succeeded.
"""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog

from footplate.domain.errors import Unavailable
from footplate.domain.ports.engine import Egress
from footplate.domain.ports.harness import CommandResult
from footplate.environments.docker import container_owner, container_spec, engine_api, image_inspection, labels
from footplate.environments.docker.container_launch import NewContainerLaunch
from footplate.environments.docker.engine_api import NoContainer, connect_engine
from footplate.environments.docker.environment import ContainerStart, DockerEnvironment, DockerHost
from footplate.environments.docker.image_inspection import Image, ImageRecipe
from footplate.environments.factory import PROXY_VARIABLES
from footplate.environments.isolation.filesystem_view import EGRESS_SOCKET, STATE_MOUNTS, FilesystemView
from footplate.environments.isolation.mounted_sockets import MountedSockets
from footplate.environments.isolation.resource_limits import SandboxLimits
from footplate.environments.leases import Lease
from footplate.lease_clock import lease_clock

log = structlog.get_logger(__name__)

_SCRIPT_TIMEOUT: Final = 3600.0
_COMMIT_TIMEOUT: Final = 900.0
_LEASE_SECONDS: Final = 30.0
_POLL_INTERVAL: Final = 0.5
_LINES_SHOWN: Final = 20
_OUTPUT_LIMIT: Final = 64 * 1024
_ENV: Final = {"USER": "root", "HOME": "/root"}


class SetupFailed(NoContainer):
    """A setup script failed."""

    code = "setup_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageProvider:
    """Provides the images for containers. Each image is built once, however many turns need it.

    Docker creates and names an image in one step. Within one worker, one task builds an image, and all turns that need
    the image wait for that task. A setup script runs as root in its container, with the limits and the network of the
    turns of its environment and similar seccomp filters.
    """

    host: DockerHost
    worker: str
    limits: SandboxLimits
    data: Path | None = None
    """The data directory for leases, so that the reaper finds what a killed worker left."""
    egress: Egress | None = None
    _builds: dict[str, "asyncio.Task[dict[str, Any]]"] = field(default_factory=dict)
    _images: dict[str, Image] = field(default_factory=dict)

    async def get_image(self, recipe: ImageRecipe) -> Image:
        """Returns the image, and builds it if necessary. Raises `NoContainer`, including its subclass `SetupFailed`."""
        async with connect_engine(self.host.engine) as docker:
            found = await image_inspection.inspect_base(docker, recipe.image)
            if recipe.setup:
                name = recipe.result_name(found["Id"])
                found = await engine_api.find_image(docker, name) or await self._build_once(found, recipe, name)
            if found["Id"] not in self._images:
                self._images[found["Id"]] = await image_inspection.read_image(docker, found, self.worker)
        return self._images[found["Id"]]

    async def _build_once(self, base: Mapping[str, Any], recipe: ImageRecipe, name: str) -> dict[str, Any]:
        """Builds an image once. If a turn is interrupted it stops waiting, but the script continues for the
        next turn.
        """
        task = self._builds.get(name)
        if task is None:
            task = self._builds[name] = asyncio.create_task(self._wait_or_build(base, recipe, name))
            task.add_done_callback(partial(self._finish_build, name))
        return await asyncio.shield(task)

    def _finish_build(self, name: str, done: "asyncio.Task[dict[str, Any]]") -> None:
        del self._builds[name]
        if not done.cancelled() and (error := done.exception()) is not None:
            log.warning("setup script failed", action="docker.setup_failed", result=name, reason=repr(error))

    async def _wait_or_build(self, base: Mapping[str, Any], recipe: ImageRecipe, name: str) -> dict[str, Any]:
        while True:
            async with connect_engine(self.host.engine) as docker:
                if found := await engine_api.find_image(docker, name):
                    return found
            if not await self._is_built_elsewhere(name):
                try:
                    await self._build(base, recipe, name)
                except Unavailable:
                    if not await self._is_built_elsewhere(name):  # otherwise another worker was faster
                        raise
            await asyncio.sleep(_POLL_INTERVAL)

    async def _is_built_elsewhere(self, name: str) -> bool:
        """Returns whether another worker builds the image. Removes the container of an owner that died."""
        async with connect_engine(self.host.engine) as docker:
            container = await engine_api.find_container(docker, _lock_name(name))
            if container is None:
                return False
            owner_alive = container_owner.is_alive(container["Config"]["Labels"].get(labels.OWNER, ""))
            if owner_alive or (
                owner_alive is None and container["State"]["Status"] in {"created", "running", "paused"}
            ):
                return True
            await engine_api.remove_container(docker, container.id)
            return False

    async def _build(self, base: Mapping[str, Any], recipe: ImageRecipe, name: str) -> None:
        log.info("setup script started", action="docker.setup", image=recipe.image, result=name)
        lease = Lease.in_data_directory(self.data, recipe.organisation, "", "") if self.data is not None else None
        owners: list[str] = []
        async with (
            _script_directory(lease, self.host.rendezvous_dir.parent) as script_dir,
            connect_engine(self.host.engine) as docker,
        ):
            environment = self._create_environment(
                base["Id"], image_inspection.read_variables(base["Config"]), recipe, name, script_dir, owners
            )
            try:
                self._check_result(await self._run_script(environment, recipe, name), recipe)
                repository, _, version = name.partition(":")
                image_labels = {**(base["Config"].get("Labels") or {}), "footplate.setup": version}
                async with connect_engine(self.host.engine, patience=_COMMIT_TIMEOUT) as commit_docker:
                    await commit_docker.containers.container(_lock_name(name)).commit(
                        repository=repository, tag=version, config={**base["Config"], "Labels": image_labels}
                    )
            finally:
                await environment.aclose()
                container = await engine_api.find_container(docker, _lock_name(name))
                if container is not None and container["Config"]["Labels"].get(labels.OWNER) in owners:
                    await engine_api.remove_container(docker, container.id)

    def _create_environment(
        self,
        base: str,
        variables: Mapping[str, str],
        recipe: ImageRecipe,
        name: str,
        script_dir: "_ScriptDirectory",
        owners: list[str],
    ) -> DockerEnvironment:
        """Creates the environment for a script. Adds the owner of each container that it starts to `owners`."""
        egress_proxy = (
            self.egress.create_proxy(recipe.network) if self.egress and recipe.network.mode == "allow" else None
        )
        sockets = (
            MountedSockets(script_dir.path / "doors", {EGRESS_SOCKET: egress_proxy.listen}, egress_proxy.aclose)
            if egress_proxy
            else None
        )
        view = FilesystemView(
            tree=script_dir.path / "tree",
            state=script_dir.path / "state",
            network=recipe.network,
            sockets=sockets.directory if sockets else None,
            socket_names=sockets.names if sockets else (),
            limits=self.limits,
        )
        spec = container_spec.ContainerSpec(
            image=base,
            volumes=(),
            view=view,
            user=(0, 0),
            network=recipe.setup_network,
            runtime=self.host.runtime.directory,
            files={},
            labels={labels.WORKER: self.worker, labels.ORGANISATION: recipe.organisation},
            is_image_build=True,
        )

        def create_launch(owner: str, limits: list[str]) -> NewContainerLaunch:
            owners.append(owner)
            owned_spec = replace(spec, labels={**spec.labels, labels.OWNER: owner})
            return NewContainerLaunch(owned_spec, limits, self.host.runtime, name=_lock_name(name))

        async def start() -> ContainerStart:
            return ContainerStart(image=base, env=variables, launch=create_launch, is_new=True)

        return DockerEnvironment(
            view,
            self.host,
            start,
            user=(os.geteuid(), os.getegid()),
            deadline=lease_clock() + _LEASE_SECONDS,
            sockets=sockets,
            env={**_ENV, **(PROXY_VARIABLES if egress_proxy else {})},
            output_limit=_OUTPUT_LIMIT,
            lease=script_dir.lease,
        )

    async def _run_script(self, environment: DockerEnvironment, recipe: ImageRecipe, name: str) -> CommandResult:
        """Runs the script. Renews its lease, and measures what it writes, because it has no disk quota."""
        script = ["sh", "-c", f"exec 2>&1\n{recipe.setup}"]
        running = asyncio.create_task(environment.run(script, timeout=_SCRIPT_TIMEOUT))
        try:
            while not (await asyncio.wait({running}, timeout=_POLL_INTERVAL))[0]:
                environment.renew(lease_clock() + _LEASE_SECONDS)
                await self._check_size(recipe, name)
        except BaseException:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            raise
        return running.result()

    async def _check_size(self, recipe: ImageRecipe, name: str) -> None:
        async with connect_engine(self.host.engine) as docker:
            container = await engine_api.find_container(docker, _lock_name(name))
            if container is not None and ((await container.show(size=1)).get("SizeRw") or 0) > self.limits.disk:
                limit = f"{self.limits.disk / (1 << 20):g} MiB"
                text = f"The setup script wrote more than {limit}, the disk limit of a session."
                raise SetupFailed(text, help_text=recipe.help_text)

    def _check_result(self, result: CommandResult, recipe: ImageRecipe) -> None:
        if result.exit_code == 0 and not result.timed_out:
            return
        lines = result.stdout.decode(errors="replace").rstrip().splitlines()
        how = f"did not finish within {_SCRIPT_TIMEOUT / 60:g} minutes" if result.timed_out else "was killed"
        if result.exit_code is not None and not result.timed_out:
            how = f"exited with status {result.exit_code}"
        reason = f" ({result.error})" if result.error else ""
        output = "\n".join(lines[-_LINES_SHOWN:]) or "It printed nothing."
        raise SetupFailed(f"The setup script {how}{reason}:\n{output}", help_text=recipe.help_text)


@dataclass(frozen=True, slots=True)
class _ScriptDirectory:
    path: Path
    lease: Lease | None


@contextlib.asynccontextmanager
async def _script_directory(lease: Lease | None, parent: Path) -> AsyncIterator[_ScriptDirectory]:
    """Creates an empty tree and home for a script, in its lease's directory, so that the reaper removes them after a
    kill.
    """
    path = lease.directory if lease is not None else Path(tempfile.mkdtemp(dir=parent))
    for name in ("tree", *(f"state/{name}" for name in STATE_MOUNTS)):
        (path / name).mkdir(parents=True, exist_ok=True)
    try:
        yield _ScriptDirectory(path, lease)
    finally:
        await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)


def _lock_name(name: str) -> str:
    """Returns the name of the container in which an image is built."""
    return name.replace(":", "-")
