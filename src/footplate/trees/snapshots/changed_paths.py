"""Finds the paths in a working tree that a snapshot has to read, with git and the project's ignore rules.

git only lists files and compares them with the index, which is in the host's git directory for this tree. It stores no
contents of files. Its results are only hints: each path is checked again before it is read.
"""

import asyncio
import os
import secrets
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.domain.errors import Permanent
from footplate.domain.files.snapshots import display_path
from footplate.trees.git import Git
from footplate.trees.git_plumbing import format_index_entry, split_nul_separated, update_index
from footplate.trees.safe_open import SafeDirectory
from footplate.trees.snapshots import file_state_cache
from footplate.trees.snapshots.file_state_cache import SnapshotCache

_BLOCKED_AFTER_SECONDS: Final = 3.0
_READ_BY_GIT: Final = {".gitignore", ".gitattributes"}
_MAX_PATHSPECS: Final = 100


@dataclass(frozen=True, slots=True)
class ScanResult:
    previous: SnapshotCache
    """State of the last snapshot, as far as it still matches the index."""
    paths: frozenset[bytes]
    """Files that are new, changed or deleted."""
    new_directories: frozenset[bytes]
    """Directories that have new files."""
    index_removals: frozenset[bytes]
    """Paths in the index that must not be in the tree."""


async def find_changed_paths(git: Git, work_tree: Path, base: str | None) -> ScanResult:
    scan = asyncio.gather(
        git.run("diff-files", "-z", "--name-only", "--ignore-submodules=all"),
        git.run("ls-files", "-z", "--others", "--exclude-standard"),
        _load_previous(git),
    )
    await asyncio.wait([scan], timeout=_BLOCKED_AFTER_SECONDS)
    if not scan.done() and (blocking_file := await asyncio.to_thread(_find_blocking_file, work_tree)) is not None:
        scan.cancel()
        await asyncio.gather(scan, return_exceptions=True)
        raise _blocking_file_error(blocking_file)
    changed, listed, previous = await scan
    untracked = split_nul_separated(listed)
    nested = [path for path in untracked if path.endswith(b"/")]
    # git does not report a repository that replaced a file of the index.
    nested += await asyncio.to_thread(_find_repositories, work_tree, split_nul_separated(changed))
    inner, placeholders = await _list_nested_files(git, nested) if nested else ([], [])
    files = [path for path in (*untracked, *inner) if not path.endswith(b"/")]
    repositories = {path[:-1] for path in (*nested, *inner) if path.endswith(b"/")}
    paths = frozenset((*split_nul_separated(changed), *files))
    ignored = (
        await _list_newly_ignored(git, base) if any(path.endswith(b".gitignore") for path in paths) else frozenset()
    )
    return ScanResult(previous, paths - ignored, parent_directories(files) | repositories, ignored.union(placeholders))


async def _list_newly_ignored(git: Git, base: str | None) -> frozenset[bytes]:
    """Returns files of an earlier snapshot that are ignored now. Files of the project's base are never ignored."""
    listed = split_nul_separated(await git.run("ls-files", "-z", "--cached", "--ignored", "--exclude-standard"))
    if not listed or base is None:
        return frozenset(listed)
    new = split_nul_separated(
        await git.run("diff-index", "--cached", "-z", "--name-only", "--no-renames", "--diff-filter=A", base)
    )
    return frozenset(listed).intersection(new)


async def _load_previous(git: Git) -> SnapshotCache:
    """Loads the state of the last snapshot, or derives it from the index."""
    if (known := file_state_cache.load_cache(Path(git.git_dir))) is not None:
        return known
    tree = (await git.run("write-tree")).decode().strip()
    entries = [line.split(b"\t", 1) for line in split_nul_separated(await git.run("ls-tree", "-r", "-d", "-z", tree))]
    return SnapshotCache(
        tree=tree,
        directories={path for about, path in entries if about.startswith(b"040000")},
        submodules={path for about, path in entries if about.startswith(b"160000")},
    )


async def _list_nested_files(git: Git, nested: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Returns the files in new nested repositories. git enters a nested repository only if the index has an entry
    inside it, so a placeholder is added.
    """
    empty = (await git.run("hash-object", "-w", "--stdin")).decode().strip()
    found: list[bytes] = []
    placeholders: list[bytes] = []
    seen: set[bytes] = set()
    while nested:
        seen.update(nested)
        new = [path + b".placeholder-" + secrets.token_hex(8).encode() for path in nested]
        placeholders += new
        await update_index(git, (format_index_entry("100644", empty, path) for path in new))
        below = [os.fsdecode(path) for path in nested] if len(nested) < _MAX_PATHSPECS else []
        listed = split_nul_separated(await git.run("ls-files", "-z", "--others", "--exclude-standard", "--", *below))
        found += listed
        nested = [path for path in listed if path.endswith(b"/") and path not in seen]
    return found, placeholders


def _find_repositories(work_tree: Path, paths: Sequence[bytes]) -> list[bytes]:
    """Returns the paths that are repositories. The result is a hint, like git's."""
    found = []
    for path in paths:
        full_path = os.path.join(os.fsencode(work_tree), path)  # noqa: PTH118 - names of any bytes
        if os.path.isdir(full_path) and not os.path.islink(full_path) and os.path.lexists(full_path + b"/.git"):  # noqa: PTH112, PTH114
            found.append(path + b"/")
    return found


def parent_directories(paths: Iterable[bytes]) -> frozenset[bytes]:
    found: set[bytes] = set()
    for path in paths:
        directory = path.rpartition(b"/")[0]
        while directory and directory not in found:
            found.add(directory)
            directory = directory.rpartition(b"/")[0]
    return frozenset(found)


def _blocking_file_error(blocking_file: bytes) -> Permanent:
    return Permanent(
        f"The session's files cannot be stored: {display_path(blocking_file)!r} is not a regular "
        f"file, and git would wait forever to read it.",
        help_text="Remove it from the session's directory.",
    )


def check_attributes(workspace: SafeDirectory, paths: Iterable[bytes]) -> None:
    """Raises if git would block on a pipe named `.gitattributes` when it compares one of these files."""
    for directory in (b"", *parent_directories(paths)):
        path = directory + b"/.gitattributes" if directory else b".gitattributes"
        with workspace.inspect(path) as found:
            if found is not None and not (found.is_file or found.is_link or found.is_directory):
                raise _blocking_file_error(path)


def _find_blocking_file(work_tree: Path) -> bytes | None:
    """Finds a pipe or other special file with a name that git opens by itself."""
    for directory, _, names in os.walk(work_tree):
        for name in _READ_BY_GIT.intersection(names):
            path = Path(directory, name)
            mode = path.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                return os.fsencode(path.relative_to(work_tree))
    return None
