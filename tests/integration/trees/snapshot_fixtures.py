"""Working trees to take snapshots of, and their contents as plain values."""

import os
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from footplate.domain.files.snapshots import TakenSnapshot
from footplate.trees.git import Git, write_attributes
from footplate.trees.snapshots import full_snapshot
from footplate.trees.snapshots import restore as restoring
from footplate.trees.snapshots.staging_area import SnapshotLimits

Contents = dict[bytes, tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class World:
    root: Path

    @property
    def files(self) -> Path:
        return self.root / "files"

    @property
    def git_dir(self) -> Path:
        return self.root / "host.git"

    async def take_snapshot(self, limits: SnapshotLimits | None = None, *, base: str | None = None) -> TakenSnapshot:
        return await full_snapshot.take_snapshot(self.git_dir, self.files, base=base, limits=limits)

    async def restore(self, taken: TakenSnapshot, name: str = "restored") -> Path:
        """Restores the snapshot on another host, whose git directory has only the objects."""
        other = await make_host(self.root / f"{name}.git")
        alternates = other / "objects" / "info" / "alternates"
        alternates.write_text(f"{self.git_dir / 'objects'}\n")
        target = self.root / name
        target.mkdir()
        await restoring.restore_snapshot(other, taken.snapshot, target)
        return target

    def count_objects(self) -> int:
        return sum(1 for path in (self.git_dir / "objects").rglob("*") if path.is_file())


async def make_world(root: Path) -> World:
    world = World(root)
    world.files.mkdir(parents=True)
    await make_host(world.git_dir)
    return world


async def make_host(git_dir: Path) -> Path:
    await Git(git_dir=git_dir).run("init", "--quiet", "--bare", str(git_dir))
    write_attributes(git_dir)
    return git_dir


def contents(directory: Path, *, git: bool = True) -> Contents:
    """Returns every file and link by its path, to compare a restored tree."""
    found: Contents = {}
    for parent, directories, names in os.walk(directory):
        for path in (Path(parent, name) for name in (*names, *directories)):
            relative = os.fsencode(path.relative_to(directory))
            if path.is_dir() and not path.is_symlink():
                continue
            if git or b".git" not in relative.split(b"/"):
                found[relative] = _content(path)
    return found


def _content(path: Path) -> tuple[str, bytes]:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return "link", os.fsencode(path.readlink())
    if not stat.S_ISREG(mode):
        return "other", b""
    return ("program" if mode & stat.S_IXUSR else "file"), path.read_bytes()


def git(directory: Path, *argv: str, check: bool = True) -> str:
    """Runs git as an agent would, in its own directory."""
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    environment: Mapping[str, str] = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        **{f"GIT_{name}": "agent@example.com" for name in names},
    }
    done = subprocess.run(
        ["git", *argv], cwd=directory, env=environment, check=False, capture_output=True, text=True, errors="replace"
    )
    if check and done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout
