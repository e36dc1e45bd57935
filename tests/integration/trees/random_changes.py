"""Random changes of a working tree: writes, renames, links, ignore rules, commits and nested repositories."""

import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.integration.trees.snapshot_fixtures import git

NAMES = ("a", "b", "c.log", "ü", "d\udcff", "e f")


def _some_path(files: Path, chance: random.Random) -> Path:
    path = files
    for _ in range(chance.randint(1, 3)):
        path /= chance.choice(NAMES)
    return path


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _make_parent(files: Path, path: Path) -> None:
    for parent in reversed(path.relative_to(files).parents):
        if not (files / parent).is_dir() or (files / parent).is_symlink():
            _clear(files / parent)
    path.parent.mkdir(parents=True, exist_ok=True)


def _write(files: Path, chance: random.Random) -> None:
    path = _some_path(files, chance)
    _make_parent(files, path)
    if path.is_dir() or path.is_symlink():
        _clear(path)
    path.write_text(str(chance.randint(0, 9)))


def _delete(files: Path, chance: random.Random) -> None:
    path = _some_path(files, chance)
    if path.parent.is_dir():
        _clear(path)


def _rename(files: Path, chance: random.Random) -> None:
    source, target = _some_path(files, chance), _some_path(files, chance)
    if os.path.lexists(source) and not target.is_relative_to(source) and not source.is_relative_to(target):
        _make_parent(files, target)
        if os.path.lexists(source):
            _clear(target)
            source.rename(target)


def _link(files: Path, chance: random.Random) -> None:
    path = _some_path(files, chance)
    _make_parent(files, path)
    _clear(path)
    path.symlink_to(chance.choice(NAMES))


def _mkdir(files: Path, chance: random.Random) -> None:
    path = _some_path(files, chance)
    _make_parent(files, path)
    if not path.is_dir() or path.is_symlink():
        _clear(path)
        path.mkdir()


def _chmod(files: Path, chance: random.Random) -> None:
    path = _some_path(files, chance)
    if path.is_file() and not path.is_symlink():
        path.chmod(chance.choice((0o644, 0o755)))


def _ignore(files: Path, chance: random.Random) -> None:
    (files / ".gitignore").write_text(chance.choice(("*.log\n", "a/b\n", "")))


def _commit(files: Path, chance: random.Random) -> None:
    del chance
    git(files, "add", "--all", "--force", check=False)
    git(
        files,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        "one",
        check=False,
    )


def _nest(files: Path, chance: random.Random) -> None:
    path = files / chance.choice(("a", "ü"))
    if path.is_dir() and not path.is_symlink():
        git(path, "init", "--quiet")


CHANGES: Sequence[Callable[[Path, random.Random], None]] = (
    *(_write, _write, _write, _write, _write, _write),
    *(_delete, _delete, _delete, _rename, _rename, _rename),
    *(_link, _mkdir, _mkdir, _chmod, _ignore, _commit, _nest),
)
