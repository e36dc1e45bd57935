"""Runs each setup script once, and stores its result as an image of the engine.

The race: several turns and workers want the same result, and a worker may be killed while it runs the script. Within a
worker there is one task per result. Between workers, the container that the script runs in is the lock: its name
derives from the name of the result, the engine gives out a name only once, and a label names its owner. A second worker
waits for the image, or for the end of the owner. The image exists only if the script succeeded: the engine commits and
names it in one step.

A script runs as root in its container, with the same limits, filters and network as the turns of its environment.
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
from footplate.domain.ports import CommandResult
from footplate.domain.running import Egress
from footplate.environments.docker import body, engine, holders, images, labels
from footplate.environments.docker.engine import NoContainer, connected
from footplate.environments.docker.environment import DockerEnvironment, Host, Start
from footplate.environments.docker.images import Image, Recipe
from footplate.environments.docker.launches import Fresh
from footplate.environments.doors import Doors
from footplate.environments.guardian import clock
from footplate.environments.opening import PROXY_VARIABLES
from footplate.environments.reaper.leases import Lease
from footplate.environments.sandbox.limits import Limits
from footplate.environments.sandbox.view import EGRESS_DOOR, STATE, View

log = structlog.get_logger(__name__)

_TIME_LIMIT: Final = 3600.0
_COMMIT_LIMIT: Final = 900.0
_LEASE: Final = 30.0
_LOOK_EVERY: Final = 0.5
_LINES_SHOWN: Final = 20
_KEPT_OF_OUTPUT: Final = 64 * 1024
_ENV: Final = {"USER": "root", "HOME": "/root"}


class SetupFailed(NoContainer):
    """A setup script failed."""

    code = "setup_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Provides the images for containers. Each image is built once, however many turns need it."""

    host: Host
    worker: str
    limits: Limits
    data: Path | None = None
    """The data directory for leases, so that the reaper finds what a killed worker left."""
    egress: Egress | None = None
    _making: dict[str, "asyncio.Task[dict[str, Any]]"] = field(default_factory=dict)
    _known: dict[str, Image] = field(default_factory=dict)

    async def get(self, recipe: Recipe) -> Image:
        """Returns the image, and builds it if necessary. Raises `NoContainer`, including its subclass `SetupFailed`."""
        async with connected(self.host.engine) as docker:
            found = await images.base(docker, recipe.image)
            if recipe.setup:
                name = recipe.result(found["Id"])
                found = await engine.image(docker, name) or await self._once(found, recipe, name)
            if found["Id"] not in self._known:
                self._known[found["Id"]] = await images.read(docker, found, self.worker)
        return self._known[found["Id"]]

    async def _once(self, base: Mapping[str, Any], recipe: Recipe, name: str) -> dict[str, Any]:
        """Builds an image once. If a turn is interrupted it stops waiting, but the script continues for the
        next turn.
        """
        task = self._making.get(name)
        if task is None:
            task = self._making[name] = asyncio.create_task(self._made(base, recipe, name))
            task.add_done_callback(partial(self._forget, name))
        return await asyncio.shield(task)

    def _forget(self, name: str, done: "asyncio.Task[dict[str, Any]]") -> None:
        del self._making[name]
        if not done.cancelled() and (error := done.exception()) is not None:
            log.warning("setup script failed", action="docker.setup_failed", result=name, reason=repr(error))

    async def _made(self, base: Mapping[str, Any], recipe: Recipe, name: str) -> dict[str, Any]:
        while True:
            async with connected(self.host.engine) as docker:
                if found := await engine.image(docker, name):
                    return found
            if not await self._others_make(name):
                try:
                    await self._make(base, recipe, name)
                except Unavailable:
                    if not await self._others_make(name):  # otherwise another worker was faster
                        raise
            await asyncio.sleep(_LOOK_EVERY)

    async def _others_make(self, name: str) -> bool:
        """Returns whether another worker builds the image. Removes the container of an owner that died."""
        async with connected(self.host.engine) as docker:
            container = await engine.container(docker, _lock(name))
            if container is None:
                return False
            owner_alive = holders.lives(container["Config"]["Labels"].get(labels.HOLDER, ""))
            if owner_alive or (owner_alive is None and container["State"]["Status"] in {"created", "running", "paused"}):
                return True
            await engine.remove(docker, container.id)
            return False

    async def _make(self, base: Mapping[str, Any], recipe: Recipe, name: str) -> None:
        log.info("setup script started", action="docker.setup", image=recipe.image, result=name)
        lease = Lease.in_data(self.data, recipe.owner, "", "") if self.data is not None else None
        owners: list[str] = []
        async with _place(lease, self.host.sockets.parent) as script_dir, connected(self.host.engine) as docker:
            environment = self._environment(base["Id"], images.variables_of(base["Config"]), recipe, name, script_dir, owners)
            try:
                self._check(await self._ended(environment, recipe, name), recipe)
                repository, _, version = name.partition(":")
                image_labels = {**(base["Config"].get("Labels") or {}), "footplate.setup": version}
                async with connected(self.host.engine, patience=_COMMIT_LIMIT) as commit_docker:
                    await commit_docker.containers.container(_lock(name)).commit(
                        repository=repository, tag=version, config={**base["Config"], "Labels": image_labels}
                    )
            finally:
                await environment.aclose()
                container = await engine.container(docker, _lock(name))
                if container is not None and container["Config"]["Labels"].get(labels.HOLDER) in owners:
                    await engine.remove(docker, container.id)

    def _environment(
        self, base: str, variables: Mapping[str, str], recipe: Recipe, name: str, script_dir: "_Place", owners: list[str]
    ) -> DockerEnvironment:
        """Creates the environment for a script. Adds the owner of each container that it starts to `owners`."""
        egress_proxy = self.egress.door(recipe.network) if self.egress and recipe.network.mode == "allow" else None
        sockets = Doors(script_dir.path / "doors", {EGRESS_DOOR: egress_proxy.listen}, egress_proxy.aclose) if egress_proxy else None
        view = View(
            tree=script_dir.path / "tree",
            state=script_dir.path / "state",
            network=recipe.network,
            doors=sockets.directory if sockets else None,
            door_names=sockets.names if sockets else (),
            limits=self.limits,
        )
        spec = body.Wanted(
            image=base,
            volumes=(),
            view=view,
            user=(0, 0),
            network=recipe.setup_network,
            runtime=self.host.runtime.place,
            files={},
            labels={labels.WORKER: self.worker, labels.ORGANISATION: recipe.owner},
            keeps=True,
        )

        def create_launch(owner: str, limits: list[str]) -> Fresh:
            owners.append(owner)
            owned_spec = replace(spec, labels={**spec.labels, labels.HOLDER: owner})
            return Fresh(owned_spec, limits, self.host.runtime, name=_lock(name))

        async def start() -> Start:
            return Start(image=base, env=variables, launch=create_launch, ours=True)

        return DockerEnvironment(
            view,
            self.host,
            start,
            user=(os.geteuid(), os.getegid()),
            deadline=clock() + _LEASE,
            sockets=sockets,
            env={**_ENV, **(PROXY_VARIABLES if egress_proxy else {})},
            output_limit=_KEPT_OF_OUTPUT,
            lease=script_dir.lease,
        )

    async def _ended(self, environment: DockerEnvironment, recipe: Recipe, name: str) -> CommandResult:
        """Runs the script. Renews its lease, and measures what it writes, because it has no disk quota."""
        script = ["sh", "-c", f"exec 2>&1\n{recipe.setup}"]
        running = asyncio.create_task(environment.run(script, timeout=_TIME_LIMIT))
        try:
            while not (await asyncio.wait({running}, timeout=_LOOK_EVERY))[0]:
                environment.renew(clock() + _LEASE)
                await self._check_size(recipe, name)
        except BaseException:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            raise
        return running.result()

    async def _check_size(self, recipe: Recipe, name: str) -> None:
        async with connected(self.host.engine) as docker:
            container = await engine.container(docker, _lock(name))
            if container is not None and ((await container.show(size=1)).get("SizeRw") or 0) > self.limits.disk:
                limit = f"{self.limits.disk / (1 << 20):g} MiB"
                text = f"The setup script wrote more than {limit}, the disk limit of a session."
                raise SetupFailed(text, help_text=recipe.mend)

    def _check(self, result: CommandResult, recipe: Recipe) -> None:
        if result.exit_code == 0 and not result.timed_out:
            return
        lines = result.stdout.decode(errors="replace").rstrip().splitlines()
        how = f"did not finish within {_TIME_LIMIT / 60:g} minutes" if result.timed_out else "was killed"
        if result.exit_code is not None and not result.timed_out:
            how = f"exited with status {result.exit_code}"
        reason = f" ({result.error})" if result.error else ""
        output = "\n".join(lines[-_LINES_SHOWN:]) or "It printed nothing."
        raise SetupFailed(f"The setup script {how}{reason}:\n{output}", help_text=recipe.mend)


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    lease: Lease | None


@contextlib.asynccontextmanager
async def _place(lease: Lease | None, parent: Path) -> AsyncIterator[_Place]:
    """Creates an empty tree and home for a script, in its lease's directory, so that the reaper removes them after a
    kill.
    """
    path = lease.directory if lease is not None else Path(tempfile.mkdtemp(dir=parent))
    for name in ("tree", *(f"state/{name}" for name in STATE)):
        (path / name).mkdir(parents=True, exist_ok=True)
    try:
        yield _Place(path, lease)
    finally:
        await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)


def _lock(name: str) -> str:
    """Returns the name of the container in which an image is built."""
    return name.replace(":", "-")
