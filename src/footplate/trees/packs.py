"""Stores snapshots in the object store: each snapshot adds one pack with the objects that the previous one lacks.

A pack is written before anything refers to it, and is never overwritten. Its name contains the snapshots before and
after it, so an existing pack of that name is equivalent. A worker that was cut off may leave packs that nothing refers
to. Another host follows the names backwards from the snapshot it needs, and combines the packs into one.
"""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from footplate.domain.errors import Permanent
from footplate.domain.packs import NONE, Pack, Place, short, whole
from footplate.domain.snapshots import Snapshot
from footplate.trees.git import Git
from footplate.trees.joining import take_in
from footplate.trees.scratch import scratch
from footplate.trees.snapshots import CONFIGURATION

PART: Final = 16 << 20
"""A larger pack is split into several objects, because a conditional write is one request with all content in memory.
"""
_NOBODY: Final = "footplate <> 0 +0000"


class Shelf(Protocol):
    """The part of an object store that packs need. Keys are separated by `/`."""

    async def create(self, key: str, content: bytes) -> bool:
        """Creates an object. Returns False and changes nothing if the key exists."""

    async def names(self, prefix: str) -> Sequence[str]:
        """Lists the keys below the folder `prefix`, relative to it."""

    def pieces(self, key: str) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Step:
    """A snapshot and its position among the session's snapshots that changed something."""

    number: int
    snapshot: Snapshot
    before: Snapshot | None
    """None: this is the first snapshot, and its pack is complete."""

    def name(self, part: int, parts: int, digest: str = "") -> str:
        """Returns the name of a part. With several parts, `digest` identifies the pack, because git may pack the same
        objects differently.
        """
        before = NONE if self.before is None else short(self.before)
        suffix = f"-{digest}" if parts > 1 and digest else ""
        return f"{self.number:08d}-{before}-{short(self.snapshot)}.{part}-{parts}{suffix}.pack"


