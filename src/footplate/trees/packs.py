"""Snapshots in the object store: each adds one pack with what it has and the one before has not.

A pack is written before anything refers to it, and never again: its name says what it leads from and to, so that one
which is there already does what was to be written. A worker that was cut off may leave packs of its own; nothing
leads to them. Another host follows the names back from the snapshot that it wants, and makes one pack of all of them.
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
"""A larger pack is several objects: a conditional write is one request, with all of it in memory."""
_NOBODY: Final = "footplate <> 0 +0000"


class Shelf(Protocol):
    """The part of an object store that packs need. Keys have `/` between names."""

    async def create(self, key: str, content: bytes) -> bool:
        """False if it is there already, and then nothing is changed."""

    async def names(self, prefix: str) -> Sequence[str]:
        """What the keys below the folder `prefix` are called there."""

    def pieces(self, key: str) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Step:
    """A snapshot, and its place in the order of a session's snapshots that added something."""

    number: int
    snapshot: Snapshot
    before: Snapshot | None
    """None: it is the first, and its pack has all of it."""

    def name(self, part: int, parts: int, digest: str = "") -> str:
        """Where there are several parts, `digest` says of which pack: git may make another of the same objects."""
        before = NONE if self.before is None else short(self.before)
        which = f"-{digest}" if parts > 1 and digest else ""
        return f"{self.number:08d}-{before}-{short(self.snapshot)}.{part}-{parts}{which}.pack"


async def upload(shelf: Shelf, prefix: str, git_dir: Path, step: Step) -> int:
    """How many bytes were new to the store. Killed anywhere, or done twice, it is done by doing it again."""
    git = Git(git_dir=git_dir, configuration=CONFIGURATION)
    with scratch(git_dir) as place:
        wanted, pack = place / "wanted", place / "pack"
        known = [step.before] if step.before is not None else []
        *others, this = await _commits(git, [*known, step.snapshot], place)
        wanted.write_text("".join([f"{this}\n", *(f"^{other}\n" for other in others)]))
        await git.convert(
            *("pack-objects", "-q", "--revs", "--thin", "--stdout", "--delta-base-offset"), source=wanted, target=pack
        )
        parts = max(1, -(-pack.stat().st_size // PART))
        digest = await asyncio.to_thread(_digest, pack) if parts > 1 else ""
        written = 0
        with pack.open("rb") as file:
            for part in range(parts):
                content = await asyncio.to_thread(file.read, PART)
                # The last one is written last: whoever finds it finds all.
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
    """All objects of a snapshot, into a git directory; how many bytes were read. A fork has its parents' too. Of
    `known`, which may come first, the git directory has all.
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
    """The same from another git directory of this host, in one pack, however many led there. False: it has not all."""
    beside = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(source / "objects")}
    git = Git(git_dir=git_dir, configuration=CONFIGURATION, variables=beside)
    if not await has_all(git, ids_of(snapshot)):
        return False
    with scratch(git_dir) as place:
        wanted, pack = place / "wanted", place / "pack"
        *others, this = await _commits(git, [*([] if known is None else [known]), snapshot], place)
        wanted.write_text("".join([f"{this}\n", *(f"^{other}\n" for other in others)]))
        await git.convert("pack-objects", "-q", "--revs", "--stdout", "--delta-base-offset", source=wanted, target=pack)
        await replace(git, variables={}).convert("index-pack", "--stdin", source=pack, target=place / "said")
    return True


async def has_all(git: Git, trees: Sequence[str]) -> bool:
    """The objects of a tree are stored before it is, so who has the tree itself has all of it."""
    asked = "".join(f"{tree}\n" for tree in trees).encode()
    code, said = await git.ask("cat-file", "--batch-check", stdin=asked, accept=(0, 128))
    return code == 0 and b"missing" not in said


def _digest(pack: Path) -> str:
    """Of a pack, which ends with it."""
    with pack.open("rb") as file:
        file.seek(-20, os.SEEK_END)
        return file.read()[:8].hex()


def chain(names: Iterable[str], number: int, snapshot: Snapshot, known: Snapshot | None = None) -> list[Sequence[str]]:
    """The packs that lead to a snapshot, from `known` on, each as the names of its parts, the first pack first."""
    begins = {NONE} if known is None else {NONE, short(known)}
    return _back(whole(names), number, short(snapshot), begins)[::-1]


def _back(
    found: Mapping[Place, Sequence[Pack]], number: int, wanted: str, begins: Collection[str]
) -> list[Sequence[str]]:
    """From the last pack to the first. Where several lead to a snapshot, one of them may lead nowhere: what it goes on
    from was never in the log, and has been collected.
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
        f"The files of the session cannot be restored: snapshot {number} is not in the object store.",
        help_text="Was anything deleted there by hand, or by a rule of the bucket's? A backup of it will do.",
    )


async def _commits(git: Git, snapshots: Sequence[Snapshot], place: Path) -> list[str]:
    """Commits of them, each the parent of the next: git knows what a reader has by commits, and looks no further than
    those that differ.
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
    """Who has these objects has all of it."""
    return [tree for _, tree in _trees(snapshot)]


def _trees(snapshot: Snapshot) -> list[tuple[str, str]]:
    named = [("files", snapshot.tree), ("apart", snapshot.apart), ("bundles", snapshot.bundles)]
    return [(name, tree) for name, tree in named if tree is not None]
