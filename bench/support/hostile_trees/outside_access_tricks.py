"""Tricks that make git read or write outside of a tree, or return a forged object instead of the requested one."""

import contextlib
import shutil
from collections.abc import Sequence
from typing import Final

from bench.support.hostile_trees.attacked_tree import AttackedTree, Plant, Trick, forge_loose_object, forge_pack
from bench.support.hostile_trees.fixture import FORGED

_SECRET: Final = "git cat-file -p HEAD:secret"
_FILES: Final = 200
_NAIVE_STORE: Final = "git ls-files -z -o | xargs -0 git hash-object -w; git cat-file --batch --batch-all-objects"
_NAIVE_SNAPSHOT: Final = "for i in 1 2 3 4 5 6 7 8; do git add -A; git cat-file --batch --batch-all-objects; done"


def _set_to_outside_path(key: str, outside_path: str) -> Plant:
    return lambda attacked: attacked.set_config(key, str(attacked.fixture.outside / outside_path))


def _link_outside(name: str, outside_path: str) -> Plant:
    """Replaces a part of the git directory with a link to a path outside."""

    def plant(attacked: AttackedTree) -> None:
        path = attacked.tree / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        path.symlink_to(attacked.fixture.outside / outside_path)

    return plant


def _git_file_to_outside(attacked: AttackedTree) -> None:
    shutil.rmtree(attacked.git_dir)
    attacked.write_file(".git", f"gitdir: {attacked.fixture.outside}/repository/.git\n")


def _alternates(attacked: AttackedTree) -> None:
    info_directory = attacked.git_dir / "objects" / "info"
    info_directory.mkdir(exist_ok=True)
    with (info_directory / "alternates").open("a") as file:
        file.write(f"{attacked.fixture.outside}/repository/.git/objects\n")


def _secret_commit(attacked: AttackedTree) -> None:
    """Creates a branch for a commit of the outside repository."""
    _alternates(attacked)
    attacked.run_git("git update-ref refs/heads/taken $(cat ../../../../outside/repository/.git/refs/heads/main)")


def _replaced_object(attacked: AttackedTree) -> None:
    attacked.write_file("forged", FORGED)
    attacked.run_git(f"git update-ref refs/replace/{attacked.blob_id()} $(git hash-object -w forged)")
    (attacked.tree / "forged").unlink()
    attacked.write_file("file")


def _forged_object(forge: Plant) -> Plant:
    def plant(attacked: AttackedTree) -> None:
        attacked.write_file("file")
        forge(attacked)

    return plant


def _swapped_file(attacked: AttackedTree, number: int) -> None:
    path, other = attacked.tree / "swapped", attacked.tree / "other.new"
    other.unlink(missing_ok=True)
    if number % 2:
        other.symlink_to(attacked.fixture.outside / "secret")
    else:
        other.write_text(f"{number}")
    other.replace(path)


def _same_names_outside(attacked: AttackedTree) -> None:
    """Creates directories with the same file names inside and outside of the tree."""
    target = attacked.fixture.outside / "many"
    for directory in (attacked.tree / "many", target):
        directory.mkdir(exist_ok=True)
        for number in range(_FILES):
            (directory / f"{number:03d}").write_text(attacked.fixture.secret if directory == target else f"{number}")


def _swapped_directory(attacked: AttackedTree, number: int) -> None:
    here, aside = attacked.tree / "many", attacked.tree / "aside"
    with contextlib.suppress(OSError):  # plain git may consider the directory gone, and remove it
        here.rename(aside)
        here.symlink_to(attacked.fixture.outside / "many")
        (aside / f"{number % _FILES:03d}").write_text(f"{number}")
        here.unlink()
        aside.rename(here)


TRICKS: Final[Sequence[Trick]] = (
    Trick(
        name="core.worktree",
        plant=_set_to_outside_path("core.worktree", ""),
        plain_git_script="git add -A; git cat-file -p :secret",
        in_project=False,
    ),
    Trick(
        name="core.worktree, written to",
        plant=_set_to_outside_path("core.worktree", ""),
        plain_git_script="git checkout -q -f",
    ),
    Trick(
        name="include.path of a file outside",
        plant=_set_to_outside_path("include.path", "config"),
        plain_git_script="git config -l",
    ),
    Trick(
        name="commit.template",
        plant=_set_to_outside_path("commit.template", "secret"),
        plain_git_script="echo x > file; GIT_EDITOR=cat git commit -a",
    ),
    Trick(
        name=".git as a link",
        plant=_link_outside(".git", "repository/.git"),
        plain_git_script=_SECRET,
        in_project=False,
    ),
    Trick(
        name=".git as a file that leads outside", plant=_git_file_to_outside, plain_git_script=_SECRET, in_project=False
    ),
    Trick(
        name="objects as a link",
        plant=_link_outside(".git/objects", "repository/.git/objects"),
        plain_git_script="git cat-file --batch --batch-all-objects",
        in_project=False,
    ),
    Trick(
        name="alternates",
        plant=_alternates,
        plain_git_script="git cat-file --batch --batch-all-objects",
        in_project=False,
    ),
    Trick(
        name="alternates, with a branch",
        plant=_secret_commit,
        plain_git_script="git log -p taken; git diff HEAD taken",
        in_project=False,
    ),
    Trick(
        name="configuration as a link",
        plant=_link_outside(".git/config", "config"),
        plain_git_script="git config user.name x",
        in_project=False,
    ),
    Trick(
        name="branches as a link",
        plant=_link_outside(".git/refs/heads", "repository/.git/refs/heads"),
        plain_git_script="git update-ref refs/heads/new $(git hash-object -w -t blob file); git branch new2 main; "
        "echo x > .git/refs/heads/x",
        in_project=False,
    ),
    Trick(
        name="a file that is swapped for a link",
        plant=AttackedTree.give_to_agent,
        concurrent_action=_swapped_file,
        plain_git_script=_NAIVE_STORE,
        in_project=False,
    ),
    Trick(
        name="a directory that is swapped for a link",
        plant=_same_names_outside,
        concurrent_action=_swapped_directory,
        plain_git_script=_NAIVE_SNAPSHOT,
        in_project=False,
    ),
    # Git prefers a pack over a loose object, in any directory: so plain git runs without the project's packs.
    Trick(
        name="forged object",
        plant=_forged_object(forge_loose_object),
        plain_git_script="GIT_ALTERNATE_OBJECT_DIRECTORIES= git diff",
        in_project=False,
    ),
    Trick(name="crafted pack", plant=_forged_object(forge_pack), plain_git_script="git diff", in_project=False),
    Trick(name="replaced object", plant=_replaced_object, plain_git_script="git diff", in_project=False),
)
