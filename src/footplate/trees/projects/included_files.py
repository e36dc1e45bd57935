"""Copies ignored files of a project's directory, such as `.env`, to a session's tree, as its `.worktreeinclude` says.

`.worktreeinclude` has the syntax of `.gitignore`. A file is copied if it matches, if the project's directory and the
session's tree both ignore it, and if it does not exist in the tree. So a copied file is in no snapshot, diff or
delivery. No link is followed, and a worker that runs as root copies only files of the directory's owner.
"""

import asyncio
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from footplate.domain.errors import Permanent
from footplate.domain.projects.project import SessionProject, normalize_path
from footplate.trees.git import Git
from footplate.trees.git_plumbing import list_ignored, split_nul_separated
from footplate.trees.safe_open import MISSING_PATH_ERRNOS, SafeDirectory

log = structlog.get_logger(__name__)

INCLUDE_FILE: Final = b".worktreeinclude"
DEFAULT_MAX_BYTES: Final = 64 << 20
_MAX_PATTERN_BYTES: Final = 64 << 10
_MAX_FILES: Final = 1000
_GIT_SECONDS: Final = 60.0
_CHUNK_BYTES: Final = 1 << 18
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class IncludedFilesTooLarge(Permanent):
    """The files that `.worktreeinclude` selects exceed a limit."""

    code = "included_files_too_large"


@dataclass(frozen=True, slots=True, kw_only=True)
class IncludeTarget:
    """The session's tree that receives the files."""

    git_dir: Path
    """The host's git directory, with the index of the tree."""
    tree: Path
    user: tuple[int, int]


class IncludedFiles:
    """Copies the files of projects that have a path below the projects root."""

    def __init__(self, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        """`max_bytes`: maximum size of all files of a project. 0: none is copied."""
        self._max_bytes = max_bytes

    async def copy(self, project: SessionProject, root: str, target: IncludeTarget) -> None:
        """Copies the files. Raises `IncludedFilesTooLarge`."""
        if project.path is None or not self._max_bytes:
            return
        directory = await asyncio.to_thread(_open_directory, root, project.path)
        if directory is None:
            return
        try:
            patterns = await asyncio.to_thread(_read_patterns, directory)
            if not patterns:
                return
            paths = await _list_paths(directory, patterns, target)
            if len(paths) > _MAX_FILES:
                raise _too_large(project, f"{len(paths)} files, and at most {_MAX_FILES} can be copied")
            copied = await asyncio.to_thread(self._copy_files, project, directory, paths, target)
        finally:
            os.close(directory)
        log.info("ignored files copied", action="trees.files_included", project=project.id, files=copied)

    def _copy_files(
        self, project: SessionProject, directory: int, paths: Sequence[bytes], target: IncludeTarget
    ) -> int:
        owner, remaining, copied = os.fstat(directory).st_uid, self._max_bytes, 0
        with SafeDirectory(Path(f"/proc/self/fd/{directory}")) as source, SafeDirectory(target.tree) as tree:
            for path in paths:
                with source.inspect(path) as found:
                    if found is None or not found.is_file:
                        continue
                    if os.geteuid() == 0 and found.status.st_uid != owner:
                        continue
                    remaining -= found.status.st_size
                    if remaining < 0:
                        raise _too_large(project, f"more than {self._max_bytes} bytes")
                    with found.open_file() as descriptor:
                        copied += _copy_file(descriptor, found.status, tree, path, target.user)
        return copied


def _open_directory(root: str, path: str) -> int | None:
    """Opens a project's directory without following links below the root. Returns None if it does not exist."""
    try:
        directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    for step in normalize_path(path, root).split("/"):
        try:
            inner = os.open(step, _DIRECTORY, dir_fd=directory)
        except OSError as error:
            if error.errno not in MISSING_PATH_ERRNOS:
                raise
            return None
        finally:
            os.close(directory)
        directory = inner
    return directory


def _read_patterns(directory: int) -> bytes:
    with SafeDirectory(Path(f"/proc/self/fd/{directory}")) as source, source.inspect(INCLUDE_FILE) as found:
        if found is None or not found.is_file:
            return b""
        with found.open_file() as descriptor:
            return os.read(descriptor, _MAX_PATTERN_BYTES)


async def _list_paths(directory: int, patterns: bytes, target: IncludeTarget) -> list[bytes]:
    """Lists the files that match the patterns and that the directory and the tree both ignore."""
    status = os.fstat(directory)
    place = Path(f"/proc/self/fd/{directory}")
    with open(os.memfd_create("patterns"), "wb") as file:  # noqa: ASYNC230, PTH123 - it is in memory
        file.write(patterns)
        file.flush()
        git = Git(
            git_dir=target.git_dir,
            work_tree=place,
            runs_in_work_tree=True,
            user=(status.st_uid, status.st_gid),
            inherited_descriptors=[directory, file.fileno()],
        )
        options = ("-z", "--others", "--ignored", f"--exclude-from=/proc/self/fd/{file.fileno()}")
        listed = split_nul_separated(await git.run("ls-files", *options, seconds=_GIT_SECONDS))
        paths = [path for path in listed if not path.endswith(b"/") and b".git" not in path.split(b"/")]
        ignored = await list_ignored(git, paths, seconds=_GIT_SECONDS)
    missing = await asyncio.to_thread(_select_missing, target.tree, ignored)
    in_tree = Git(git_dir=target.git_dir, work_tree=target.tree, runs_in_work_tree=True, user=target.user)
    return await list_ignored(in_tree, missing, seconds=_GIT_SECONDS)


def _select_missing(tree: Path, paths: Sequence[bytes]) -> list[bytes]:
    """Returns the paths that do not exist in the tree and do not lead through a link."""
    with SafeDirectory(tree) as root:
        return [path for path in paths if _is_missing(root, path)]


def _is_missing(root: SafeDirectory, path: bytes) -> bool:
    names = path.split(b"/")
    for depth in range(1, len(names) + 1):
        with root.inspect(b"/".join(names[:depth])) as found:
            if found is None:
                return True
            if not found.is_directory:
                return False
    return False


def _copy_file(source: int, status: os.stat_result, tree: SafeDirectory, path: bytes, user: tuple[int, int]) -> bool:
    """Copies a file, unless its path exists or leads through a link. Returns whether it was copied."""
    *parents, name = path.split(b"/")
    parent = b""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        for directory in parents:
            above = tree.open_directory(parent)
            with suppress(FileExistsError):
                os.mkdir(directory, 0o755, dir_fd=above)
                _give_to(user, directory, above)
            parent = parent + b"/" + directory if parent else directory
        descriptor = os.open(name, flags, 0o600, dir_fd=tree.open_directory(parent))
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in MISSING_PATH_ERRNOS:
            raise
        return False
    try:
        remaining = status.st_size
        while remaining and (data := os.read(source, min(_CHUNK_BYTES, remaining))):
            remaining -= len(data)
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, status.st_mode & stat.S_IRWXU)
        if os.geteuid() == 0:
            os.fchown(descriptor, *user)
    finally:
        os.close(descriptor)
    return True


def _give_to(user: tuple[int, int], name: bytes, directory: int) -> None:
    if os.geteuid() == 0:
        os.chown(name, *user, dir_fd=directory, follow_symlinks=False)


def _too_large(project: SessionProject, amount: str) -> IncludedFilesTooLarge:
    return IncludedFilesTooLarge(
        f"The `.worktreeinclude` of the project {project.name!r} selects {amount}.",
        help_text="Narrow its patterns, or have the operator raise FOOTPLATE_INCLUDE_BYTES.",
    )
