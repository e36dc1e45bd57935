"""Tricks that make git read or write outside of a tree, or return a forged object instead of the requested one."""

import contextlib
import shutil
from collections.abc import Sequence
from typing import Final

from bench.support.hostile_trees.ground import FORGED
from bench.support.hostile_trees.lair import Lair, Plant, Trick, forge_loose, forge_pack

_SECRET: Final = "git cat-file -p HEAD:secret"
_FILES: Final = 200
_NAIVE_STORE: Final = "git ls-files -z -o | xargs -0 git hash-object -w; git cat-file --batch --batch-all-objects"
_NAIVE_SNAPSHOT: Final = "for i in 1 2 3 4 5 6 7 8; do git add -A; git cat-file --batch --batch-all-objects; done"


def _outside_as(key: str, place: str) -> Plant:
    return lambda attacked: attacked.config(key, str(attacked.ground.outside / place))


def _link(name: str, place: str) -> Plant:
    """Replaces a part of the git directory with a link to a path outside."""

    def plant(lair: Lair) -> None:
        path = lair.tree / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        path.symlink_to(lair.ground.outside / place)

    return plant


def _pointed_to(lair: Lair) -> None:
    shutil.rmtree(lair.git_dir)
    lair.write(".git", f"gitdir: {lair.ground.outside}/repository/.git\n")


def _alternates(lair: Lair) -> None:
    place = lair.git_dir / "objects" / "info"
    place.mkdir(exist_ok=True)
    with (place / "alternates").open("a") as file:
        file.write(f"{lair.ground.outside}/repository/.git/objects\n")


def _secret_commit(lair: Lair) -> None:
    """Creates a branch for a commit of the outside repository."""
    _alternates(lair)
    lair.git("git update-ref refs/heads/taken $(cat ../../../../outside/repository/.git/refs/heads/main)")


def _replaced(lair: Lair) -> None:
    lair.write("forged", FORGED)
    lair.git(f"git update-ref refs/replace/{lair.blob()} $(git hash-object -w forged)")
    (lair.tree / "forged").unlink()
    lair.write("file")


def _forged(forge: Plant) -> Plant:
    def plant(lair: Lair) -> None:
        lair.write("file")
        forge(lair)

    return plant


def _swapped_file(lair: Lair, number: int) -> None:
    path, other = lair.tree / "swapped", lair.tree / "other.new"
    other.unlink(missing_ok=True)
    if number % 2:
        other.symlink_to(lair.ground.outside / "secret")
    else:
        other.write_text(f"{number}")
    other.replace(path)


def _many(lair: Lair) -> None:
    """Creates directories with the same file names inside and outside of the tree."""
    target = lair.ground.outside / "many"
    for directory in (lair.tree / "many", target):
        directory.mkdir(exist_ok=True)
        for number in range(_FILES):
            (directory / f"{number:03d}").write_text(lair.ground.secret if directory == target else f"{number}")


def _swapped_directory(lair: Lair, number: int) -> None:
    here, aside = lair.tree / "many", lair.tree / "aside"
    with contextlib.suppress(OSError):  # plain git may consider the directory gone, and remove it
        here.rename(aside)
        here.symlink_to(lair.ground.outside / "many")
        (aside / f"{number % _FILES:03d}").write_text(f"{number}")
        here.unlink()
        aside.rename(here)


TRICKS: Final[Sequence[Trick]] = (
    Trick(
        name="core.worktree",
        plant=_outside_as("core.worktree", ""),
        naive="git add -A; git cat-file -p :secret",
        in_project=False,
    ),
    Trick(name="core.worktree, written to", plant=_outside_as("core.worktree", ""), naive="git checkout -q -f"),
    Trick(name="include.path of a file outside", plant=_outside_as("include.path", "config"), naive="git config -l"),
    Trick(
        name="commit.template",
        plant=_outside_as("commit.template", "secret"),
        naive="echo x > file; GIT_EDITOR=cat git commit -a",
    ),
    Trick(name=".git as a link", plant=_link(".git", "repository/.git"), naive=_SECRET, in_project=False),
    Trick(name=".git as a file that leads outside", plant=_pointed_to, naive=_SECRET, in_project=False),
    Trick(
        name="objects as a link",
        plant=_link(".git/objects", "repository/.git/objects"),
        naive="git cat-file --batch --batch-all-objects",
        in_project=False,
    ),
    Trick(
        name="alternates",
        plant=_alternates,
        naive="git cat-file --batch --batch-all-objects",
        in_project=False,
    ),
    Trick(
        name="alternates, with a branch",
        plant=_secret_commit,
        naive="git log -p taken; git diff HEAD taken",
        in_project=False,
    ),
    Trick(
        name="configuration as a link",
        plant=_link(".git/config", "config"),
        naive="git config user.name x",
        in_project=False,
    ),
    Trick(
        name="branches as a link",
        plant=_link(".git/refs/heads", "repository/.git/refs/heads"),
        naive="git update-ref refs/heads/new $(git hash-object -w -t blob file); git branch new2 main; "
        "echo x > .git/refs/heads/x",
        in_project=False,
    ),
    Trick(
        name="a file that is swapped for a link",
        plant=Lair.give_away,
        meanwhile=_swapped_file,
        naive=_NAIVE_STORE,
        in_project=False,
    ),
    Trick(
        name="a directory that is swapped for a link",
        plant=_many,
        meanwhile=_swapped_directory,
        naive=_NAIVE_SNAPSHOT,
        in_project=False,
    ),
    # Git prefers a pack over a loose object, in any directory: so plain git runs without the project's packs.
    Trick(
        name="forged object",
        plant=_forged(forge_loose),
        naive="GIT_ALTERNATE_OBJECT_DIRECTORIES= git diff",
        in_project=False,
    ),
    Trick(name="crafted pack", plant=_forged(forge_pack), naive="git diff", in_project=False),
    Trick(name="replaced object", plant=_replaced, naive="git diff", in_project=False),
)
