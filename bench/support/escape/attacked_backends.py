"""Opens the backends that are attacked, and `unsandboxed`, where a meaningful attempt must succeed."""

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.support import environment_backends as engines
from bench.support.escape.attempt_context import LIMITS
from footplate.domain.agents import environment_config as domain
from footplate.domain.network.command_network_access import Network
from footplate.domain.ports.engine import Environments, OpenEnvironment, OpenRequest
from footplate.domain.projects.allowed_directories import AllowedRoots
from footplate.environments.docker import probe as docker_probe
from footplate.environments.docker.factory import WorkerSettings
from footplate.environments.docker.image_inspection import ImageRecipe
from footplate.environments.docker.portable_python import MOUNT_TARGET
from footplate.environments.factory import SandboxFactory
from footplate.environments.isolation import filesystem_view
from footplate.environments.sandbox import probe
from footplate.environments.session_directories import WORKSPACES, state_directory
from footplate.environments.unsandboxed_environment import UnsandboxedEnvironment
from footplate.lease_clock import lease_clock
from footplate.proxy.model_proxy import ModelProxy
from footplate.testing import docker_image

UID: Final = 65_520
LEASE: Final = 3600.0
CONTROL: Final = "unsandboxed"
SANDBOX: Final = domain.Backend(name="sandbox", network=Network(), can_limit_network=True)
DOCKER: Final = domain.Backend(name="docker", network=Network(), can_limit_network=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackedBackend:
    name: str
    environments: Environments
    root: Path
    python: Sequence[str]
    """The command that starts Python inside; a program follows."""
    named: bool = False
    """Whether sessions work in directories that root owns, as a root developer's do."""

    def tree(self, session: str) -> Path:
        return self.root / ("named" if self.named else "org") / session

    def home(self, session: str) -> Path:
        own = self.root / "org" / session
        return own if self.name == CONTROL else state_directory(own) / "home"

    @contextlib.asynccontextmanager
    async def open_session(
        self, session: str, variables: Mapping[str, str] | None = None
    ) -> AsyncIterator[OpenEnvironment]:
        """Opens an environment as a worker does for a turn."""
        given = dict(variables or {})
        if self.named:
            self.tree(session).mkdir(parents=True, exist_ok=True)
            given["FOOTPLATE_CONTEXT"] = json.dumps({"directory": str(self.tree(session))})
        async with ModelProxy({}) as proxy:
            deadline = lease_clock() + LEASE
            models = proxy.grant(deadline=deadline)
            environment = await self.environments.open_environment(
                OpenRequest(
                    organisation="org",
                    session_id=session,
                    deadline=deadline,
                    variables=given,
                    config=domain.EnvironmentConfig(),
                    models=models,
                )
            )
            try:
                yield environment
            finally:
                await environment.aclose()
                await models.aclose()


class _UnsandboxedEnvironments(Environments):
    """Opens environments without namespaces, so that they see what the host's own processes see."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def open_environment(self, request: OpenRequest) -> UnsandboxedEnvironment:
        tree = self._root / request.organisation / request.session_id
        tree.mkdir(parents=True, exist_ok=True)
        return UnsandboxedEnvironment(str(tree), deadline=request.deadline, env=request.variables, namespaces=False)


@contextlib.asynccontextmanager
async def unsandboxed(root: Path) -> AsyncIterator[AttackedBackend]:
    python = (sys.executable, "-I", "-S", "-c")
    yield AttackedBackend(name=CONTROL, environments=_UnsandboxedEnvironments(root), root=root, python=python)


@contextlib.asynccontextmanager
async def sandbox(root: Path) -> AsyncIterator[AttackedBackend]:
    found = await probe.probe_sandbox(UID)
    environments = SandboxFactory(root, SANDBOX, found.host, uid=UID, limits=LIMITS)
    python = (filesystem_view.python_path(), "-I", "-S", "-c")
    yield AttackedBackend(name="sandbox", environments=environments, root=root / WORKSPACES, python=python)


@contextlib.asynccontextmanager
async def sandbox_of_root(root: Path) -> AsyncIterator[AttackedBackend]:
    """Opens a sandbox in a directory that root owns and names: a root worker's commands are root to the kernel."""
    found = await probe.probe_sandbox(UID)
    environments = SandboxFactory(
        root, SANDBOX, found.host, uid=UID, allowed_roots=AllowedRoots({"org": ["/"]}), limits=LIMITS
    )
    python = (filesystem_view.python_path(), "-I", "-S", "-c")
    yield AttackedBackend(
        name="sandbox of root", environments=environments, root=root / WORKSPACES, python=python, named=True
    )


@contextlib.asynccontextmanager
async def docker(root: Path) -> AsyncIterator[AttackedBackend]:
    """Opens containers in its own docker engine. The image has programs that can act as root."""
    ground = WorkerSettings(root=root / WORKSPACES, data=root, backend=DOCKER, uid=UID, limits=LIMITS)
    async with engines.docker_engine([*docker_image.DEFAULT_PROGRAMS, "su"]) as engine:
        found = await docker_probe.probe_docker(
            engine, ground, root / "docker", image_or_container=ImageRecipe(image=engines.IMAGE)
        )
        runtime = (
            f"{MOUNT_TARGET}/lib/{found.host.runtime.loader}",
            "--library-path",
            f"{MOUNT_TARGET}/lib",
            f"{MOUNT_TARGET}/bin/python",
        )
        python = (*runtime, "-I", "-S", "-B", "-c")
        yield AttackedBackend(name="docker", environments=found.factory, root=root / WORKSPACES, python=python)


OpenBackend = Callable[[Path], AbstractAsyncContextManager[AttackedBackend]]


BOUNDARIES: Final[Mapping[str, OpenBackend]] = {"sandbox": sandbox, "docker": docker}


def attacked_backends() -> dict[str, OpenBackend]:
    """Returns the backends that this machine has, by name."""
    root = {"sandbox of root": sandbox_of_root} if os.geteuid() == 0 else {}
    return {**{name: BOUNDARIES[name] for name in engines.available_backends() if name in BOUNDARIES}, **root}
