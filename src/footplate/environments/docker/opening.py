"""Opens a turn's environment in a container: a new one, or one that the operator named."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from footplate.domain.environments import Backend, EnvironmentConfig, check, network_of, setup_of
from footplate.domain.errors import InvalidRequest
from footplate.domain.named_directories import NamedRoots
from footplate.domain.networks import Network
from footplate.domain.organisations import directory_of
from footplate.domain.projects import SessionProject
from footplate.domain.running import Egress, Environments, ModelGrant, OpenEnvironment, Trees
from footplate.domain.snapshots import NO_FILES, Files
from footplate.environments import trees
from footplate.environments.docker import body, labels, users
from footplate.environments.docker.engine import UNIX, NoContainer, connected, container
from footplate.environments.docker.environment import DockerEnvironment, Host, Start
from footplate.environments.docker.images import Image, Recipe, variables_of
from footplate.environments.docker.launches import Beside, Fresh, seen_in
from footplate.environments.docker.setup import Images
from footplate.environments.doors import Doors
from footplate.environments.guarded import GRACE
from footplate.environments.opening import PROXY_VARIABLES, doors_of, lease_of, places
from footplate.environments.output import DEFAULT_LIMIT
from footplate.environments.reaper.leases import Lease
from footplate.environments.sandbox.limits import Limits
from footplate.environments.sandbox.view import View
from footplate.environments.trees import Places


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A worker's settings for sessions: their directories, limits and network."""

    root: Path
    data: Path | None = None
    """The data directory for leases. None for a probe: it writes no lease, and mounts no sockets of the worker."""
    backend: Backend = field(default_factory=lambda: Backend(name="docker", network=Network(), cuts_network=True))
    egress: Egress | None = None
    uid: int
    """The user for the commands of a root worker. Commands of any other worker run as the worker's user."""
    named: NamedRoots | None = None
    hidden: Sequence[Path] = ()
    readable: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)
    worker: str = ""
    placing: Trees | None = None

    async def places(
        self, organisation: str, session_id: str, variables: Mapping[str, str], *, has_projects: bool = False
    ) -> Places:
        session_dir = self.root / directory_of(organisation) / session_id
        hidden = [path.resolve() for path in self.hidden]
        allowed_roots = None if has_projects else self.named
        return await places(session_dir, organisation, variables, named=allowed_roots, hidden=hidden, uid=self.uid)

    def lease(self, organisation: str, session_id: str, variables: Mapping[str, str]) -> Lease | None:
        return lease_of(self.data, organisation, session_id, variables) if self.data is not None else None


class InContainers(Environments):
    """Opens a new container for each turn."""

    def __init__(self, settings: Ground, host: Host, image: Image, images: Images, *, network: str = "none") -> None:
        """`image` is the default, for environments that request none."""
        self._ground = settings
        self._host = host
        self._image = image
        self._images = images
        self._network = network

    @property
    def engine(self) -> str:
        return self._host.engine

    async def open(
        self,
        organisation: str,
        session_id: str,
        *,
        deadline: float,
        variables: Mapping[str, str],
        config: EnvironmentConfig,
        models: ModelGrant | None,
        projects: Sequence[SessionProject] = (),
        files: Files = NO_FILES,
    ) -> OpenEnvironment:
        settings = self._ground
        check(config, settings.backend)
        location = await settings.places(organisation, session_id, variables, has_projects=bool(projects))
        checked_out = await trees.place(settings.placing, organisation, session_id, projects, files, location, enclosed=True)
        network = network_of(config, settings.backend)
        egress_proxy = settings.egress.door(network) if settings.egress and network.mode == "allow" else None
        lease = settings.lease(organisation, session_id, variables)
        sockets = doors_of(lease, models, egress_proxy) if lease is not None and models is not None else None
        view = View(
            tree=location.tree,
            state=location.state,
            named=location.named,
            readable=settings.readable,
            hidden=[path.resolve() for path in settings.hidden],
            network=network,
            doors=sockets.directory if sockets else None,
            door_names=sockets.names if sockets else (),
            limits=settings.limits,
            trees=checked_out,
        )
        container_labels = {
            labels.ORGANISATION: organisation,
            labels.SESSION: session_id,
            labels.TURN: variables.get("FOOTPLATE_TURN_ID", ""),
        }
        return await asyncio.to_thread(
            self.around,
            view,
            location.user,
            container_labels,
            deadline=deadline,
            doors=sockets,
            env={**variables, **trees.variables(projects, checked_out), **(PROXY_VARIABLES if egress_proxy else {})},
            lease=lease,
            recipe=self._recipe(organisation, config, network),
        )

    def _recipe(self, organisation: str, config: EnvironmentConfig, network: Network) -> Recipe | None:
        """Returns the image and setup that the environment requests, or None if it uses the default."""
        setup = setup_of(config)
        if not config.image and not setup:
            return None
        return Recipe(
            image=config.image or self._image.id,
            setup=setup,
            setup_network=self._network,
            network=network,
            owner=organisation,
            mend="Fix `config.packages` and `config.setup` of the environment; they are installed as root in the "
            "image's `sh`, with the environment's network.",
        )

    def around(
        self,
        view: View,
        user: tuple[int, int],
        container_labels: Mapping[str, str],
        *,
        deadline: float,
        env: Mapping[str, str],
        sockets: Doors | None = None,
        grace: float = GRACE,
        output_limit: int = DEFAULT_LIMIT,
        lease: Lease | None = None,
        recipe: Recipe | None = None,
    ) -> DockerEnvironment:
        host = self._host
        spec = body.Wanted(
            image="",
            volumes=(),
            view=view,
            user=user,
            network=self._network,
            runtime=host.runtime.place,
            files={},
            labels={**container_labels, labels.WORKER: self._ground.worker},
        )
        check_sources(body.sources(spec), host.engine)

        async def start() -> Start:
            image = self._image if recipe is None else await self._images.get(recipe)
            files = await asyncio.to_thread(users.files, host.users, image.id, image.users, user)
            made = replace(spec, image=image.id, volumes=image.volumes, files=files)
            launch = partial(_fresh, host, made)
            return Start(image=image.id, env=own_variables(image.env), launch=launch, ours=True)

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


