"""Opens the source of a project: a repository below the projects root, or a remote repository with a URL.

A missing repository below the root is created, unless it would be inside another repository. A path is opened one name
at a time, without following symbolic links, and git receives the descriptor of the last directory. Replacing a
directory by a link after the check therefore has no effect. A worker that runs as root reads a repository with the
rights of its owner.
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

from footplate.domain.errors import Conflict, Permanent, Unavailable
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.network.dns_lookup import NameLookup
from footplate.domain.projects.project import SessionProject, normalize_path
from footplate.trees.git import Git, GitFailed, find_git, switch_user_prefix

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PORTS: Final = {"https": 443, "http": 80}
_NAME_LOOKUP: Final = NameLookup(socket.getaddrinfo)
_MAX_HEAD_BYTES: Final = 1024
_DEFAULT_BRANCH: Final = "main"
# For the repository that receives a branch: none of its programs run, and the checked-out branch is not updated.
_PUSH_CONFIGURATION: Final = {
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
class RepositorySource:
    """A repository that git can fetch from while it is open."""

    address: str
    fetch_options: Sequence[str] = ()
    """Options of the fetch command."""
    push_options: Sequence[str] = ()
    """Options of the push command."""
    configuration: Mapping[str, str] = field(default_factory=dict)
    descriptors: Sequence[int] = ()
    initial_branch: str = _DEFAULT_BRANCH
    """The branch that the first commit creates, in a repository without commits."""


@asynccontextmanager
async def open_source(
    project: SessionProject, root: str, address_policy: AddressPolicy
) -> AsyncGenerator[RepositorySource, None]:
    """Opens a project's source. Raises `NoRepository` if it cannot be a repository, `Unavailable` if the host does not
    respond.
    """
    if project.url is not None:
        yield await _remote_source(project.url, address_policy)
        return
    project_directory = await asyncio.to_thread(_open_project_directory, root, project.path or "")
    try:
        if project_directory.is_uninitialised:
            await _init_repository(project_directory)
        git_dir = await asyncio.to_thread(_open_git_dir, project_directory)
        try:
            yield await asyncio.to_thread(_local_source, git_dir)
        finally:
            os.close(git_dir)
    finally:
        os.close(project_directory.descriptor)


@dataclass(frozen=True, slots=True)
class _ProjectDirectory:
    path: str
    descriptor: int
    """A file descriptor."""
    enclosing_repository: str | None
    """The path of the repository that the directory is in, below the projects root."""
    is_uninitialised: bool
    """The directory is empty, or contains only an interrupted initialisation."""


def _open_project_directory(root: str, path: str) -> _ProjectDirectory:
    """Opens the directory, and creates it if needed. Each step is opened relative to the one before, without following
    links.
    """
    steps = normalize_path(path, root).split("/")  # checked again: the stored path may be older than the rule
    path, enclosing = "/".join([root.rstrip("/"), *steps]), None
    try:
        os.makedirs(root, exist_ok=True)  # noqa: PTH103 - the operator's own directory, which may be a link
        directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _root_error(root, error) from error
    for number, step in enumerate(steps):
        if number and _is_git_dir_at(directory, ".git"):
            enclosing = "/".join([root.rstrip("/"), *steps[:number]])
        try:
            inner = _open_step(directory, step, creates=enclosing is None)
        except OSError as error:
            if enclosing is not None and isinstance(error, FileNotFoundError):
                raise _enclosed_error(path, enclosing) from error
            raise _path_error(path, step, error) from error
        finally:
            os.close(directory)
        directory = inner
    with os.scandir(directory) as entries:
        names = {entry.name for entry in entries}
    is_interrupted = names == {".git"} and not _is_git_dir_at(directory, ".git")
    is_uninitialised = not names or is_interrupted
    if enclosing is not None and is_uninitialised:
        os.close(directory)
        raise _enclosed_error(path, enclosing)
    return _ProjectDirectory(path, directory, enclosing, is_uninitialised)


def _open_step(parent: int, name: str, *, creates: bool) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        if not creates:
            raise
        os.mkdir(name, dir_fd=parent)
    inner = os.open(name, _DIRECTORY, dir_fd=parent)
    if os.geteuid() == 0:  # the owner of the parent directory owns this one too
        above = os.fstat(parent)
        os.fchown(inner, above.st_uid, above.st_gid)
    return inner


def _open_git_dir(found: _ProjectDirectory) -> int:
    """Returns the descriptor of the git directory: `.git`, or the directory itself if the repository is bare."""
    try:
        git_dir = os.open(".git", _DIRECTORY, dir_fd=found.descriptor)
    except FileNotFoundError:
        git_dir = os.dup(found.descriptor)
    except OSError as error:
        raise NoRepository(
            f"The project's .git in {found.path!r} is a file or a symbolic link, which is not followed.",
            help_text="Use the path of the repository itself, not of a linked worktree or a submodule.",
        ) from error
    if _is_git_dir(git_dir):
        return git_dir
    os.close(git_dir)
    if found.enclosing_repository is not None:
        raise _enclosed_error(found.path, found.enclosing_repository)
    raise NoRepository(
        f"The project's directory {found.path!r} contains files but is not a git repository.",
        help_text="Run `git init` there and commit the files that sessions should start with.",
    )


def _is_git_dir_at(directory: int, name: str) -> bool:
    try:
        inner = os.open(name, _DIRECTORY, dir_fd=directory)
    except OSError:
        return False
    try:
        return _is_git_dir(inner)
    finally:
        os.close(inner)


def _is_git_dir(directory: int) -> bool:
    """Whether this is a complete git directory: not a link, and not part of a linked worktree."""
    for name in ("objects", "refs"):
        try:
            os.close(os.open(name, _DIRECTORY, dir_fd=directory))
        except OSError:
            return False
    names = os.listdir(directory)
    return "HEAD" in names and "commondir" not in names


async def _init_repository(found: _ProjectDirectory) -> None:
    path = f"/proc/self/fd/{found.descriptor}"
    owner = os.fstat(found.descriptor)
    git = Git(git_dir=Path(path, ".git"), inherited_descriptors=[found.descriptor], user=(owner.st_uid, owner.st_gid))
    await git.run("init", "-q", "--template=", f"--initial-branch={_DEFAULT_BRANCH}", path)


def _local_source(git_dir: int) -> RepositorySource:
    """Returns the source for an opened directory. With the rights of the owner, alternates and includes in the
    repository give access to no file that the owner could not read.
    """
    owner = os.fstat(git_dir)
    as_owner = (
        switch_user_prefix((owner.st_uid, owner.st_gid), bypasses_permissions=False)
        if os.geteuid() == 0 and owner.st_uid
        else []
    )
    upload = [*as_owner, *_configuration_prefix({}), find_git(), "upload-pack", "--strict"]
    receive = [*as_owner, *_configuration_prefix(_PUSH_CONFIGURATION), find_git(), "receive-pack"]
    return RepositorySource(
        address=f"/proc/self/fd/{git_dir}",
        fetch_options=[f"--upload-pack={shlex.join(upload)}"],
        push_options=[f"--receive-pack={shlex.join(receive)}"],
        configuration={"protocol.file.allow": "always"},
        descriptors=[git_dir],
        initial_branch=_read_initial_branch(git_dir),
    )


def _configuration_prefix(configuration: Mapping[str, str]) -> list[str]:
    """Returns a prefix that passes configuration to the command at the other repository. git removes ours there, and
    these settings are required.
    """
    settings = {"safe.directory": "*", **configuration}
    arguments = ["env", f"GIT_CONFIG_COUNT={len(settings)}"]
    for number, (key, value) in enumerate(settings.items()):
        arguments += [f"GIT_CONFIG_KEY_{number}={key}", f"GIT_CONFIG_VALUE_{number}={value}"]
    return arguments


def _read_initial_branch(git_dir: int) -> str:
    head = os.open("HEAD", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=git_dir)
    try:
        text = os.read(head, _MAX_HEAD_BYTES).decode("utf-8", "replace").strip()
    finally:
        os.close(head)
    prefix = "ref: refs/heads/"
    return text.removeprefix(prefix) if text.startswith(prefix) else _DEFAULT_BRANCH


async def _remote_source(url: str, address_policy: AddressPolicy) -> RepositorySource:
    """Resolves the host name once and makes git connect only to the allowed addresses. Redirects are not followed."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    try:
        addresses = await _NAME_LOOKUP.resolve(host, port)
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"The project's host {host!r} cannot be resolved: {error}.") from error
    allowed = [str(address) for address in addresses if address_policy.permits(host, address)]
    if not allowed:
        raise NoRepository(
            f"The project's host {host!r} has an internal address, which is not allowed.",
            help_text="The operator can allow internal hosts by name, address or network with FOOTPLATE_WEB_ALLOW.",
        )
    address_list = ",".join(f"[{address}]" if ":" in address else address for address in allowed)
    return RepositorySource(
        address=url,
        configuration={
            f"protocol.{parts.scheme}.allow": "always",
            "http.curloptResolve": f"{host}:{port}:{address_list}",
            "http.lowSpeedLimit": "1000",
            "http.lowSpeedTime": "60",
        },
    )


