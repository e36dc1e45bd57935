"""Opens the environment of a turn in a container: a new container, or a running one that the operator named."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from footplate.domain.agents.environment_config import (
    Backend,
    build_setup_script,
    check_supported,
    resolve_network,
)
from footplate.domain.errors import InvalidRequest
from footplate.domain.network.command_network_access import Network
from footplate.domain.ports.engine import Egress, Environments, OpenEnvironment, OpenRequest, Trees
from footplate.domain.projects.allowed_directories import AllowedRoots
from footplate.environments.base_environment import DEFAULT_GRACE
from footplate.environments.docker import container_spec, labels, passwd_files
from footplate.environments.docker.container_launch import NamedContainerLaunch, NewContainerLaunch, path_in_container
from footplate.environments.docker.engine_api import UNIX_SCHEME, NoContainer, connect_engine, find_container
from footplate.environments.docker.environment import ContainerStart, DockerEnvironment, DockerHost
from footplate.environments.docker.image_inspection import Image, ImageRecipe, read_variables
from footplate.environments.docker.setup_images import ImageProvider
from footplate.environments.factory import PROXY_VARIABLES, create_lease, create_sockets, prepare_location
from footplate.environments.isolation import working_tree_paths
from footplate.environments.isolation.filesystem_view import OUTPUTS, OUTPUTS_VARIABLE, FilesystemView
from footplate.environments.isolation.mounted_sockets import MountedSockets
from footplate.environments.isolation.resource_limits import SandboxLimits
from footplate.environments.isolation.working_tree_paths import SessionLocation
from footplate.environments.leases import Lease
from footplate.environments.processes.output_capture import DEFAULT_OUTPUT_LIMIT
from footplate.environments.working_directory_choice import find_subdirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """A worker's settings for sessions: their directories, limits and network."""

    root: Path
    data: Path | None = None
    """The data directory for leases. None for a probe: it writes no lease, and mounts no sockets of the worker."""
    backend: Backend = field(default_factory=lambda: Backend(name="docker", network=Network(), can_limit_network=True))
    egress: Egress | None = None
    uid: int
    """The user for the commands of a root worker. Commands of any other worker run as the worker's user."""
    allowed_roots: AllowedRoots | None = None
    hidden: Sequence[Path] = ()
    readable: Sequence[str] = ()
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    worker: str = ""
    trees: Trees | None = None

    async def prepare_location(self, request: OpenRequest) -> SessionLocation:
        hidden = [path.resolve() for path in self.hidden]
        return await prepare_location(self.root, request, allowed_roots=self.allowed_roots, hidden=hidden, uid=self.uid)

    def create_lease(self, request: OpenRequest) -> Lease | None:
        return create_lease(self.data, request) if self.data is not None else None


class ContainerFactory(Environments):
    """Opens a new container for each turn."""

    def __init__(
        self, settings: WorkerSettings, host: DockerHost, image: Image, images: ImageProvider, *, network: str = "none"
    ) -> None:
        """`image` is the default, for environments that request none."""
        self._settings = settings
        self._host = host
        self._image = image
        self._images = images
        self._network = network

    @property
    def engine(self) -> str:
        return self._host.engine

    async def open_environment(self, request: OpenRequest) -> OpenEnvironment:
        settings = self._settings
        check_supported(request.config, settings.backend)
        location = await settings.prepare_location(request)
        checked_out = await working_tree_paths.check_out_trees(settings.trees, request, location, enclosed=True)
        network = resolve_network(request.config, settings.backend)
        egress_proxy = settings.egress.create_proxy(network) if settings.egress and network.mode == "allow" else None
        lease = settings.create_lease(request)
        sockets = create_sockets(lease, request.models, egress_proxy)
        view = FilesystemView(
            tree=location.tree,
            state=location.state,
            named=location.named,
            readable=settings.readable,
            hidden=[path.resolve() for path in settings.hidden],
            network=network,
            sockets=sockets.directory if sockets else None,
            socket_names=sockets.names if sockets else (),
            limits=settings.limits,
            trees=checked_out,
            subdirectory=find_subdirectory(location.tree, request.variables) if request.projects else "",
        )
        container_labels = {
            labels.ORGANISATION: request.organisation,
            labels.SESSION: request.session_id,
            labels.TURN: request.variables.get("FOOTPLATE_TURN_ID", ""),
        }
        return await asyncio.to_thread(
            self.create_environment,
            view,
            location.user,
            container_labels,
            deadline=request.deadline,
            sockets=sockets,
            env={
                **request.variables,
                **working_tree_paths.project_variables(request.projects, checked_out),
                **(PROXY_VARIABLES if egress_proxy else {}),
            },
            lease=lease,
            recipe=self._build_recipe(request, network),
        )

    def _build_recipe(self, request: OpenRequest, network: Network) -> ImageRecipe | None:
        """Returns the image and setup that the environment requests, or None if it uses the default."""
        config = request.config
        setup = build_setup_script(config)
        if not config.image and not setup:
            return None
        return ImageRecipe(
            image=config.image or self._image.id,
            setup=setup,
            setup_network=self._network,
            network=network,
            organisation=request.organisation,
            help_text="Fix `config.packages` or `config.setup` of the environment. Both run as root in the image's "
            "`sh`, with the environment's network access.",
        )

    def create_environment(
        self,
        view: FilesystemView,
        user: tuple[int, int],
        container_labels: Mapping[str, str],
        *,
        deadline: float,
        env: Mapping[str, str],
        sockets: MountedSockets | None = None,
        grace: float = DEFAULT_GRACE,
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        lease: Lease | None = None,
        recipe: ImageRecipe | None = None,
    ) -> DockerEnvironment:
        host = self._host
        spec = container_spec.ContainerSpec(
            image="",
            volumes=(),
            view=view,
            user=user,
            network=self._network,
            runtime=host.runtime.directory,
            files={},
            labels={**container_labels, labels.WORKER: self._settings.worker},
        )
        check_mounts(container_spec.mounted_sources(spec), host.engine)

        async def start() -> ContainerStart:
            image = self._image if recipe is None else await self._images.get_image(recipe)
            files = await asyncio.to_thread(
                passwd_files.write_user_files, host.passwd_dir, image.id, image.user_files, user
            )
            made = replace(spec, image=image.id, volumes=image.volumes, files=files)
            launch = partial(_create_launch, host, made)
            return ContainerStart(image=image.id, env=agent_variables(image.env), launch=launch, is_new=True)

        return DockerEnvironment(
            view,
            host,
            start,
            user=user,
            deadline=deadline,
            sockets=sockets,
            env=env,
            grace=grace,
            output_limit=output_limit,
            lease=lease,
        )


