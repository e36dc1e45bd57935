"""Opens a turn's environment: which directories it works in, as whom, and by which backend."""

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from footplate.domain.running import Environments, OpenEnvironment
from footplate.environments.directories import working_directory
from footplate.environments.sandbox.environment import Host, SandboxEnvironment
from footplate.environments.sandbox.limits import Limits
from footplate.environments.sandbox.view import STATE, View, check_named
from footplate.environments.unsandboxed import UnsandboxedEnvironment

_STATE_OF: Final = "{}.state"


class Unsandboxed(Environments):
    """A directory per session on this machine, or one that the session names."""

    def __init__(self, root: Path, *, may_be_named: bool) -> None:
        self._root = root
        self._may_be_named = may_be_named

    async def open(
        self, organisation: str, session_id: str, *, deadline: float, variables: Mapping[str, str]
    ) -> OpenEnvironment:
        own = self._root / organisation / session_id
        directory = working_directory(own, variables, may_be_named=self._may_be_named)
        return UnsandboxedEnvironment(str(directory), deadline=deadline, home=str(own), env=variables)


class Sandboxed(Environments):
    """The same directories, each turn inside a sandbox."""

    def __init__(
        self,
        root: Path,
        host: Host,
        *,
        uid: int,
        may_be_named: bool = False,
        hidden: Sequence[Path] = (),
        readable: Sequence[str] = (),
        network: bool = False,
        limits: Limits | None = None,
    ) -> None:
        """`uid`: whom a root worker's commands run as; other workers have nobody but themselves."""
        self._root = root
        self._host = host
        self._uid = uid
        self._may_be_named = may_be_named
        self._hidden = [path.resolve() for path in hidden]
        self._readable = readable
        self._network = network
        self._limits = limits or Limits()

    async def open(
        self, organisation: str, session_id: str, *, deadline: float, variables: Mapping[str, str]
    ) -> OpenEnvironment:
        own = self._root / organisation / session_id
        tree = working_directory(own, variables, may_be_named=self._may_be_named)
        named = tree != own
        if named:
            tree = tree.resolve()
            check_named(tree, self._hidden)
        user = self._user(tree if named else None)
        state = state_of(own)
        await asyncio.to_thread(_prepare, [state, *(state / name for name in STATE), *([] if named else [tree])], user)
        view = View(
            tree=tree,
            state=state,
            named=named,
            readable=self._readable,
            hidden=self._hidden,
            network=self._network,
            limits=self._limits,
        )
        return SandboxEnvironment(view, self._host, user=user, deadline=deadline, env=variables)

    def _user(self, named: Path | None) -> tuple[int, int]:
        """In a directory that a user named, a root worker's commands act as its owner: files stay theirs."""
        if os.geteuid() != 0:
            return os.geteuid(), os.getegid()
        if named is None:
            return self._uid, self._uid
        status = named.stat()
        return status.st_uid, status.st_gid


def state_of(own: Path) -> Path:
    """What a session keeps beside its tree."""
    return own.with_name(_STATE_OF.format(own.name))


def forget(root: Path, organisation: str, session_id: str) -> None:
    """All that a session left on this machine."""
    own = root / organisation / session_id
    # By a program that needs neither a descriptor nor a stack frame for each level: agents nest as deep as they like.
    subprocess.run(["rm", "-rf", "--one-file-system", "--", own, state_of(own)], check=False, capture_output=True)


def _prepare(directories: Sequence[Path], user: tuple[int, int]) -> None:
    for directory in directories:
        directory.mkdir(exist_ok=True)
        if os.geteuid() == 0 and directory.stat().st_uid != user[0]:
            _hand_over(directory, user)


def _hand_over(directory: Path, user: tuple[int, int]) -> None:
    """With all in it: it may come from a time when commands ran as somebody else. The top is last, so that a worker
    that is killed meanwhile leaves it to be done again. Links themselves change hands, never what they lead to.
    """
    for _, folders, files, at in os.fwalk(directory, follow_symlinks=False):
        for name in (*folders, *files):
            os.chown(name, *user, dir_fd=at, follow_symlinks=False)
    os.chown(directory, *user, follow_symlinks=False)
