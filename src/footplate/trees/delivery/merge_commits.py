"""Creates commits from a session's files and merges them with a branch. It needs only git objects, not a working
tree.

The same input gives the same commit id, except for the merge commit on a branch, which contains the current time. A
merge commit is created only if the branch does not contain the session's commit yet.
"""

import re
import time
from dataclasses import dataclass, replace
from typing import Final

from footplate.domain.errors import Conflict
from footplate.domain.files.delivery import (
    Delivery,
    DeliveryStatus,
    DeliveryStep,
    FileConflict,
    MergeConflict,
    NothingToDeliver,
)
from footplate.domain.files.snapshots import display_path
from footplate.domain.files.uploaded_files import UPLOADS_DIRECTORY
from footplate.trees.git import Git, GitFailed
from footplate.trees.git_plumbing import split_nul_separated
from footplate.trees.projects.mirrors import read_commit_tree

_NAME: Final = "Footplate agent"
_EMAIL: Final = "agent@footplate.invalid"
_MAX_FILE_BYTES: Final = 1 << 20
_MAX_DETAILED: Final = 50
_CONFLICT_MARK: Final = b"<<<<<<< "
_MERGE_MEMORY: Final = 4 << 30
_MERGE_SECONDS: Final = 120.0
"""A few objects can expand to any number of files, which git would list one by one."""
_REASONS: Final = {
    "contents": "the same lines were changed on both sides",
    "binary": "this binary file was changed on both sides",
    "content": "the same lines were changed on both sides",
    "add/add": "added on both sides, with different contents",
    "modify/delete": "changed on one side and deleted on the other",
    "rename/delete": "renamed on one side and deleted on the other",
    "rename/rename": "renamed on both sides, to different names",
    "rename/add": "a file was renamed to this name on one side, and a file with this name was added on the other",
    "file/directory": "a file on one side and a directory on the other",
    "distinct types": "a file on one side and a link or submodule on the other",
    "directory rename split": "this directory was renamed on one side, but its files were moved to several directories",
    "submodule": "the submodule was changed to different commits on both sides",
}
_DELETED: Final = {"modify/delete": "changed", "rename/delete": "renamed"}
"""The change that one side made to a file that the other side deleted."""
_BRANCH_STAGE: Final = b"2"
_SESSION_STAGE: Final = b"3"


@dataclass(frozen=True, slots=True)
class PlannedUpdate:
    commit: str
    status: DeliveryStatus


async def create_session_commit(git: Git, delivery: Delivery) -> str:
    """Creates one commit for each delivery of the files, on top of the agent's own commits.

    Raises `NothingToDeliver` if nothing changed since the session started.
    """
    base = delivery.project.base_commit
    last, head = base, base
    for step in delivery.steps:
        last = await _commit_step(git, last, head, step, base)
        head = step.snapshot.head or base
    if last is None or last == base:
        raise NothingToDeliver(
            f"Session {delivery.session_id} has made no changes since it started.", help_text="Nothing to deliver."
        )
    return last


async def _commit_step(
    git: Git, last: str | None, head: str | None, step: DeliveryStep, base: str | None
) -> str | None:
    """Creates the commit of one step. `last` is the previous commit, and `head` the agent's HEAD at that time. Commits
    that were delivered stay in the history.
    """
    tree, new_head = step.snapshot.tree, step.snapshot.head or base
    parents = [last] if last is not None else []
    if new_head is not None and new_head not in {head, last}:
        if last is None or last == base or await contains(git, new_head, last):
            parents = [new_head]
        elif not await contains(git, last, new_head):
            parents.append(new_head)
    if await _list_tree(git, tree, UPLOADS_DIRECTORY) and not any(
        [await _list_tree(git, parent, UPLOADS_DIRECTORY) for parent in parents]
    ):
        tree = await _without_uploads(git, tree)
    if len(parents) == 1 and await read_commit_tree(git, parents[0]) == tree:
        return parents[0]
    return await create_commit(git, tree, parents, step.message, int(step.taken_at.timestamp()))


async def _without_uploads(git: Git, tree: str) -> str:
    """Removes uploaded input files, which are not the session's work. They are delivered only if the agent committed
    them.
    """
    above, _, name = UPLOADS_DIRECTORY.rpartition("/")
    rest = await _list_tree(git, f"{tree}:{above}", excluded=name)
    whole = await _list_tree(git, tree, excluded=above)
    if rest:
        whole.append(f"040000 tree {await _make_tree(git, rest)}\t{above}".encode())
    return await _make_tree(git, whole)


async def _list_tree(git: Git, tree: str, *paths: str, excluded: str = "") -> list[bytes]:
    listed = split_nul_separated(await git.run("ls-tree", "-z", tree, *paths))
    return [line for line in listed if line.partition(b"\t")[2] != excluded.encode()]


async def _make_tree(git: Git, lines: list[bytes]) -> str:
    return (await git.run("mktree", "-z", stdin=b"".join(line + b"\0" for line in lines))).decode().strip()


