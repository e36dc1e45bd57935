"""Opens a turn's environment: chooses its directories, its user and its backend."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import structlog

from footplate.domain.environments import Backend, EnvironmentConfig, check, network_of
from footplate.domain.named_directories import NamedRoots
from footplate.domain.organisations import directory_of
from footplate.domain.projects import PRIVATE_TREES, SessionProject
from footplate.domain.running import Egress, EgressDoor, Environments, ModelGrant, OpenEnvironment, Trees
from footplate.domain.snapshots import NO_FILES, Files
from footplate.environments import trees
from footplate.environments.directories import working_directory
from footplate.environments.doors import Doors
from footplate.environments.reaper.leases import Lease
from footplate.environments.reaper.processes import PROC
from footplate.environments.removal import removed
from footplate.environments.sandbox.environment import Host, SandboxEnvironment
from footplate.environments.sandbox.limits import Limits
from footplate.environments.sandbox.view import EGRESS_DOOR, MODEL_DOOR, PORTS, STATE, View, check_named
from footplate.environments.trees import Places
from footplate.environments.unsandboxed import UnsandboxedEnvironment

log = structlog.get_logger(__name__)

WORKSPACES: Final = "workspaces"
"""The subdirectory of the data directory that contains a directory for each session."""

_PROXY: Final = f"http://127.0.0.1:{PORTS[EGRESS_DOOR]}"
_BY_NAME: Final = {"http_proxy": _PROXY, "https_proxy": _PROXY, "no_proxy": "localhost,127.0.0.1,::1"}
PROXY_VARIABLES: Final = {
    **_BY_NAME,
    **{name.upper(): value for name, value in _BY_NAME.items()},
    "NODE_USE_ENV_PROXY": "1",  # without it Node.js ignores these variables
}
"""Set for every command if the network is an allow-list. They only tell programs where the proxy is: a program that
unsets them reaches nothing.
"""
_STATE_OF: Final = "{}.state"
_DOORS: Final = "doors"


class Unsandboxed(Environments):
    """Opens environments without a boundary: a directory per session on this machine, or one that the session names."""

    def __init__(
        self, data: Path, backend: Backend, *, allowed_roots: NamedRoots | None = None, trees: Trees | None = None
    ) -> None:
        self._data = data
        self._backend = backend
        self._root = data / WORKSPACES
        self._named = allowed_roots
        self._trees = trees

    async def open(
        self,
        organisation: str,
        session_id: str,
        *,
        deadline: float,
        variables: Mapping[str, str],
        config: EnvironmentConfig,
        models: ModelGrant,
        projects: Sequence[SessionProject] = (),
        files: Files = NO_FILES,
    ) -> OpenEnvironment:
        del models  # commands reach it over the worker's network
        check(config, self._backend)
        session_dir = self._root / directory_of(organisation) / session_id
        directory = working_directory(session_dir, organisation, variables, None if projects else self._named)
        location = Places(
            tree=session_dir.absolute(),
            state=state_of(session_dir.absolute()),
            named=directory != session_dir,
            user=(os.geteuid(), os.getegid()),
        )
        checked_out = await trees.place(self._trees, organisation, session_id, projects, files, location, enclosed=False)
        lease = lease_of(self._data, organisation, session_id, variables)
        return UnsandboxedEnvironment(
            str(directory),
            deadline=deadline,
            home=str(await asyncio.to_thread(_home_beside, session_dir)),
            env={**variables, **trees.variables(projects, checked_out)},
            lease=lease,
            trees=trees.own(checked_out, location.tree, named=location.named),
        )


class Sandboxed(Environments):
    """Opens sandboxed environments, in the same directories as without a sandbox."""

    def __init__(
        self,
        data: Path,
        backend: Backend,
        host: Host,
        *,
        uid: int,
        allowed_roots: NamedRoots | None = None,
        hidden: Sequence[Path] = (),
        readable: Sequence[str] = (),
        limits: Limits | None = None,
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
        self._named = allowed_roots
        self._hidden = [path.resolve() for path in hidden]
        self._readable = readable
        self._limits = limits or Limits()
        self._egress = egress
        self._trees = trees

    async def open(
        self,
        organisation: str,
        session_id: str,
        *,
        deadline: float,
        variables: Mapping[str, str],
        config: EnvironmentConfig,
        models: ModelGrant,
        projects: Sequence[SessionProject] = (),
        files: Files = NO_FILES,
    ) -> OpenEnvironment:
        check(config, self._backend)
        location = await places(
            self._root / directory_of(organisation) / session_id,
            organisation,
            variables,
            named=None if projects else self._named,
            hidden=self._hidden,
            uid=self._uid,
        )
        checked_out = await trees.place(self._trees, organisation, session_id, projects, files, location, enclosed=True)
        network = network_of(config, self._backend)
        egress_proxy = self._egress.door(network) if self._egress and network.mode == "allow" else None
        lease = lease_of(self._data, organisation, session_id, variables)
        sockets = doors_of(lease, models, egress_proxy) if lease is not None else None
        view = View(
            tree=location.tree,
            state=location.state,
            named=location.named,
            readable=self._readable,
            hidden=self._hidden,
            network=network,
            doors=sockets.directory if sockets else None,
            door_names=sockets.names if sockets else (),
            limits=self._limits,
            trees=checked_out,
        )
        return SandboxEnvironment(
            view,
            self._host,
            user=location.user,
            deadline=deadline,
            sockets=sockets,
            env={**variables, **trees.variables(projects, checked_out), **(PROXY_VARIABLES if egress_proxy else {})},
            lease=lease,
        )


async def places(
    own: Path,
    organisation: str,
    variables: Mapping[str, str],
    *,
    named: NamedRoots | None,
    hidden: Sequence[Path],
    uid: int,
) -> Places:
    """Prepares a session's directories and returns their locations."""
    tree = working_directory(own, organisation, variables, named)
    is_named = tree != own
    if is_named:
        check_named(tree, hidden)
    user = _user(uid, tree if is_named else None)
    state = state_of(own)
    await asyncio.to_thread(_prepare, [state, *(state / name for name in STATE), *([] if is_named else [tree])], user)
    return Places(tree=tree, state=state, named=is_named, user=user)


