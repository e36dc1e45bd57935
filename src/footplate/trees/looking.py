"""Which paths of a work tree a snapshot has to read: git's own answer, by the host's index and the project's ignores.

git looks and compares here, and stores nothing. What it says are hints: each path is looked at again before it is read.
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
    """What the last snapshot left, as far as the index still says the same."""
    paths: frozenset[bytes]
    """Files that are new, look different, or are gone."""
    directories: frozenset[bytes]
    """That have new files."""
    unwanted: frozenset[bytes]
    """What is in the index and not to be in the tree."""


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
    # Where the index has a file, git says nothing of a repository that took its place.
    nested += await asyncio.to_thread(_repositories, work_tree, split(changed))
    inner, placeholders = await _enter(git, nested) if nested else ([], [])
    files = [path for path in (*others, *inner) if not path.endswith(b"/")]
    repositories = {path[:-1] for path in (*nested, *inner) if path.endswith(b"/")}
    paths = frozenset((*split(changed), *files))
    ignored = await _ignored(git, base) if any(path.endswith(b".gitignore") for path in paths) else frozenset()
    return Seen(before, paths - ignored, parents_of(files) | repositories, ignored.union(placeholders))


async def _ignored(git: Git, base: str | None) -> frozenset[bytes]:
    """What an earlier snapshot has and is ignored by now. What the project itself has is never ignored."""
    listed = split(await git.run("ls-files", "-z", "--cached", "--ignored", "--exclude-standard"))
    if not listed or base is None:
        return frozenset(listed)
    new = split(await git.run("diff-index", "--cached", "-z", "--name-only", "--no-renames", "--diff-filter=A", base))
    return frozenset(listed).intersection(new)


async def _before(git: Git) -> Remembered:
    """All that has to be remembered can be found in the index."""
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
    """What is in nested repositories that are new. git enters one if its index has something there; so it gets that."""
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
    """Those that are one. A hint, as what git says is."""
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
        f"The files of the session cannot be kept: {shown(culprit)!r} is no file, and git waits for it forever.",
        help_text="Remove it from the session's directory; git reads that name in every directory.",
    )


def check_attributes(workspace: Beneath, paths: Iterable[bytes]) -> None:
    """Raises when git would wait for a pipe if it had to compare one of these files."""
    for directory in (b"", *parents_of(paths)):
        path = directory + b"/.gitattributes" if directory else b".gitattributes"
        with workspace.look(path) as found:
            if found is not None and not (found.is_file or found.is_link or found.is_directory):
                raise _would_wait(path)


def _blocking(work_tree: Path) -> bytes | None:
    """A pipe or the like that has the name of a file which git opens by itself."""
    for directory, _, names in os.walk(work_tree):
        for name in _READ_BY_GIT.intersection(names):
            path = Path(directory, name)
            mode = path.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                return os.fsencode(path.relative_to(work_tree))
    return None