def fetch_error(error: GitFailed, project: SessionProject, root: str) -> Permanent:
    """Returns an error with git's message for a source that cannot be fetched from."""
    return NoRepository(
        f"The project {project.name!r} at {_location(project, root)!r} cannot be fetched: "
        f"{(error.output.splitlines() or [error.output])[-1]}",
        help_text="Check that it is a git repository that the worker can read without a password.",
    )


def push_rejected_error(project: SessionProject, root: str, git_output: str) -> Conflict:
    reason = (git_output.strip().splitlines() or ["git gave no reason"])[-1]
    return Conflict(
        f"The project {project.name!r} at {_location(project, root)!r} rejected the branch: {reason}",
        help_text="Nothing was changed. Give the server write access, or run `footplate export --branch NAME` "
        "to create the branch in your own repository.",
    )


def _location(project: SessionProject, root: str) -> str:
    return project.url or str(Path(root, project.path or ""))


def _enclosed_error(path: str, enclosing: str) -> NoRepository:
    return NoRepository(
        f"The project's directory {path!r} is not a git repository. It is inside the repository {enclosing!r}.",
        help_text=f"Create a project with the path {enclosing!r}. A session can start in a directory of its project "
        "(`context.subdirectory`).",
    )


def _root_error(root: str, error: OSError) -> NoRepository:
    return NoRepository(
        f"The projects root {root} cannot be opened: {error.strerror}.",
        help_text="Set FOOTPLATE_PROJECTS_ROOT to a directory that the workers can access.",
    )


def _path_error(path: str, step: str, error: OSError) -> NoRepository:
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        return NoRepository(
            f"The project's path {path!r} contains {step!r}, which is a symbolic link or is not a directory.",
            help_text="Links are not followed. Use the path of the directory itself.",
        )
    return NoRepository(
        f"The project's path {path!r} cannot be opened at {step!r}: {error.strerror}.",
        help_text="Give the worker permission to read the directory, and to create it if it does not exist.",
    )
