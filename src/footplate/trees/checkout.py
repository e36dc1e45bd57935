"""Checks out a project for a session: the files of the base commit, and git directories for the agent and the host.

The agent's git directory is in the tree, and the host never reads it. The host's git directory is outside the
tree, where the agent has no access. It is moved to its final path last, so an unfinished checkout is
recognised and built again.
"""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate import failpoints
from footplate.domain.errors import Permanent
from footplate.domain.organisations.organisation_names import directory_name
from footplate.domain.projects.project import PRIVATE_TREES, BaseCommit, SessionProject
from footplate.trees.git import Git, write_attributes

HOST_GIT_DIR_NAME: Final = "host.git"
ADDITIONAL_TREES_NAME: Final = "beside"
UNFINISHED_GIT_DIR_NAME: Final = "host.git.begun"
_CHECKOUT_WORKERS: Final = 4
"""git processes that write files in parallel."""
_MIN_PARALLEL_FILES: Final = 500
"""Below this number of files, a single process is faster."""
_AUTHOR: Final = ("Footplate agent", "agent@footplate.invalid")

ConfigLines = Sequence[tuple[str, str]]


def private_dir_path(data: Path, organisation: str, session_id: str) -> Path:
    """Returns the directory with the host's data about a session's trees."""
    return data / PRIVATE_TREES / directory_name(organisation) / session_id


def host_git_dir_path(private_dir: Path, tree: str, *, is_additional: bool) -> Path:
    """Returns the path of the host's git directory for one tree."""
    return (private_dir / ADDITIONAL_TREES_NAME / tree if is_additional else private_dir) / HOST_GIT_DIR_NAME


class TreeLost(Permanent):
    code = "tree_lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutRequest:
    project: SessionProject
    base: BaseCommit
    mirror: Path
    objects_inside: str
    """Path of the mirror's objects as the agent sees it."""
    private_dir: Path
    """The host's private directory, which will contain its git directory."""
    tree: Path
    user: tuple[int, int]
    finish: Callable[[Path], Awaitable[None]] | None = None
    """Called with the host's git directory when all files are written, before the checkout counts as finished."""


def is_checked_out(private_dir: Path) -> bool:
    return (private_dir / HOST_GIT_DIR_NAME).is_dir()


async def check_out_base(request: CheckoutRequest) -> None:
    """Checks out the base. The caller has exclusive access to the session and this tree.

    The worker may die at any point. An unfinished checkout is marked by a directory. A tree with this mark was never
    used by an agent, so it is built again. A tree with files but without the mark and the host's git directory may
    contain work. It is left unchanged and reported as an error, unless the log has its files (`tree_recovery.py`).
    """
    host_git_dir = await asyncio.to_thread(_start_checkout, request)
    git = await init_git_dir(host_git_dir, request.base.branch, request.mirror)
    if request.base.commit is not None:
        await git.run("update-ref", f"refs/heads/{request.base.branch}", request.base.commit)
        await _check_out_files(request, host_git_dir, request.base.commit)
    refs = await _list_refs(Git(git_dir=request.mirror))
    await asyncio.to_thread(_write_agent_git_dir, request, host_git_dir, refs)
    if request.finish is not None:
        await request.finish(host_git_dir)
    await failpoints.hit("tree_written")
    await asyncio.to_thread(host_git_dir.rename, request.private_dir / HOST_GIT_DIR_NAME)


async def init_git_dir(git_dir: Path, branch: str, mirror: Path | None) -> Git:
    """Creates a git directory for the host. With a mirror, it shares the mirror's objects."""
    git = Git(git_dir=git_dir)
    await git.run("init", "-q", "--bare", "--template=", f"--initial-branch={branch}")
    if mirror is not None:
        await asyncio.to_thread(write_alternates, git_dir / "objects", str(mirror / "objects"))
    await asyncio.to_thread(write_attributes, git_dir)
    return git


def reset_checkout(private_dir: Path, tree: Path, user: tuple[int, int]) -> Path:
    """Discards the tree and the host's git directory, because the log has a newer version. If the process is killed,
    the next call starts over.
    """
    host_git_dir, old_git_dir = private_dir / UNFINISHED_GIT_DIR_NAME, private_dir / HOST_GIT_DIR_NAME
    shutil.rmtree(host_git_dir, ignore_errors=True)
    if old_git_dir.is_dir():
        old_git_dir.rename(host_git_dir)
        shutil.rmtree(host_git_dir)
    host_git_dir.mkdir(parents=True)
    tree.mkdir(parents=True, exist_ok=True)
    _clear_directory(tree)
    change_owner(tree, user)
    return host_git_dir


def _start_checkout(request: CheckoutRequest) -> Path:
    host_git_dir = request.private_dir / UNFINISHED_GIT_DIR_NAME
    if host_git_dir.is_dir():
        shutil.rmtree(host_git_dir)
        _clear_directory(request.tree)
    elif request.tree.is_dir() and any(request.tree.iterdir()):
        raise TreeLost(
            f"This host has the session's files of the project {request.project.name!r}, but Footplate's "
            "git directory for them is missing.",
            help_text=f"Restore {request.private_dir}, or move the files away so that the next turn "
            "starts from the base commit.",
        )
    host_git_dir.mkdir(parents=True)
    if not request.tree.is_dir():
        request.tree.mkdir(parents=True)
    change_owner(request.tree, request.user)
    return host_git_dir


def _clear_directory(tree: Path) -> None:
    for entry in os.scandir(tree):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            Path(entry.path).unlink()


async def _check_out_files(request: CheckoutRequest, host_git_dir: Path, commit: str) -> None:
    """Has git write the files, as the user who will own them."""
    await asyncio.to_thread(change_owner, host_git_dir, request.user)  # git writes its index file there
    git = Git(
        git_dir=host_git_dir,
        work_tree=request.tree,
        user=request.user,
        configuration={
            "checkout.workers": str(_CHECKOUT_WORKERS),
            "checkout.thresholdForParallelism": str(_MIN_PARALLEL_FILES),
        },
    )
    await git.run("read-tree", "-m", "-u", commit)
    await asyncio.to_thread(change_owner, host_git_dir, (os.geteuid(), os.getegid()))


async def _list_refs(mirror: Git) -> bytes:
    """Returns all branches and tags as a clone has them. Branches become those of `origin`."""
    form = "%(objectname) %(refname)"
    heads = await mirror.run("for-each-ref", f"--format={form}", "refs/heads/")
    tags = await mirror.run("for-each-ref", f"--format={form}", "refs/tags/")
    return heads.replace(b" refs/heads/", b" refs/remotes/origin/") + tags


def _write_agent_git_dir(request: CheckoutRequest, host_git_dir: Path, refs: bytes) -> None:
    git = request.tree / ".git"
    base = request.base
    for directory in ("refs/heads", "refs/tags", "objects/pack", "info"):
        (git / directory).mkdir(parents=True)
    write_alternates(git / "objects", request.objects_inside)
    first = b"" if base.commit is None else f"{base.commit} refs/heads/{base.branch}\n".encode()
    lines = sorted((first + refs).splitlines(keepends=True), key=lambda line: line.split(b" ", 1)[1])
    (git / "packed-refs").write_bytes(b"# pack-refs with: sorted \n" + b"".join(lines))
    (git / "HEAD").write_text(f"ref: refs/heads/{base.branch}\n")
    (git / "config").write_text(_agent_configuration(request))
    if (host_git_dir / "index").exists():
        shutil.copyfile(host_git_dir / "index", git / "index")
    for path in (git, *git.rglob("*")):
        change_owner(path, request.user)


def _agent_configuration(request: CheckoutRequest) -> str:
    name, email = _AUTHOR
    branch = request.base.branch
    sections: list[tuple[str, ConfigLines]] = [
        (
            "core",
            [
                ("repositoryformatversion", "0"),
                ("filemode", "true"),
                ("bare", "false"),
                ("checkstat", "minimal"),  # inside a sandbox the same files have another owner
                ("logallrefupdates", "true"),
            ],
        ),
        ("user", [("name", name), ("email", email)]),
        (
            'remote "origin"',
            [
                *([("url", request.project.url)] if request.project.url else []),
                ("fetch", "+refs/heads/*:refs/remotes/origin/*"),
            ],
        ),
        (f'branch "{_quote(branch)}"', [("remote", "origin"), ("merge", f"refs/heads/{branch}")]),
    ]
    return "\n".join(_format_section(title, lines) for title, lines in sections)


def _format_section(title: str, lines: ConfigLines) -> str:
    return f"[{title}]\n" + "".join(f'\t{key} = "{_quote(value)}"\n' for key, value in lines)


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def write_alternates(objects: Path, alternates: str) -> None:
    (objects / "info").mkdir(parents=True, exist_ok=True)
    (objects / "info" / "alternates").write_text(f"{alternates}\n")


def change_owner(path: Path, user: tuple[int, int]) -> None:
    if os.geteuid() == 0:
        os.chown(path, *user, follow_symlinks=False)