class NamedContainerFactory(Environments):
    """Opens environments in a container that already runs, beside its other processes. Sessions are not isolated or
    limited.
    """

    def __init__(self, settings: WorkerSettings, host: DockerHost, name: str) -> None:
        self._settings = settings
        self._host = host
        self._name = name

    async def open_environment(self, request: OpenRequest) -> OpenEnvironment:
        # A turn's sockets cannot be mounted into a container that already runs.
        settings, host = self._settings, self._host
        check_supported(request.config, settings.backend)
        location = await settings.prepare_location(request)
        async with connect_engine(host.engine) as docker:
            running = await find_container(docker, self._name)
            if running is None or not running["State"]["Running"]:
                raise NoContainer(
                    f"The container {self._name!r} is not running.",
                    help_text="Start it, or set FOOTPLATE_DOCKER_CONTAINER to another container.",
                )
        path_inside = partial(path_in_container, running["Mounts"], container=self._name)
        checked_out = await working_tree_paths.check_out_trees(
            settings.trees, request, location, enclosed=False, path_inside=path_inside
        )
        view = FilesystemView(
            tree=location.tree,
            state=location.state,
            named=location.named,
            limits=settings.limits,
            root_inside=path_inside(str(location.tree)),
            trees=checked_out,
            subdirectory=find_subdirectory(location.tree, request.variables) if request.projects else "",
        )
        inside_paths = {
            str(path): path_inside(str(path)) for path in (host.rendezvous_dir, host.runtime.directory.parent)
        }

        def create_launch(_holder: str, limits: list[str]) -> NamedContainerLaunch:
            return NamedContainerLaunch(
                container=running["Id"],
                user=location.user,
                limits=limits,
                runtime=host.runtime,
                inside_paths=inside_paths,
            )

        async def start() -> ContainerStart:
            env = agent_variables(read_variables(running["Config"]))
            return ContainerStart(image=running["Id"], env=env, launch=create_launch, is_new=False)

        return DockerEnvironment(
            view,
            host,
            start,
            user=location.user,
            deadline=request.deadline,
            env={
                "HOME": path_inside(str(location.state / "home")),
                OUTPUTS_VARIABLE: path_inside(str(location.state / OUTPUTS)),
                **request.variables,
                **working_tree_paths.project_variables(request.projects, checked_out),
            },
            lease=settings.create_lease(request),
        )


def agent_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Returns the image's variables, most importantly PATH, but without the home and name of the image's own user."""
    return {**{name: value for name, value in env.items() if name != "HOME"}, "USER": passwd_files.AGENT_NAME}


def check_mounts(sources: Sequence[Path], engine: str) -> None:
    """Raises `InvalidRequest` if a mount contains the engine's socket: a process that reaches it is root on this
    machine.
    """
    socket = Path(engine.removeprefix(UNIX_SCHEME)).resolve()
    for source in sources:
        resolved = source.resolve()
        if resolved == socket or resolved in socket.parents:
            raise InvalidRequest(
                f"The container would mount {source}, which contains the Docker engine's socket {socket}.",
                field="context.directory",
                help_text="Use a directory that does not contain the socket, and check FOOTPLATE_SANDBOX_READABLE.",
            )


def _create_launch(
    host: DockerHost, spec: container_spec.ContainerSpec, owner: str, limits: list[str]
) -> NewContainerLaunch:
    return NewContainerLaunch(replace(spec, labels={**spec.labels, labels.OWNER: owner}), limits, host.runtime)