class InNamedContainer(Environments):
    """Opens environments in a container that already runs, beside its other processes. Sessions are not isolated or
    limited.
    """

    def __init__(self, settings: Ground, host: Host, name: str) -> None:
        self._ground = settings
        self._host = host
        self._name = name

    async def open(
        self,
        organisation: str,
        session_id: str,
        *,
        deadline: float,
        variables: Mapping[str, str],
        config: EnvironmentConfig,
        models: ModelGrant | None,
        projects: Sequence[SessionProject] = (),
        files: Files = NO_FILES,
    ) -> OpenEnvironment:
        if projects:
            raise InvalidRequest(
                "A session with projects cannot run in a named container, because the shared git objects are not "
                "mounted there.",
                field="project_ids",
                help_text="Ask the operator to set FOOTPLATE_DOCKER_IMAGE, so that each turn gets its own container.",
            )
        del models  # a turn's sockets cannot be mounted into a container that already runs
        settings, host = self._ground, self._host
        check(config, settings.backend)
        location = await settings.places(organisation, session_id, variables)
        await trees.place(settings.placing, organisation, session_id, (), files, location, enclosed=True)
        async with connected(host.engine) as docker:
            running = await container(docker, self._name)
            if running is None or not running["State"]["Running"]:
                raise NoContainer(
                    f"The container {self._name!r} is not running.",
                    help_text="Start it, or name another container in FOOTPLATE_DOCKER_CONTAINER.",
                )
        path_inside = partial(seen_in, running["Mounts"], container=self._name)
        view = View(
            tree=location.tree, state=location.state, named=location.named, limits=settings.limits, seen_as=path_inside(str(location.tree))
        )
        inside_paths = {str(path): path_inside(str(path)) for path in (host.sockets, host.runtime.place.parent)}

        def create_launch(_holder: str, limits: list[str]) -> Beside:
            return Beside(container=running["Id"], user=location.user, limits=limits, runtime=host.runtime, seen=inside_paths)

        async def start() -> Start:
            env = own_variables(variables_of(running["Config"]))
            return Start(image=running["Id"], env=env, launch=create_launch, ours=False)

        return DockerEnvironment(
            view,
            host,
            start,
            user=location.user,
            deadline=deadline,
            env={"HOME": path_inside(str(location.state / "home")), **variables},
            lease=settings.lease(organisation, session_id, variables),
        )


def own_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Returns the image's variables, most importantly PATH, but without the home and name of the image's own user."""
    return {**{name: value for name, value in env.items() if name != "HOME"}, "USER": users.NAME}


def check_sources(sources: Sequence[Path], engine: str) -> None:
    """Raises `InvalidRequest` if a mount contains the engine's socket: a process that reaches it is root on this
    machine.
    """
    socket = Path(engine.removeprefix(UNIX)).resolve()
    for source in sources:
        resolved = source.resolve()
        if resolved == socket or resolved in socket.parents:
            raise InvalidRequest(
                f"The container would mount {source}, which contains the docker engine's socket {socket}.",
                field="context.directory",
                help_text="Name a directory that does not contain it, and check FOOTPLATE_SANDBOX_READABLE.",
            )


def _fresh(host: Host, wanted: body.Wanted, holder: str, limits: list[str]) -> Fresh:
    return Fresh(replace(wanted, labels={**wanted.labels, labels.HOLDER: holder}), limits, host.runtime)
