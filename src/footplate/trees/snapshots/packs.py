"""Stores snapshots in the object store: each snapshot adds one git pack with the objects that the previous one lacks.

A pack is written before anything refers to it, and is never overwritten. Its name contains the ids of the previous and
the new snapshot, so packs with the same name are interchangeable. Another host finds the shortest chain of names that
leads to a snapshot. A merged pack covers several steps and makes the chain shorter; the packs of the single steps stay
(`pack_consolidation.py`). A worker that was interrupted may leave packs to which nothing refers.
"""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Final, Protocol

from footplate.domain.errors import Permanent
from footplate.domain.files.pack_names import NO_BASE, Pack, PackPosition, complete_packs, short_id
from footplate.domain.files.snapshots import Snapshot
from footplate.trees.git import Git
from footplate.trees.scratch_directory import scratch_directory
from footplate.trees.snapshots.full_snapshot import SNAPSHOT_GIT_CONFIGURATION
from footplate.trees.snapshots.pack_import import import_packs

MAX_PART_BYTES: Final = 16 << 20
"""A larger pack is split into several objects, because a conditional write is one request with all content in memory.
"""
_MERGE_CPU_SECONDS: Final = 120
_COMMIT_IDENTITY: Final = "footplate <> 0 +0000"


class PackStore(Protocol):
    """The part of an object store that packs need. Keys are separated by `/`."""

    async def create(self, key: str, content: bytes) -> bool:
        """Creates an object. Returns False and changes nothing if the key exists."""

    async def list_names(self, prefix: str) -> Sequence[str]:
        """Lists the keys below the folder `prefix`, relative to it."""

    def read_chunks(self, key: str) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class SnapshotStep:
    """A snapshot and its position among the session's snapshots that changed something."""

    number: int
    snapshot: Snapshot
    previous: Snapshot | None
    """None: this is the first snapshot, and its pack is complete."""
    steps: int = 1
    """How many steps `previous` is back. More than one: the pack is a merged pack."""

    def part_name(self, part: int, parts: int, digest: str = "") -> str:
        """Returns the name of a part. With several parts, `digest` identifies the pack, because git may pack the same
        objects differently.
        """
        before = NO_BASE if self.previous is None else short_id(self.previous)
        steps = f"{self.steps:08d}-" if self.steps > 1 else ""
        suffix = f"-{digest}" if parts > 1 and digest else ""
        return f"{self.number:08d}-{steps}{before}-{short_id(self.snapshot)}.{part}-{parts}{suffix}.pack"


