"""Where a project's commits come from: a repository below the projects root, or one behind a URL. Read, never written,
but for one that is made because nothing was there.

The race: a path that was looked at is not the one that is used, if somebody swaps a directory for a link in between.
So a path is walked once, step by step from the root's descriptor and through no link, and git is given the descriptor
that was arrived at. A root worker reads such a repository as its owner, with that one's rights: what its files point to
elsewhere (alternates, includes) is no more than the owner could read.
"""

import asyncio
import errno
import os
import shlex
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from footplate.domain.addresses import Reach
from footplate.domain.errors import Conflict, Permanent, Unavailable
from footplate.domain.name_lookup import NameLookup
from footplate.domain.projects import SessionProject, path_of
from footplate.trees.git import Git, GitFailed, become, program

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PORTS: Final = {"https": 443, "http": 80}
_NAMES: Final = NameLookup(socket.getaddrinfo)
_LONGEST_HEAD: Final = 1024
_BRANCH: Final = "main"
# Of a repository that a branch is written to: none of its programs run, and what is checked out stays as it is.
_RECEIVING: Final = {
    "core.hooksPath": os.devnull,
    "core.alternateRefsCommand": "/bin/false",
    "core.fsmonitor": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "receive.autoGC": "false",
    "receive.denyCurrentBranch": "refuse",
    "receive.fsckObjects": "true",
    "receive.updateServerInfo": "false",
}


class NoRepository(Permanent):
    code = "no_repository"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Something that git can fetch from, while it is open."""

    address: str
    options: Sequence[str] = ()
    """Of the fetching command."""
    receiving: Sequence[str] = ()
    """Of the command that writes a branch there."""
    configuration: Mapping[str, str] = field(default_factory=dict)
    descriptors: Sequence[int] = ()
    unborn: str = _BRANCH
    """Which branch the first commit would begin, where there is none."""


@asynccontextmanager
async def opened(project: SessionProject, root: str, reach: Reach) -> AsyncGenerator[Source, None]:
    """Raises `NoRepository` for what cannot be one, `Unavailable` for what does not answer."""
    if project.url is not None:
        yield await _behind(project.url, reach)
        return
    found = await asyncio.to_thread(_open_path, root, project.path or "")
    try:
        if found.fresh:
            await _initialise(found)
        git_dir = await asyncio.to_thread(_git_dir, found, project.path or "")
        try:
            yield await asyncio.to_thread(_at, git_dir)
        finally:
            os.close(git_dir)
    finally:
        os.close(found.directory)


@dataclass(frozen=True, slots=True)
class _Found:
    directory: int
    """A descriptor."""
    fresh: bool
    """There is nothing in it, or no more than an initialisation that was broken off."""


def _open_path(root: str, path: str) -> _Found:
    """Make it if need be. Every step is looked up in the descriptor of the one before, and none through a link."""
    steps = path_of(path, root).split("/")  # once more: what is stored may be older than the rule
    try:
        os.makedirs(root, exist_ok=True)  # noqa: PTH103 - the operator's own, links and all
        here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _no_root(root, error) from error
    for step in steps:
        try:
            inner = _step(here, step)
        except OSError as error:
            raise _no_way(path, step, error) from error
        finally:
            os.close(here)
        here = inner
    with os.scandir(here) as entries:
        names = {entry.name for entry in entries}
    broken_off = names == {".git"} and not _is_git_dir_at(here, ".git")
    return _Found(here, not names or broken_off)


def _step(here: int, name: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=here)
    except FileNotFoundError:
        os.mkdir(name, dir_fd=here)
    inner = os.open(name, _DIRECTORY, dir_fd=here)
    if os.geteuid() == 0:  # whoever has the directory above has this one
        above = os.fstat(here)
        os.fchown(inner, above.st_uid, above.st_gid)
    return inner


def _git_dir(found: _Found, path: str) -> int:
    """The descriptor of the repository's own directory: `.git`, or the directory itself where that is a bare one."""
    try:
        git_dir = os.open(".git", _DIRECTORY, dir_fd=found.directory)
    except FileNotFoundError:
        git_dir = os.dup(found.directory)
    except OSError as error:
        raise NoRepository(
            f"The project's .git in {path!r} is a file or a link, and leads elsewhere: nothing is read there.",
            help_text="Name the repository itself, not a linked worktree or a submodule of it.",
        ) from error
    if _is_git_dir(git_dir):
        return git_dir
    os.close(git_dir)
    raise NoRepository(
        f"The project's directory {path!r} has files in it, but is no git repository.",
        help_text="Run `git init` there and commit what sessions are to begin with.",
    )


def _is_git_dir_at(here: int, name: str) -> bool:
    try:
        inner = os.open(name, _DIRECTORY, dir_fd=here)
    except OSError:
        return False
    try:
        return _is_git_dir(inner)
    finally:
        os.close(inner)