async def plan_merge(git: Git, delivery: Delivery, target: str | None, branch: str) -> PlannedUpdate:
    """Returns the commit to move the branch to; it is at `target` now. Raises `MergeConflict`."""
    work_commit = await create_session_commit(git, delivery)
    if target is not None and await contains(git, target, work_commit):
        return PlannedUpdate(target, "unchanged")
    if target is None or await contains(git, work_commit, target):
        return PlannedUpdate(work_commit, "fast_forwarded")
    merged = await merge_trees(git, target, work_commit, branch)
    if merged == await read_commit_tree(git, target) and not delivery.steps[-1].snapshot.commits:
        return PlannedUpdate(target, "unchanged")  # the branch already has the same changes from elsewhere
    message = f"Merge session {delivery.session_id} into {branch}\n\n{delivery.steps[-1].message}"
    return PlannedUpdate(await create_commit(git, merged, [target, work_commit], message, int(time.time())), "merged")


async def create_commit(git: Git, tree: str, parents: list[str], message: str, at: int) -> str:
    identity = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", _NAME), ("EMAIL", _EMAIL), ("DATE", f"@{at} +0000"))
    }
    parent_arguments = [argument for parent in parents for argument in ("-p", parent)]
    made = await replace(git, variables={**git.variables, **identity}).run(
        "commit-tree", tree, *parent_arguments, "-F", "-", stdin=message.encode("utf-8", "replace")
    )
    return made.decode().strip()


async def contains(git: Git, descendant: str, ancestor: str) -> bool:
    """Returns whether a commit is another one, or has it in its history."""
    code, _ = await git.run_with_exit_code("merge-base", "--is-ancestor", ancestor, descendant)
    return code == 0


async def merge_trees(git: Git, ours: str, theirs: str, branch: str) -> str:
    """Merges two commits and returns the id of the resulting tree. Raises `MergeConflict`."""
    try:
        limited_git = replace(git, max_memory_bytes=_MERGE_MEMORY)
        code, out = await limited_git.run_with_exit_code(
            "merge-tree", "--write-tree", "-z", "--messages", ours, theirs, seconds=_MERGE_SECONDS
        )
    except GitFailed as error:
        raise Conflict(
            f"The session's work and the branch {branch!r} have no commit in common: {error.output}",
            help_text="Nothing was changed. Run `footplate push` to create a separate branch.",
        ) from error
    tree, *rest = out.split(b"\0")
    if code == 0:
        return tree.decode()
    raise MergeConflict(branch, await _parse_conflicts(git, tree.decode(), rest, ours, theirs))


async def _parse_conflicts(git: Git, tree: str, fields: list[bytes], ours: str, theirs: str) -> list[FileConflict]:
    """Parses the conflicts. After the tree come `ls-files` lines, an empty field, and messages: path count, paths,
    kind, text.
    """
    position = fields.index(b"") + 1
    stages = [line.split(b" ", 2)[2].partition(b"\t") for line in fields[: position - 1]]
    branch_has = {path for stage, _, path in stages if stage == _BRANCH_STAGE}
    session_has = {path for stage, _, path in stages if stage == _SESSION_STAGE}
    found: dict[bytes, str] = {}
    while position < len(fields) and fields[position].isdigit():
        count = int(fields[position])
        paths, kind = (
            fields[position + 1 : position + 1 + count],
            fields[position + 1 + count].decode("utf-8", "replace"),
        )
        position += count + 3
        if paths and (match := re.match(r"CONFLICT \(([^)]*)\)", kind)):
            found.setdefault(
                paths[0], _reason(match[1], branch=paths[0] in branch_has, session=paths[0] in session_has)
            )
    conflicts = []
    for number, (path, reason) in enumerate(sorted(found.items())):
        if number < _MAX_DETAILED:
            lines, last = await _conflict_lines(git, tree, path), await _last_branch_commit(git, ours, theirs, path)
            conflicts.append(FileConflict(path=display_path(path), reason=reason, line_numbers=lines, last_commit=last))
        else:
            conflicts.append(FileConflict(path=display_path(path), reason=reason))
    return conflicts


def _reason(kind: str, *, branch: bool, session: bool) -> str:
    """`branch` and `session`: whether each side has the file."""
    if kind in _DELETED and branch != session:
        has, lacks = ("branch", "session") if branch else ("session", "branch")
        return f"{_DELETED[kind]} by the {has} and deleted by the {lacks}"
    return _REASONS.get(kind, f"git reports {kind!r}")


async def _conflict_lines(git: Git, tree: str, path: bytes) -> list[int]:
    name = f"{tree}:{path.decode('utf-8', 'surrogateescape')}"
    try:
        size = int(await git.run("cat-file", "-s", name))
        content = await git.run("cat-file", "blob", name) if size <= _MAX_FILE_BYTES else b""
    except GitFailed:  # the file is deleted, or a directory
        return []
    return [number for number, line in enumerate(content.split(b"\n"), start=1) if line.startswith(_CONFLICT_MARK)]


async def _last_branch_commit(git: Git, ours: str, theirs: str, path: bytes) -> str | None:
    """Returns the branch's last commit that touched the file and is not in the session, as display text."""
    out = await git.run(
        *("log", "-1", "--no-show-signature", "--format=%h %s (%an)", ours, f"^{theirs}", "--"),
        path.decode("utf-8", "surrogateescape"),
    )
    text = out.decode("utf-8", "replace").strip()
    return "".join(char if char.isprintable() else "?" for char in text)[:200] or None