def _home_beside(own: Path) -> Path:
    """Creates a home directory beside the session's tree, so that programs do not write their settings into
    the tree.
    """
    home = state_of(own) / "home"
    home.mkdir(parents=True, exist_ok=True)
    return home


def _user(uid: int, named: Path | None) -> tuple[int, int]:
    """Returns uid and gid for commands. A root worker's commands in a named directory run as its owner, so that files
    stay theirs.
    """
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    if named is None:
        return uid, uid
    status = named.stat()
    return status.st_uid, status.st_gid


def doors_of(lease: Lease, models: ModelGrant, way_out: EgressDoor | None) -> Doors:
    """Creates the turn's sockets inside the lease's directory, so that the reaper removes them after a worker that was
    killed.
    """
    listeners = {MODEL_DOOR: models.listen}
    if way_out is None:
        return Doors(lease.directory / _DOORS, listeners)
    return Doors(lease.directory / _DOORS, {**listeners, EGRESS_DOOR: way_out.listen}, way_out.aclose)


def lease_of(data: Path, organisation: str, session_id: str, variables: Mapping[str, str]) -> Lease | None:
    """Creates a lease, or returns None on a machine without `/proc`, where the reaper can verify nothing."""
    if not PROC.is_dir():
        return None
    return Lease.in_data(data, organisation, session_id, variables.get("FOOTPLATE_TURN_ID", ""))


def state_of(own: Path) -> Path:
    """Returns the directory for a session's state outside its tree."""
    return own.with_name(_STATE_OF.format(own.name))


def session_of(name: str) -> str:
    """Returns the id of the session that a directory of this name belongs to."""
    return name.removesuffix(_STATE_OF.format(""))


async def forget(root: Path, organisation: str, session_id: str) -> None:
    """Removes all directories of a session on this machine."""
    own = root / directory_of(organisation) / session_id
    # Remove its own directory last: if the removal is interrupted, the session is found again by it.
    for directory in (root.parent / PRIVATE_TREES / directory_of(organisation) / session_id, state_of(own), own):
        if directory.exists() and not await removed(directory):
            log.warning("session directory not removed", action="session.directory_left", directory=str(directory))


def _prepare(directories: Sequence[Path], user: tuple[int, int]) -> None:
    for directory in directories:
        directory.mkdir(exist_ok=True)
        if os.geteuid() == 0 and directory.stat().st_uid != user[0]:
            _hand_over(directory, user)


def _hand_over(directory: Path, user: tuple[int, int]) -> None:
    """Changes the owner of a directory and of everything in it, because earlier commands may have run as another user.

    The top directory is changed last: if the worker is killed before that, the next start repeats the work. Symbolic
    links change owner themselves, never their targets.
    """
    for _, folders, files, at in os.fwalk(directory, follow_symlinks=False):
        for name in (*folders, *files):
            os.chown(name, *user, dir_fd=at, follow_symlinks=False)
    os.chown(directory, *user, follow_symlinks=False)
