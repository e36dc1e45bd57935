"""Checks that snapshot, diff, patch and restore reproduce a change set byte for byte."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.support.changes.change_generation import ChangeSet
from bench.support.changes.tree_model import find_differences, write_changes
from footplate.domain.files.snapshots import FileChange, TakenSnapshot
from footplate.trees.diffs import tree_diff
from footplate.trees.git import Git, write_attributes
from footplate.trees.snapshots import full_snapshot, restore

_GIT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
_IDENTITY = {f"GIT_{who}_{what}": "agent@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


async def find_change_faults(changes: ChangeSet) -> tuple[list[str], int]:
    """Returns the faults, and the size of the patch in bytes."""
    with _open_scratch_directory() as scratch_dir:
        host, files = scratch_dir / "host.git", scratch_dir / "files"
        files.mkdir()
        await Git(git_dir=host).run("init", "--quiet", "--bare", str(host))
        write_attributes(host)
        write_changes(files, {}, changes.before)
        early, late = changes.repositories[::2], changes.repositories[1::2]
        _make_repositories(files, early)
        old = await full_snapshot.take_snapshot(host, files)
        write_changes(files, changes.before, changes.after)
        _make_repositories(files, late)
        new = await full_snapshot.take_snapshot(host, files)
        faults = [f"omitted: {omitted}" for taken in (old, new) for omitted in taken.omitted]
        if await full_snapshot.take_snapshot(host, files) != new:
            faults.append("the same files got a different id")
        patch = scratch_dir / "patch"
        with patch.open("wb") as written:
            async with tree_diff.stream_patch(host, old.snapshot.tree, new.snapshot.tree) as pieces:
                async for piece in pieces:
                    written.write(piece)
        faults += _check_patch(scratch_dir, patch, changes)
        faults += _check_summary(changes, await tree_diff.summarise_changes(host, old.snapshot.tree, new.snapshot.tree))
        faults += await _check_restore(scratch_dir, host, new, changes)
        return faults, patch.stat().st_size


def _check_patch(scratch_dir: Path, patch: Path, changes: ChangeSet) -> list[str]:
    target = scratch_dir / "applied"
    target.mkdir()
    write_changes(target, {}, changes.before)
    if patch.stat().st_size:
        done = subprocess.run(
            ["git", "-c", "core.protectNTFS=false", "apply", "--whitespace=nowarn", str(patch)],
            cwd=target,
            env={**_GIT, "GIT_CEILING_DIRECTORIES": str(scratch_dir)},
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            return [f"git apply: {done.stderr.decode(errors='replace').strip()}"]
    return [f"after the patch {fault}" for fault in find_differences(target, changes.after)]


def _check_summary(changes: ChangeSet, lines: list[FileChange]) -> list[str]:
    """Checks that the summary, applied to the old names, gives the new names."""
    names = set(changes.before)
    names -= {line.path for line in lines if line.status == "deleted"}
    names -= {line.old_path for line in lines if line.old_path is not None}
    names |= {line.path for line in lines if line.status in {"added", "renamed"}}
    return [] if names == set(changes.after) else ["the summary lists different files"]


async def _check_restore(scratch_dir: Path, host: Path, taken: TakenSnapshot, changes: ChangeSet) -> list[str]:
    other, target = scratch_dir / "other.git", scratch_dir / "restored"
    await Git(git_dir=other).run("init", "--quiet", "--bare", str(other))
    write_attributes(other)
    (other / "objects" / "info" / "alternates").write_text(f"{host / 'objects'}\n")
    target.mkdir()
    await restore.restore_snapshot(other, taken.snapshot, target)
    faults = [f"restored, {fault}" for fault in find_differences(target, changes.after)]
    other_history = [
        path
        for path in changes.repositories
        if (target / os.fsdecode(path)).is_dir() and _log(target, path) != _log(scratch_dir / "files", path)
    ]
    return faults + [f"the repository at {path!r} has a different history" for path in other_history]


def _make_repositories(files: Path, paths: tuple[bytes, ...]) -> None:
    for path in paths:
        directory = files / os.fsdecode(path)
        if not directory.is_dir() or directory.is_symlink():
            continue
        for argv in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--allow-empty", "-m", "nested"]):
            subprocess.run(
                ["git", "-c", "core.protectNTFS=false", "-c", "advice.addEmbeddedRepo=false", *argv],
                cwd=directory,
                env={**_GIT, **_IDENTITY},
                check=False,
                capture_output=True,
            )


def _log(root: Path, path: bytes) -> bytes:
    argv = ["git", "log", "--format=%H %T"]
    return subprocess.run(
        argv,
        cwd=root / os.fsdecode(path),
        env={**_GIT, "GIT_CEILING_DIRECTORIES": str(root)},
        check=False,
        capture_output=True,
    ).stdout


@contextmanager
def _open_scratch_directory() -> Iterator[Path]:
    scratch_dir = Path(tempfile.mkdtemp(prefix="footplate-changes-"))
    try:
        yield scratch_dir
    finally:
        shutil.rmtree(scratch_dir)
