"""Opens the environment of a turn: chooses its directories, the user for its commands, and its backend."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from footplate.domain.agents.environment_config import Backend, check_supported, resolve_network
from footplate.domain.organisations.organisation_names import directory_name
from footplate.domain.ports.engine import (
    Egress,
    EgressProxy,
    Environments,
    ModelGrant,
    OpenEnvironment,
    OpenRequest,
    Trees,
)
from footplate.domain.projects.allowed_directories import AllowedRoots
from footplate.environments.isolation import working_tree_paths
from footplate.environments.isolation.filesystem_view import (
    EGRESS_SOCKET,
    FORWARDED_PORTS,
    MODEL_SOCKET,
    OUTPUTS,
    STATE_MOUNTS,
    FilesystemView,
    check_named_directory,
)
from footplate.environments.isolation.mounted_sockets import MountedSockets
from footplate.environments.isolation.resource_limits import SandboxLimits
from footplate.environments.isolation.working_tree_paths import SessionLocation
from footplate.environments.leases import Lease
from footplate.environments.processes.process_identity import PROC
from footplate.environments.sandbox.environment import SandboxEnvironment, SandboxHost
from footplate.environments.session_directories import WORKSPACES, state_directory
from footplate.environments.unsandboxed_environment import UnsandboxedEnvironment
from footplate.environments.working_directory_choice import choose_working_directory, find_subdirectory

log = structlog.get_logger(__name__)


_PROXY: Final = f"http://127.0.0.1:{FORWARDED_PORTS[EGRESS_SOCKET]}"
_PROXY_BY_NAME: Final = {"http_proxy": _PROXY, "https_proxy": _PROXY, "no_proxy": "localhost,127.0.0.1,::1"}
PROXY_VARIABLES: Final = {
    **_PROXY_BY_NAME,
    **{name.upper(): value for name, value in _PROXY_BY_NAME.items()},
    "NODE_USE_ENV_PROXY": "1",  # without it Node.js ignores these variables
}
"""Set for every command if the network is an allow-list. They only tell programs where the proxy is: a program that
unsets them reaches nothing.
"""
_SOCKETS_NAME: Final = "doors"


class UnsandboxedFactory(Environments):
    """Opens environments without a boundary: a directory per session on this machine, or one that the session names."""

    def __init__(
        self, data: Path, backend: Backend, *, allowed_roots: AllowedRoots | None = None, trees: Trees | None = None
    ) -> None:
        self._data = data
        self._backend = backend
        self._root = data / WORKSPACES
        self._allowed_roots = allowed_roots
        self._trees = trees

    async def open_environment(self, request: OpenRequest) -> OpenEnvironment:
        check_supported(request.config, self._backend)
        session_dir = find_session_directory(self._root, request)
        directory = choose_working_directory(
            session_dir, request.organisation, request.variables, None if request.projects else self._allowed_roots
        )
        location = SessionLocation(
            tree=session_dir.absolute(),
            state=state_directory(session_dir.absolute()),
            named=directory != session_dir,
            user=(os.geteuid(), os.getegid()),
        )
        # The last turn may have run on another backend, as another user.
        await asyncio.to_thread(_claim_directories, [location.tree, location.state], location.user)
        checked_out = await working_tree_paths.check_out_trees(self._trees, request, location, enclosed=False)
        subdirectory = find_subdirectory(location.tree, request.variables) if request.projects else ""
        return UnsandboxedEnvironment(
            str(directory),
            deadline=request.deadline,
            home=str(await asyncio.to_thread(_create_state_directory, session_dir, "home")),
            working_directory=str(directory.absolute() / subdirectory),
            env={**request.variables, **working_tree_paths.project_variables(request.projects, checked_out)},
            lease=create_lease(self._data, request),
            trees=working_tree_paths.session_trees(checked_out, location.tree, named=location.named),
            outputs=await asyncio.to_thread(_create_state_directory, session_dir.absolute(), OUTPUTS),
        )


class SandboxFactory(Environments):
    """Opens sandboxed environments, in the same directories as without a sandbox."""

    def __init__(
        self,
        data: Path,
        backend: Backend,
        host: SandboxHost,
        *,
        uid: int,
        allowed_roots: AllowedRoots | None = None,
        hidden: Sequence[Path] = (),
        readable: Sequence[str] = (),
        limits: SandboxLimits | None = None,
        egress: Egress | None = None,
        trees: Trees | None = None,
    ) -> None:
        """`uid` is the user that runs the commands of a root worker. Commands of any other worker run as the worker's
        user.

        `egress` proxies the hosts of a network in `allow` mode. Without it, no host is reachable in that mode.
        """
        self._data = data
        self._backend = backend
        self._root = data / WORKSPACES
        self._host = host
        self._uid = uid
        self._allowed_roots = allowed_roots
        self._hidden = [path.resolve() for path in hidden]
        self._readable = readable
        self._limits = limits or SandboxLimits()
        self._egress = egress
        self._trees = trees

    async def open_environment(self, request: OpenRequest) -> OpenEnvironment:
        check_supported(request.config, self._backend)
        location = await prepare_location(
            self._root, request, allowed_roots=self._allowed_roots, hidden=self._hidden, uid=self._uid
        )
        checked_out = await working_tree_paths.check_out_trees(self._trees, request, location, enclosed=True)
        network = resolve_network(request.config, self._backend)
        egress_proxy = self._egress.create_proxy(network) if self._egress and network.mode == "allow" else None
        lease = create_lease(self._data, request)
        sockets = create_sockets(lease, request.models, egress_proxy)
        view = FilesystemView(
            tree=location.tree,
            state=location.state,
            named=location.named,
            readable=self._readable,
            hidden=self._hidden,
            network=network,
            sockets=sockets.directory if sockets else None,
            socket_names=sockets.names if sockets else (),
            limits=self._limits,
            trees=checked_out,
            subdirectory=find_subdirectory(location.tree, request.variables) if request.projects else "",
        )
        return SandboxEnvironment(
            view,
            self._host,
            user=location.user,
            deadline=request.deadline,
            sockets=sockets,
            env={
                **request.variables,
                **working_tree_paths.project_variables(request.projects, checked_out),
                **(PROXY_VARIABLES if egress_proxy else {}),
            },
            lease=lease,
        )


def find_session_directory(root: Path, request: OpenRequest) -> Path:
    return root / directory_name(request.organisation) / request.session_id


async def prepare_location(
    root: Path, request: OpenRequest, *, allowed_roots: AllowedRoots | None, hidden: Sequence[Path], uid: int
) -> SessionLocation:
    """Prepares a session's directories below `root` and returns their locations. With projects, no directory of
    `allowed_roots` can be named.
    """
    session_dir = find_session_directory(root, request)
    tree = choose_working_directory(
        session_dir, request.organisation, request.variables, None if request.projects else allowed_roots
    )
    is_named = tree != session_dir
    if is_named:
        check_named_directory(tree, hidden)
    user = _choose_user(uid, tree if is_named else None)
    state = state_directory(session_dir)
    await asyncio.to_thread(
        _prepare_directories, [state, *(state / name for name in STATE_MOUNTS), *([] if is_named else [tree])], user
    )
    return SessionLocation(tree=tree, state=state, named=is_named, user=user)


def _create_state_directory(session_dir: Path, name: str) -> Path:
    """Creates a directory beside the session's tree: its home, so that programs do not write their settings into the
    tree, or its outputs.
    """
    directory = state_directory(session_dir) / name
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _choose_user(uid: int, named_dir: Path | None) -> tuple[int, int]:
    """Returns uid and gid for commands. A root worker's commands in a named directory run as its owner, so that files
    stay theirs.
    """
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    if named_dir is None:
        return uid, uid
    status = named_dir.stat()
    return status.st_uid, status.st_gid


def create_sockets(
    lease: Lease | None, models: ModelGrant | None, egress_proxy: EgressProxy | None
) -> MountedSockets | None:
    """Creates the turn's sockets inside the lease's directory, so that the reaper removes them after a worker that was
    killed. Returns None without a lease or endpoints.
    """
    if lease is None or models is None:
        return None
    listeners = {MODEL_SOCKET: models.listen}
    if egress_proxy is None:
        return MountedSockets(lease.directory / _SOCKETS_NAME, listeners)
    return MountedSockets(
        lease.directory / _SOCKETS_NAME, {**listeners, EGRESS_SOCKET: egress_proxy.listen}, egress_proxy.aclose
    )


def create_lease(data: Path, request: OpenRequest) -> Lease | None:
    """Creates a lease, or returns None on a machine without `/proc`, where the reaper can verify nothing."""
    if not PROC.is_dir():
        return None
    turn_id = request.variables.get("FOOTPLATE_TURN_ID", "")
    return Lease.in_data_directory(data, request.organisation, request.session_id, turn_id)


def _prepare_directories(directories: Sequence[Path], user: tuple[int, int]) -> None:
    for directory in directories:
        directory.mkdir(exist_ok=True)
    _claim_directories(directories, user)


def _claim_directories(directories: Sequence[Path], user: tuple[int, int]) -> None:
    for directory in directories:
        if os.geteuid() == 0 and directory.is_dir() and directory.stat().st_uid != user[0]:
            _change_owner(directory, user)


def _change_owner(directory: Path, user: tuple[int, int]) -> None:
    """Changes the owner of a directory and of everything in it, because earlier commands may have run as another user.

    The top directory is changed last: if the worker is killed before that, the next start repeats the work. Symbolic
    links change owner themselves, never their targets.
    """
    for _, folders, files, dir_fd in os.fwalk(directory, follow_symlinks=False):
        for name in (*folders, *files):
            os.chown(name, *user, dir_fd=dir_fd, follow_symlinks=False)
    os.chown(directory, *user, follow_symlinks=False)