async def upload(shelf: Shelf, prefix: str, git_dir: Path, step: Step) -> int:
    """Uploads the pack of a step and returns the number of new bytes. Safe to retry after a crash."""
    git = Git(git_dir=git_dir, configuration=CONFIGURATION)
    with scratch(git_dir) as place:
        wanted, pack = place / "wanted", place / "pack"
        known = [step.before] if step.before is not None else []
        *others, this = await _commits(git, [*known, step.snapshot], place)
        wanted.write_text("".join([f"{this}\n", *(f"^{other}\n" for other in others)]))
        await git.run_with_files(
            *("pack-objects", "-q", "--revs", "--thin", "--stdout", "--delta-base-offset"), source=wanted, target=pack
        )
        parts = max(1, -(-pack.stat().st_size // PART))
        digest = await asyncio.to_thread(_digest, pack) if parts > 1 else ""
        written = 0
        with pack.open("rb") as file:
            for part in range(parts):
                content = await asyncio.to_thread(file.read, PART)
                # The last part is written last, so its presence means that the pack is complete.
                if await shelf.create(f"{prefix}/{step.name(part, parts, digest)}", content):
                    written += len(content)
        return written


async def download(
    shelf: Shelf,
    prefixes: Sequence[str],
    git_dir: Path,
    number: int,
    snapshot: Snapshot,
    known: Snapshot | None = None,
) -> int:
    """Downloads all objects of a snapshot into a git directory and returns the number of bytes. A fork also reads its
    parents' packs. The git directory already has all objects of `known`, where the chain of packs may start.
    """
    names: dict[str, str] = {}
    for prefix in prefixes:
        names |= dict.fromkeys(await shelf.names(prefix), prefix)
    wanted = chain(names, number, snapshot, known)
    if not wanted:
        return 0
    git = Git(git_dir=git_dir, configuration=CONFIGURATION)
    with scratch(git_dir) as place:
        return await take_in(
            git, [[f"{names[name]}/{name}" for name in parts] for parts in wanted], shelf.pieces, place
        )


async def copy(source: Path, git_dir: Path, snapshot: Snapshot, known: Snapshot | None = None) -> bool:
    """Copies a snapshot from another git directory on this host, in one pack. Returns False if objects are missing
    there.
    """
    beside = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(source / "objects")}
    git = Git(git_dir=git_dir, configuration=CONFIGURATION, variables=beside)
    if not await has_all(git, ids_of(snapshot)):
        return False
    with scratch(git_dir) as place:
        wanted, pack = place / "wanted", place / "pack"
        *others, this = await _commits(git, [*([] if known is None else [known]), snapshot], place)
        wanted.write_text("".join([f"{this}\n", *(f"^{other}\n" for other in others)]))
        await git.run_with_files("pack-objects", "-q", "--revs", "--stdout", "--delta-base-offset", source=wanted, target=pack)
        await replace(git, variables={}).run_with_files("index-pack", "--stdin", source=pack, target=place / "said")
    return True


async def has_all(git: Git, trees: Sequence[str]) -> bool:
    """Whether all trees are present. A tree is stored after its objects, so a stored tree is complete."""
    asked = "".join(f"{tree}\n" for tree in trees).encode()
    code, said = await git.run_with_exit_code("cat-file", "--batch-check", stdin=asked, accept=(0, 128))
    return code == 0 and b"missing" not in said


def _digest(pack: Path) -> str:
    """Returns the start of a pack's checksum, which is at its end."""
    with pack.open("rb") as file:
        file.seek(-20, os.SEEK_END)
        return file.read()[:8].hex()


def chain(names: Iterable[str], number: int, snapshot: Snapshot, known: Snapshot | None = None) -> list[Sequence[str]]:
    """Returns the packs that lead to a snapshot, starting from `known`, in order. Each is given as the names of its
    parts.
    """
    begins = {NONE} if known is None else {NONE, short(known)}
    return _back(whole(names), number, short(snapshot), begins)[::-1]


def _back(
    found: Mapping[Place, Sequence[Pack]], number: int, wanted: str, begins: Collection[str]
) -> list[Sequence[str]]:
    """Follows the packs from the last to the first. If several packs lead to a snapshot, some may be dead ends: the
    snapshot before them never reached the log and was garbage-collected.
    """
    if wanted in begins:
        return []
    way: list[Sequence[str]] = []
    left = [iter(found.get((number, wanted), ()))]
    while left:
        if (pack := next(left[-1], None)) is None:
            left.pop()
            del way[-1:]
            continue
        way.append(pack.names)
        if pack.before in begins:
            return way
        left.append(iter(found.get((number - len(way), pack.before), ())))
    raise Permanent(
        f"The session's files cannot be restored: snapshot {number} is not in the object store.",
        help_text="Check whether objects were deleted by hand or by a bucket rule, and restore them from a backup.",
    )


async def _commits(git: Git, snapshots: Sequence[Snapshot], place: Path) -> list[str]:
    """Creates a commit for each snapshot, each the parent of the next. git uses commits to determine which objects a
    reader has, and then compares only the trees that differ.
    """
    listed = "\n".join("".join(f"040000 tree {tree}\t{name}\n" for name, tree in _trees(it)) for it in snapshots)
    roots = (await git.run("mktree", "--batch", stdin=f"{listed}\n".encode())).decode().split()
    files: list[Path] = []
    parent = ""
    for number, root in enumerate(roots):
        body = f"tree {root}\n{parent}author {_NOBODY}\ncommitter {_NOBODY}\n\nsnapshot\n".encode()
        files.append(place / f"commit-{number}")
        files[-1].write_bytes(body)
        digest = hashlib.sha1(b"commit %d\0" % len(body) + body, usedforsecurity=False)
        parent = f"parent {digest.hexdigest()}\n"
    paths = "".join(f"{file}\n" for file in files).encode()
    return (await git.run("hash-object", "-t", "commit", "-w", "--stdin-paths", stdin=paths)).decode().split()


def ids_of(snapshot: Snapshot) -> list[str]:
    """Returns the trees of a snapshot. A git directory that has these objects has the whole snapshot."""
    return [tree for _, tree in _trees(snapshot)]


def _trees(snapshot: Snapshot) -> list[tuple[str, str]]:
    named = [("files", snapshot.tree), ("apart", snapshot.apart), ("bundles", snapshot.bundles)]
    return [(name, tree) for name, tree in named if tree is not None]
