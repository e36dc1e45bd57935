"""Checks that snapshot, diff, patch and restore reproduce a change set byte for byte."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.support.changes.drawing import ChangeSet
from bench.support.changes.model import differences, write
from footplate.domain.snapshots import FileChange, TakenSnapshot
from footplate.trees import diffs, restoring, snapshots
from footplate.trees.git import Git, write_attributes

_GIT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
_WHO = {f"GIT_{who}_{what}": "agent@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


async def judge(changes: ChangeSet) -> tuple[list[str], int]:
    """Returns the faults, and the size of the patch in bytes."""
    with _place() as place:
        host, files = place / "host.git", place / "files"
        files.mkdir()
        await Git(git_dir=host).run("init", "--quiet", "--bare", str(host))
        write_attributes(host)
        write(files, {}, changes.before)
        early, late = changes.repositories[::2], changes.repositories[1::2]
        _make_repositories(files, early)
        old = await snapshots.take_snapshot(host, files)
        write(files, changes.before, changes.after)
        _make_repositories(files, late)
        new = await snapshots.take_snapshot(host, files)
        faults = [f"omitted: {left}" for taken in (old, new) for left in taken.omitted]
        if await snapshots.take_snapshot(host, files) != new:
            faults.append("the same files got a different id")
        patch = place / "patch"
        with patch.open("wb") as written:
            async with diffs.stream_patch(host, old.snapshot.tree, new.snapshot.tree) as pieces:
                async for piece in pieces:
                    written.write(piece)
        faults += _applied(place, patch, changes)
        faults += _summarised(changes, await diffs.summarise_changes(host, old.snapshot.tree, new.snapshot.tree))
        faults += await _restored(place, host, new, changes)
        return faults, patch.stat().st_size


def _applied(place: Path, patch: Path, changes: ChangeSet) -> list[str]:
    target = place / "applied"
    target.mkdir()
    write(target, {}, changes.before)
    if patch.stat().st_size:
        done = subprocess.run(
            ["git", "-c", "core.protectNTFS=false", "apply", "--whitespace=nowarn", str(patch)],
            cwd=target,
            env={**_GIT, "GIT_CEILING_DIRECTORIES": str(place)},
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            return [f"git apply: {done.stderr.decode(errors='replace').strip()}"]
    return [f"after the patch {fault}" for fault in differences(target, changes.after)]


def _summarised(changes: ChangeSet, lines: list[FileChange]) -> list[str]:
    """Checks that the summary, applied to the old names, gives the new names."""
    names = set(changes.before)
    names -= {line.path for line in lines if line.status == "deleted"}
    names -= {line.old_path for line in lines if line.old_path is not None}
    names |= {line.path for line in lines if line.status in {"added", "renamed"}}
    return [] if names == set(changes.after) else ["the summary lists different files"]


async def _restored(place: Path, host: Path, taken: TakenSnapshot, changes: ChangeSet) -> list[str]:
    other, target = place / "other.git", place / "restored"
    await Git(git_dir=other).run("init", "--quiet", "--bare", str(other))
    write_attributes(other)
    (other / "objects" / "info" / "alternates").write_text(f"{host / 'objects'}\n")
    target.mkdir()
    await restoring.restore_snapshot(other, taken.snapshot, target)
    faults = [f"restored, {fault}" for fault in differences(target, changes.after)]
    other_history = [
        path
        for path in changes.repositories
        if (target / os.fsdecode(path)).is_dir() and _log(target, path) != _log(place / "files", path)
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
                env={**_GIT, **_WHO},
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
def _place() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="footplate-changes-"))
    try:
        yield place
    finally:
        shutil.rmtree(place)