def _is_git_dir(directory: int) -> bool:
    """One of its own: no link, and not the part of a linked worktree."""
    for name in ("objects", "refs"):
        try:
            os.close(os.open(name, _DIRECTORY, dir_fd=directory))
        except OSError:
            return False
    names = os.listdir(directory)
    return "HEAD" in names and "commondir" not in names


async def _initialise(found: _Found) -> None:
    place = f"/proc/self/fd/{found.directory}"
    owner = os.fstat(found.directory)
    git = Git(git_dir=Path(place, ".git"), descriptors=[found.directory], user=(owner.st_uid, owner.st_gid))
    await git.run("init", "-q", "--template=", f"--initial-branch={_BRANCH}", place)


def _at(git_dir: int) -> Source:
    owner = os.fstat(git_dir)
    as_owner = become((owner.st_uid, owner.st_gid), reaches_all=False) if os.geteuid() == 0 and owner.st_uid else []
    return Source(
        address=f"/proc/self/fd/{git_dir}",
        options=[f"--upload-pack={shlex.join([*as_owner, *_with({}), program(), 'upload-pack', '--strict'])}"],
        receiving=[f"--receive-pack={shlex.join([*as_owner, *_with(_RECEIVING), program(), 'receive-pack'])}"],
        configuration={"protocol.file.allow": "always"},
        descriptors=[git_dir],
        unborn=_unborn(git_dir),
    )


def _with(configuration: Mapping[str, str]) -> list[str]:
    """Git takes our configuration away from a command that works on another repository; this much it needs."""
    needed = {"safe.directory": "*", **configuration}
    words = ["env", f"GIT_CONFIG_COUNT={len(needed)}"]
    for number, (key, value) in enumerate(needed.items()):
        words += [f"GIT_CONFIG_KEY_{number}={key}", f"GIT_CONFIG_VALUE_{number}={value}"]
    return words


def _unborn(git_dir: int) -> str:
    head = os.open("HEAD", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=git_dir)
    try:
        text = os.read(head, _LONGEST_HEAD).decode("utf-8", "replace").strip()
    finally:
        os.close(head)
    prefix = "ref: refs/heads/"
    return text.removeprefix(prefix) if text.startswith(prefix) else _BRANCH


async def _behind(url: str, reach: Reach) -> Source:
    """The name is looked up here, once, and git connects to what was found and allowed; redirects are not followed."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    try:
        addresses = await _NAMES.find(host, port)
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"The project's host {host!r} is not found: {error}.") from error
    allowed = [str(address) for address in addresses if reach.permits(host, address)]
    if not allowed:
        raise NoRepository(
            f"The project's host {host!r} is an internal one, and may not be reached.",
            help_text="The operator allows internal hosts by name, address or network with FOOTPLATE_WEB_ALLOW.",
        )
    written = ",".join(f"[{address}]" if ":" in address else address for address in allowed)
    return Source(
        address=url,
        configuration={
            f"protocol.{parts.scheme}.allow": "always",
            "http.curloptResolve": f"{host}:{port}:{written}",
            "http.lowSpeedLimit": "1000",
            "http.lowSpeedTime": "60",
        },
    )


def explained(error: GitFailed, project: SessionProject) -> Permanent:
    """What git said of a source that cannot be fetched from."""
    where = project.url or project.path
    return NoRepository(
        f"The project {project.name!r} at {where!r} could not be fetched: {error.said.splitlines()[-1:] or error.said}",
        help_text="Check that it is a git repository that the worker may read without asking for a password.",
    )


def not_written(project: SessionProject, said: str) -> Conflict:
    reason = (said.strip().splitlines() or ["git said nothing"])[-1]
    return Conflict(
        f"The project {project.name!r} at {project.url or project.path!r} took no branch: {reason}",
        help_text="Nothing was changed. Is the server allowed to write there? If not, `footplate export --branch NAME` "
        "makes the branch in a repository of yours.",
    )


def _no_root(root: str, error: OSError) -> NoRepository:
    return NoRepository(
        f"The projects root {root} cannot be opened: {error.strerror}.",
        help_text="FOOTPLATE_PROJECTS_ROOT has to be a directory that the workers may enter.",
    )


def _no_way(path: str, step: str, error: OSError) -> NoRepository:
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        return NoRepository(
            f"The project's path {path!r} leads through {step!r}, which is a link or no directory.",
            help_text="Links are not followed: name the directory itself.",
        )
    return NoRepository(
        f"The project's path {path!r} cannot be opened at {step!r}: {error.strerror}.",
        help_text="The worker has to be allowed to read it, and to make it if it does not exist.",
    )