async def upload_pack(store: PackStore, prefix: str, git_dir: Path, step: SnapshotStep) -> int:
    """Uploads the pack of a step and returns the number of new bytes. Safe to retry after a crash."""
    git = Git(git_dir=git_dir, configuration=SNAPSHOT_GIT_CONFIGURATION)
    if step.steps > 1:  # in the background: it may take longer, but must not take the processors from turns
        configuration = {**SNAPSHOT_GIT_CONFIGURATION, "pack.threads": "1"}
        git = replace(git, configuration=configuration, max_cpu_seconds=_MERGE_CPU_SECONDS)
    with scratch_directory(git_dir) as scratch_dir:
        revisions, pack = scratch_dir / "wanted", scratch_dir / "pack"
        known = [step.previous] if step.previous is not None else []
        *known_commits, commit = await _create_commits(git, [*known, step.snapshot], scratch_dir)
        revisions.write_text("".join([f"{commit}\n", *(f"^{other}\n" for other in known_commits)]))
        await git.run_with_files(
            *("pack-objects", "-q", "--revs", "--thin", "--stdout", "--delta-base-offset"),
            source=revisions,
            target=pack,
        )
        parts = max(1, -(-pack.stat().st_size // MAX_PART_BYTES))
        digest = await asyncio.to_thread(_digest, pack) if parts > 1 else ""
        written = 0
        with pack.open("rb") as file:
            for part in range(parts):
                content = await asyncio.to_thread(file.read, MAX_PART_BYTES)
                # The last part is written last, so its presence means that the pack is complete.
                if await store.create(f"{prefix}/{step.part_name(part, parts, digest)}", content):
                    written += len(content)
        return written


async def download_packs(
    store: PackStore,
    prefixes: Sequence[str],
    git_dir: Path,
    number: int,
    snapshot: Snapshot,
    known: Snapshot | None = None,
) -> int:
    """Downloads all objects of a snapshot into a git directory and returns the number of bytes. A fork also reads its
    parents' packs. The git directory already has all objects of `known`, where the chain of packs may start.
    """
    names = await list_packs(store, prefixes)
    pack_chain = find_pack_chain(names, number, snapshot, known)
    if not pack_chain:
        return 0
    git = Git(git_dir=git_dir, configuration=SNAPSHOT_GIT_CONFIGURATION)
    with scratch_directory(git_dir) as scratch_dir:
        return await import_packs(
            git,
            [[f"{names[name]}/{name}" for name in pack.names] for pack in pack_chain],
            store.read_chunks,
            scratch_dir,
        )


async def list_packs(store: PackStore, prefixes: Sequence[str]) -> dict[str, str]:
    """Returns the names of all packs below the prefixes, each with its prefix."""
    names: dict[str, str] = {}
    for prefix in prefixes:
        names |= dict.fromkeys(await store.list_names(prefix), prefix)
    return names


async def copy_snapshot(source: Path, git_dir: Path, snapshot: Snapshot, known: Snapshot | None = None) -> bool:
    """Copies a snapshot from another git directory on this host, in one pack. Returns False if objects are missing
    there.
    """
    variables = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(source / "objects")}
    git = Git(git_dir=git_dir, configuration=SNAPSHOT_GIT_CONFIGURATION, variables=variables)
    if not await has_objects(git, tree_ids(snapshot)):
        return False
    with scratch_directory(git_dir) as scratch_dir:
        revisions, pack = scratch_dir / "wanted", scratch_dir / "pack"
        *known_commits, commit = await _create_commits(
            git, [*([] if known is None else [known]), snapshot], scratch_dir
        )
        revisions.write_text("".join([f"{commit}\n", *(f"^{other}\n" for other in known_commits)]))
        await git.run_with_files(
            "pack-objects", "-q", "--revs", "--stdout", "--delta-base-offset", source=revisions, target=pack
        )
        await replace(git, variables={}).run_with_files(
            "index-pack", "--stdin", source=pack, target=scratch_dir / "said"
        )
    return True


async def has_objects(git: Git, trees: Sequence[str]) -> bool:
    """Whether all trees are present. A tree is stored after its objects, so a stored tree is complete."""
    query = "".join(f"{tree}\n" for tree in trees).encode()
    code, output = await git.run_with_exit_code("cat-file", "--batch-check", stdin=query, accept=(0, 128))
    return code == 0 and b"missing" not in output


def _digest(pack: Path) -> str:
    """Returns the start of a pack's checksum, which is at its end."""
    with pack.open("rb") as file:
        file.seek(-20, os.SEEK_END)
        return file.read()[:8].hex()


def find_pack_chain(names: Iterable[str], number: int, snapshot: Snapshot, known: Snapshot | None = None) -> list[Pack]:
    """Returns the packs that lead to a snapshot, starting from `known`, in order: the chain with the fewest packs. Of
    equal chains, the one whose names come first is taken, so a fork prefers its own packs to its parents'.

    Some packs may be dead ends: the snapshot before them never reached the log and was garbage-collected.
    """
    begins = {NO_BASE} if known is None else {NO_BASE, short_id(known)}
    best: dict[PackPosition, tuple[int, Pack]] = {}
    """The length of the shortest chain to each snapshot, and its last pack."""
    for position, found in sorted(complete_packs(names).items()):  # the base of a pack comes before it
        chains = [
            (1 if pack.base[1] in begins else 1 + best[pack.base][0], pack)
            for pack in found
            if pack.base[1] in begins or pack.base in best
        ]
        if chains:
            best[position] = min(chains, key=itemgetter(0))
    position, chain = (number, short_id(snapshot)), list[Pack]()
    while position[1] not in begins and position in best:
        chain.append(best[position][1])
        position = chain[-1].base
    if position[1] in begins:
        return chain[::-1]
    raise Permanent(
        f"The session's files cannot be restored: snapshot {number} is not in the object store.",
        help_text="Check whether objects were deleted by hand or by a bucket rule, and restore them from a backup.",
    )


async def _create_commits(git: Git, snapshots: Sequence[Snapshot], scratch_dir: Path) -> list[str]:
    """Creates a commit for each snapshot, each the parent of the next. git uses commits to determine which objects a
    reader has, and then compares only the trees that differ.
    """
    listed = "\n".join(
        "".join(f"040000 tree {tree}\t{name}\n" for name, tree in _named_trees(snapshot)) for snapshot in snapshots
    )
    roots = (await git.run("mktree", "--batch", stdin=f"{listed}\n".encode())).decode().split()
    files: list[Path] = []
    parent = ""
    for number, root in enumerate(roots):
        body = f"tree {root}\n{parent}author {_COMMIT_IDENTITY}\ncommitter {_COMMIT_IDENTITY}\n\nsnapshot\n".encode()
        files.append(scratch_dir / f"commit-{number}")
        files[-1].write_bytes(body)
        digest = hashlib.sha1(b"commit %d\0" % len(body) + body, usedforsecurity=False)
        parent = f"parent {digest.hexdigest()}\n"
    paths = "".join(f"{file}\n" for file in files).encode()
    return (await git.run("hash-object", "-t", "commit", "-w", "--stdin-paths", stdin=paths)).decode().split()


def tree_ids(snapshot: Snapshot) -> list[str]:
    """Returns the trees of a snapshot. A git directory that has these objects has the whole snapshot."""
    return [tree for _, tree in _named_trees(snapshot)]


def _named_trees(snapshot: Snapshot) -> list[tuple[str, str]]:
    named = [("files", snapshot.tree), ("apart", snapshot.sidecar), ("bundles", snapshot.bundles)]
    return [(name, tree) for name, tree in named if tree is not None]
