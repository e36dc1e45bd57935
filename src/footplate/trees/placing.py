"""A session's tree of a project: the files of its base, a git directory for the agent, and one for the host.

The host's git directory lies apart, where nothing of the agent's reaches; so do the objects that both share, in the
project's mirror. The agent's lies in the tree, is written once, before the agent first runs there, and is never read by
the host again.

A worker may die anywhere in between. What it began has a directory of its own for a sign, and the host's git directory
comes to its place last: a tree that was begun and not finished has never been an agent's, and is made anew. A tree
with files and without that sign is somebody's work whose other half is lost: it is left alone, and said, unless the log
has its files (`returning.py`).
"""

import asyncio
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate import failpoints
from footplate.domain.errors import Permanent
from footplate.domain.organisations import directory_of
from footplate.domain.projects import PRIVATE_TREES, Base, SessionProject
from footplate.trees.git import Git, write_attributes

HOST: Final = "host.git"
BESIDE: Final = "beside"
BEGUN: Final = "host.git.begun"
_WORKERS: Final = 4
"""Of git, that write files side by side."""
_BESIDE: Final = 500
"""Fewer files than this are written sooner by one."""
_AUTHOR: Final = ("Footplate agent", "agent@footplate.invalid")

Lines = Sequence[tuple[str, str]]


def private_of(data: Path, organisation: str, session_id: str) -> Path:
    """What the host has of a session's trees, below its data directory."""
    return data / PRIVATE_TREES / directory_of(organisation) / session_id


def host_of(private: Path, tree: str, *, beside: bool) -> Path:
    """The host's git directory of one of them."""
    return (private / BESIDE / tree if beside else private) / HOST


class TreeLost(Permanent):
    code = "tree_lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    project: SessionProject
    base: Base
    mirror: Path
    objects: str
    """The mirror's objects as the agent sees them."""
    private: Path
    """Of the host's alone: where its git directory goes."""
    tree: Path
    user: tuple[int, int]


def is_placed(private: Path) -> bool:
    return (private / HOST).is_dir()


async def place_at_base(wanted: Placement) -> None:
    """The caller has the session, and this tree of it, for itself."""
    host = await asyncio.to_thread(_begin, wanted)
    git = await init(host, wanted.base.branch, wanted.mirror)
    if wanted.base.commit is not None:
        await git.run("update-ref", f"refs/heads/{wanted.base.branch}", wanted.base.commit)
        await _check_out(wanted, host, wanted.base.commit)
    refs = await _refs(Git(git_dir=wanted.mirror))
    await asyncio.to_thread(_give_agent, wanted, host, refs)
    await failpoints.hit("tree_written")
    await asyncio.to_thread(host.rename, wanted.private / HOST)


async def init(host: Path, branch: str, mirror: Path | None) -> Git:
    """A git directory of the host's own; with a mirror, it has all that the mirror has."""
    git = Git(git_dir=host)
    await git.run("init", "-q", "--bare", "--template=", f"--initial-branch={branch}")
    if mirror is not None:
        await asyncio.to_thread(share, host / "objects", str(mirror / "objects"))
    await asyncio.to_thread(write_attributes, host)
    return git


def begin_anew(private: Path, tree: Path, user: tuple[int, int]) -> Path:
    """Whatever is there is older than what the log has. Killed at any moment, it is begun anew."""
    host, before = private / BEGUN, private / HOST
    shutil.rmtree(host, ignore_errors=True)
    if before.is_dir():
        before.rename(host)
        shutil.rmtree(host)
    host.mkdir(parents=True)
    tree.mkdir(parents=True, exist_ok=True)
    _empty(tree)
    own(tree, user)
    return host


