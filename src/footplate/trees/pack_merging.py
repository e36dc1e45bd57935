"""Merges the packs of a git directory, so that looking up an object stays fast even after many packs were added.

Fetches add packs to a mirror, and turns with new commits add packs to the session's git directory. No object is
dropped, even if nothing refers to it. The new pack is put in place before the old packs are removed, so a killed
process loses nothing. A reader that misses a removed pack finds the new one when it lists the packs again.
"""

import asyncio
import contextlib
import os
import time
from pathlib import Path
from typing import Final

import structlog

from footplate.domain.errors import FootplateError
from footplate.trees.file_locks import lock_directory
from footplate.trees.git import Git
from footplate.trees.object_database import count_packs
from footplate.trees.scratch_directory import scratch_directory

log = structlog.get_logger(__name__)

MAX_UNMERGED: Final = 20
"""Number of packs that triggers a merge. Each pack is one more file to open and to search. With more than 100, every
snapshot scans every file.
"""
_UNFINISHED_SECONDS: Final = 3600
_PROCESSOR_SECONDS: Final = 120
_COPY_CONFIGURATION: Final = {"pack.window": "0", "pack.threads": "1", "core.bigFileThreshold": "16m"}
"""Objects are copied as they are stored: searching for better deltas is expensive, and the content is untrusted."""
_ALLOCATION_LIMIT: Final = {"GIT_ALLOC_LIMIT": "512m"}
_failed: set[Path] = set()
"""Git directories whose packs could not be merged. This process does not retry them at every turn."""


async def merge_packs(git_dir: Path, *, seconds: float) -> None:
    """Merges small packs if there are many, unless another process is merging. Objects in alternates, and loose
    objects, stay where they are. A failure is only logged, because nothing is lost.
    """
    if git_dir in _failed:
        return
    try:
        if await asyncio.to_thread(count_packs, git_dir, alternates=False) > MAX_UNMERGED:
            await _merge_locked(git_dir, seconds)
    except (FootplateError, OSError) as error:
        _failed.add(git_dir)
        log.warning(
            "git packs could not be merged", action="trees.packs_not_merged", git_dir=str(git_dir), reason=str(error)
        )


async def _merge_locked(git_dir: Path, seconds: float) -> None:
    """Merges while holding the lock. Creates only a scratch directory: the session may be in deletion."""
    lock = lock_directory(git_dir / "objects" / "pack")
    if lock is None:
        return
    try:
        await _merge(git_dir, seconds)
    finally:
        os.close(lock)


async def _merge(git_dir: Path, seconds: float) -> None:
    """Merges the packs with git, on hard links in a separate directory."""
    packs = git_dir / "objects" / "pack"
    with scratch_directory(git_dir) as scratch_dir:
        await asyncio.to_thread(_remove_unfinished_packs, packs)
        merged = scratch_dir / "objects" / "pack"
        merged.mkdir(parents=True)
        before = await asyncio.to_thread(_link_packs, packs, merged)
        # git sees only these packs. Before 2.41 it would also merge those of alternates.
        git = Git(
            git_dir=git_dir,
            object_directory=merged.parent,
            configuration=_COPY_CONFIGURATION,
            variables=_ALLOCATION_LIMIT,
            max_cpu_seconds=_PROCESSOR_SECONDS,
        )
        await git.run("repack", "--geometric=2", "-d", "-n", "-q", seconds=seconds)
        await asyncio.to_thread(_link_packs, merged, packs)
        after = {path.stem for path in merged.glob("*.pack")}
        await asyncio.to_thread(_remove_packs, packs, before - after)


def _link_packs(source: Path, target: Path) -> set[str]:
    """Links the files of each pack and returns the pack names. Readers look for the index, so it is linked last."""
    names = {path.stem for path in source.glob("*.pack")} & {path.stem for path in source.glob("*.idx")}
    for name in names:
        for suffix in (".pack", ".rev", ".idx"):
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                (target / f"{name}{suffix}").hardlink_to(source / f"{name}{suffix}")
    return names


def _remove_unfinished_packs(packs: Path) -> None:
    """Removes packs that a killed process linked without an index. The age check spares the new pack of a running
    fetch.
    """
    for pack in packs.glob("*.pack"):
        if not pack.with_suffix(".idx").exists() and time.time() - pack.stat().st_ctime > _UNFINISHED_SECONDS:
            _remove_packs(packs, {pack.stem})


def _remove_packs(packs: Path, names: set[str]) -> None:
    """Removes the `.pack` file first. If the process is then killed, readers ignore the remaining files."""
    for name in names:
        for suffix in (".pack", ".rev", ".idx"):
            (packs / f"{name}{suffix}").unlink(missing_ok=True)
