"""Finds the paths of a work tree that a snapshot has to read, with git, the host's index and the project's ignore
rules.

git only lists and compares here and stores nothing. Its results are hints: each path is inspected again before it is
read.
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
from footplate.domain.snapshots import shown
from footplate.trees import remembered
from footplate.trees.beneath import Beneath
from footplate.trees.git import Git
from footplate.trees.indexing import entry, split, update
from footplate.trees.remembered import Remembered

_PATIENCE: Final = 3.0
_READ_BY_GIT: Final = {".gitignore", ".gitattributes"}
_MANY: Final = 100


@dataclass(frozen=True, slots=True)
class Seen:
    before: Remembered
    """State of the last snapshot, as far as it still matches the index."""
    paths: frozenset[bytes]
    """Files that are new, changed or deleted."""
    directories: frozenset[bytes]
    """Directories that have new files."""
    unwanted: frozenset[bytes]
    """Paths in the index that must not be in the tree."""


async def look(git: Git, work_tree: Path, base: str | None) -> Seen:
    asked = asyncio.gather(
        git.run("diff-files", "-z", "--name-only", "--ignore-submodules=all"),
        git.run("ls-files", "-z", "--others", "--exclude-standard"),
        _before(git),
    )
    await asyncio.wait([asked], timeout=_PATIENCE)
    if not asked.done() and (culprit := await asyncio.to_thread(_blocking, work_tree)) is not None:
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        raise _would_wait(culprit)
    changed, listed, before = await asked
    others = split(listed)
    nested = [path for path in others if path.endswith(b"/")]
    # git does not report a repository that replaced a file of the index.
    nested += await asyncio.to_thread(_repositories, work_tree, split(changed))
    inner, placeholders = await _enter(git, nested) if nested else ([], [])
    files = [path for path in (*others, *inner) if not path.endswith(b"/")]
    repositories = {path[:-1] for path in (*nested, *inner) if path.endswith(b"/")}
    paths = frozenset((*split(changed), *files))
    ignored = await _ignored(git, base) if any(path.endswith(b".gitignore") for path in paths) else frozenset()
    return Seen(before, paths - ignored, parents_of(files) | repositories, ignored.union(placeholders))


async def _ignored(git: Git, base: str | None) -> frozenset[bytes]:
    """Returns files of an earlier snapshot that are ignored now. Files of the project's base are never ignored."""
    listed = split(await git.run("ls-files", "-z", "--cached", "--ignored", "--exclude-standard"))
    if not listed or base is None:
        return frozenset(listed)
    new = split(await git.run("diff-index", "--cached", "-z", "--name-only", "--no-renames", "--diff-filter=A", base))
    return frozenset(listed).intersection(new)


async def _before(git: Git) -> Remembered:
    """Loads the state of the last snapshot, or derives it from the index."""
    if (known := remembered.load(Path(git.git_dir))) is not None:
        return known
    tree = (await git.run("write-tree")).decode().strip()
    entries = [line.split(b"\t", 1) for line in split(await git.run("ls-tree", "-r", "-d", "-z", tree))]
    return Remembered(
        tree=tree,
        directories={path for about, path in entries if about.startswith(b"040000")},
        submodules={path for about, path in entries if about.startswith(b"160000")},
    )


async def _enter(git: Git, nested: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
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
        await update(git, (entry("100644", empty, path) for path in new))
        below = [os.fsdecode(path) for path in nested] if len(nested) < _MANY else []
        listed = split(await git.run("ls-files", "-z", "--others", "--exclude-standard", "--", *below))
        found += listed
        nested = [path for path in listed if path.endswith(b"/") and path not in seen]
    return found, placeholders


def _repositories(work_tree: Path, paths: Sequence[bytes]) -> list[bytes]:
    """Returns the paths that are repositories. The result is a hint, like git's."""
    found = []
    for path in paths:
        place = os.path.join(os.fsencode(work_tree), path)  # noqa: PTH118 - names of any bytes
        if os.path.isdir(place) and not os.path.islink(place) and os.path.lexists(place + b"/.git"):  # noqa: PTH112, PTH114
            found.append(path + b"/")
    return found


def parents_of(paths: Iterable[bytes]) -> frozenset[bytes]:
    found: set[bytes] = set()
    for path in paths:
        directory = path.rpartition(b"/")[0]
        while directory and directory not in found:
            found.add(directory)
            directory = directory.rpartition(b"/")[0]
    return frozenset(found)


def _would_wait(culprit: bytes) -> Permanent:
    return Permanent(
        f"The session's files cannot be stored: {shown(culprit)!r} is not a regular file, so git would block on it.",
        help_text="Remove it from the session's directory. git reads files with that name in every directory.",
    )


def check_attributes(workspace: Beneath, paths: Iterable[bytes]) -> None:
    """Raises if git would block on a pipe named `.gitattributes` when it compares one of these files."""
    for directory in (b"", *parents_of(paths)):
        path = directory + b"/.gitattributes" if directory else b".gitattributes"
        with workspace.inspect(path) as found:
            if found is not None and not (found.is_file or found.is_link or found.is_directory):
                raise _would_wait(path)


def _blocking(work_tree: Path) -> bytes | None:
    """Finds a pipe or other special file with a name that git opens by itself."""
    for directory, _, names in os.walk(work_tree):
        for name in _READ_BY_GIT.intersection(names):
            path = Path(directory, name)
            mode = path.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                return os.fsencode(path.relative_to(work_tree))
    return None