def _begin(wanted: Placement) -> Path:
    host = wanted.private / BEGUN
    if host.is_dir():
        shutil.rmtree(host)
        _empty(wanted.tree)
    elif wanted.tree.is_dir() and any(wanted.tree.iterdir()):
        raise TreeLost(
            f"The session's tree of the project {wanted.project.name!r} is on this host, but what the host needs to "
            "know of it is not.",
            help_text=f"Restore {wanted.private}, or move the files away: the next turn then begins with the base.",
        )
    host.mkdir(parents=True)
    if not wanted.tree.is_dir():
        wanted.tree.mkdir(parents=True)
    own(wanted.tree, wanted.user)
    return host


def _empty(tree: Path) -> None:
    for entry in os.scandir(tree):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            Path(entry.path).unlink()


async def _check_out(wanted: Placement, host: Path, commit: str) -> None:
    """By git itself, as the user whose the files are to be."""
    await asyncio.to_thread(own, host, wanted.user)  # for the index, which git writes beside
    git = Git(
        git_dir=host,
        work_tree=wanted.tree,
        user=wanted.user,
        configuration={"checkout.workers": str(_WORKERS), "checkout.thresholdForParallelism": str(_BESIDE)},
    )
    await git.run("read-tree", "-m", "-u", commit)
    await asyncio.to_thread(own, host, (os.geteuid(), os.getegid()))


async def _refs(mirror: Git) -> bytes:
    """All branches and tags of the project, as a clone has them: branches are those of `origin`."""
    form = "%(objectname) %(refname)"
    heads = await mirror.run("for-each-ref", f"--format={form}", "refs/heads/")
    tags = await mirror.run("for-each-ref", f"--format={form}", "refs/tags/")
    return heads.replace(b" refs/heads/", b" refs/remotes/origin/") + tags


def _give_agent(wanted: Placement, host: Path, refs: bytes) -> None:
    git = wanted.tree / ".git"
    base = wanted.base
    for directory in ("refs/heads", "refs/tags", "objects/pack", "info"):
        (git / directory).mkdir(parents=True)
    share(git / "objects", wanted.objects)
    first = b"" if base.commit is None else f"{base.commit} refs/heads/{base.branch}\n".encode()
    lines = sorted((first + refs).splitlines(keepends=True), key=lambda line: line.split(b" ", 1)[1])
    (git / "packed-refs").write_bytes(b"# pack-refs with: sorted \n" + b"".join(lines))
    (git / "HEAD").write_text(f"ref: refs/heads/{base.branch}\n")
    (git / "config").write_text(_configuration(wanted))
    if (host / "index").exists():
        shutil.copyfile(host / "index", git / "index")
    for path in (git, *git.rglob("*")):
        own(path, wanted.user)


def _configuration(wanted: Placement) -> str:
    name, email = _AUTHOR
    branch = wanted.base.branch
    sections: list[tuple[str, Lines]] = [
        (
            "core",
            [
                ("repositoryformatversion", "0"),
                ("filemode", "true"),
                ("bare", "false"),
                ("checkstat", "minimal"),  # in a sandbox the same files have another owner
                ("logallrefupdates", "true"),
            ],
        ),
        ("user", [("name", name), ("email", email)]),
        (
            'remote "origin"',
            [
                *([("url", wanted.project.url)] if wanted.project.url else []),
                ("fetch", "+refs/heads/*:refs/remotes/origin/*"),
            ],
        ),
        (f'branch "{_quoted(branch)}"', [("remote", "origin"), ("merge", f"refs/heads/{branch}")]),
    ]
    return "\n".join(_section(title, lines) for title, lines in sections)


def _section(title: str, lines: Lines) -> str:
    return f"[{title}]\n" + "".join(f'\t{key} = "{_quoted(value)}"\n' for key, value in lines)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def share(objects: Path, elsewhere: str) -> None:
    (objects / "info").mkdir(parents=True, exist_ok=True)
    (objects / "info" / "alternates").write_text(f"{elsewhere}\n")


def own(path: Path, user: tuple[int, int]) -> None:
    if os.geteuid() == 0:
        os.chown(path, *user, follow_symlinks=False)
