"""Makes commits of a session's files, and one of two that go apart: with git's objects alone, and no file of a tree.

Whatever is made here is the same if it is made again, but for the commit that joins two; and that one is only made when
the branch does not have the session's yet.
"""

import re
import time
from dataclasses import dataclass, replace
from typing import Final

from footplate.domain.errors import Conflict
from footplate.domain.files import UPLOADS
from footplate.domain.leaving import Departure, FileConflict, LeftStatus, MergeConflict, NothingToLeave, Step
from footplate.domain.snapshots import shown
from footplate.trees.git import Git, GitFailed
from footplate.trees.indexing import split
from footplate.trees.mirrors import tree_of

_NAME: Final = "Footplate agent"
_EMAIL: Final = "agent@footplate.invalid"
_LONGEST: Final = 1 << 20
_MOST_READ: Final = 50
_MARK: Final = b"<<<<<<< "
_MERGE_MEMORY: Final = 4 << 30
_MERGE_SECONDS: Final = 120.0
"""A few objects can stand for any number of files, which git would list one by one."""
_REASONS: Final = {
    "contents": "both changed the same lines",
    "binary": "both changed it, and it is no text",
    "content": "both changed the same lines",
    "add/add": "both added it, each in another way",
    "modify/delete": "one changed it and the other deleted it",
    "rename/delete": "one renamed it and the other deleted it",
    "rename/rename": "both renamed it, each to another name",
    "rename/add": "one renamed a file to this name, and the other added one",
    "file/directory": "it is a file in one and a directory in the other",
    "distinct types": "it is a file in one and a link or a submodule in the other",
    "directory rename split": "one renamed its directory to several, and the other added to it",
    "submodule": "both changed which commit the submodule is at",
}
_DELETED: Final = {"modify/delete": "changed", "rename/delete": "renamed"}
"""What is done to a file that the other side deleted."""
_BRANCH_HAS: Final = b"2"
_SESSION_HAS: Final = b"3"


@dataclass(frozen=True, slots=True)
class Planned:
    commit: str
    status: LeftStatus


async def session_commit(git: Git, departure: Departure) -> str:
    """One for each time that the files leave, on top of what the agent itself committed.

    Raises `NothingToLeave` where that is what the session began with.
    """
    base = departure.project.base_commit
    last, head = base, base
    for step in departure.steps:
        last = await _after(git, last, head, step, base)
        head = step.snapshot.head or base
    if last is None or last == base:
        raise NothingToLeave(
            f"Session {departure.session_id} has changed nothing since it began.", help_text="There is nothing to take."
        )
    return last


async def _after(git: Git, last: str | None, head: str | None, step: Step, base: str | None) -> str | None:
    """`last` is the commit before, and `head` where the agent was then. What left once stays in the history."""
    tree, now = step.snapshot.tree, step.snapshot.head or base
    parents = [last] if last is not None else []
    if now is not None and now not in {head, last}:
        if last is None or last == base or await _has(git, now, last):
            parents = [now]
        elif not await _has(git, last, now):
            parents.append(now)
    if await _listed(git, tree, UPLOADS) and not any([await _listed(git, parent, UPLOADS) for parent in parents]):
        tree = await _without_uploads(git, tree)
    if len(parents) == 1 and await tree_of(git, parents[0]) == tree:
        return parents[0]
    return await commit(git, tree, parents, step.message, int(step.taken_at.timestamp()))


async def _without_uploads(git: Git, tree: str) -> str:
    """What a session was given to read is nobody's work: it leaves only where the agent itself committed it."""
    above, _, name = UPLOADS.rpartition("/")
    rest = await _listed(git, f"{tree}:{above}", but=name)
    whole = await _listed(git, tree, but=above)
    if rest:
        whole.append(f"040000 tree {await _make_tree(git, rest)}\t{above}".encode())
    return await _make_tree(git, whole)


async def _listed(git: Git, tree: str, *paths: str, but: str = "") -> list[bytes]:
    listed = split(await git.run("ls-tree", "-z", tree, *paths))
    return [line for line in listed if line.partition(b"\t")[2] != but.encode()]


async def _make_tree(git: Git, lines: list[bytes]) -> str:
    return (await git.run("mktree", "-z", stdin=b"".join(line + b"\0" for line in lines))).decode().strip()


async def plan(git: Git, departure: Departure, target: str | None, branch: str) -> Planned:
    """What the branch is to be at, where it is at `target` now. Raises `MergeConflict`."""
    mine = await session_commit(git, departure)
    if target is not None and await _has(git, target, mine):
        return Planned(target, "unchanged")
    if target is None or await _has(git, mine, target):
        return Planned(mine, "fast_forwarded")
    merged = await _merge(git, target, mine, branch)
    if merged == await tree_of(git, target) and not departure.steps[-1].snapshot.commits:
        return Planned(target, "unchanged")  # it has all of it, from elsewhere
    message = f"Merge session {departure.session_id} into {branch}\n\n{departure.steps[-1].message}"
    return Planned(await commit(git, merged, [target, mine], message, int(time.time())), "merged")


async def commit(git: Git, tree: str, parents: list[str], message: str, at: int) -> str:
    who = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", _NAME), ("EMAIL", _EMAIL), ("DATE", f"@{at} +0000"))
    }
    words = [word for parent in parents for word in ("-p", parent)]
    made = await replace(git, variables={**git.variables, **who}).run(
        "commit-tree", tree, *words, "-F", "-", stdin=message.encode("utf-8", "replace")
    )
    return made.decode().strip()


async def _has(git: Git, descendant: str, ancestor: str) -> bool:
    code, _ = await git.ask("merge-base", "--is-ancestor", ancestor, descendant)
    return code == 0


async def _merge(git: Git, ours: str, theirs: str, branch: str) -> str:
    try:
        merging = replace(git, memory=_MERGE_MEMORY)
        code, out = await merging.ask(
            "merge-tree", "--write-tree", "-z", "--messages", ours, theirs, seconds=_MERGE_SECONDS
        )
    except GitFailed as error:
        raise Conflict(
            f"The session's work and the branch {branch!r} have no commit in common: {error.said}",
            help_text="Nothing was changed. `footplate push` makes a branch of its own of it.",
        ) from error
    tree, *rest = out.split(b"\0")
    if code == 0:
        return tree.decode()
    raise MergeConflict(branch, await _explained(git, tree.decode(), rest, ours, theirs))


async def _explained(git: Git, tree: str, fields: list[bytes], ours: str, theirs: str) -> list[FileConflict]:
    """After the tree come lines of `ls-files`, an empty field, and messages: how many paths, they, a kind, a text."""
    place = fields.index(b"") + 1
    stages = [line.split(b" ", 2)[2].partition(b"\t") for line in fields[: place - 1]]
    branch_has = {path for stage, _, path in stages if stage == _BRANCH_HAS}
    session_has = {path for stage, _, path in stages if stage == _SESSION_HAS}
    found: dict[bytes, str] = {}
    while place < len(fields) and fields[place].isdigit():
        count = int(fields[place])
        paths, kind = fields[place + 1 : place + 1 + count], fields[place + 1 + count].decode("utf-8", "replace")
        place += count + 3
        if paths and (match := re.match(r"CONFLICT \(([^)]*)\)", kind)):
            found.setdefault(
                paths[0], _reason(match[1], branch=paths[0] in branch_has, session=paths[0] in session_has)
            )
    conflicts = []
    for number, (path, reason) in enumerate(sorted(found.items())):
        if number < _MOST_READ:
            places, last = await _places(git, tree, path), await _last(git, ours, theirs, path)
            conflicts.append(FileConflict(path=shown(path), reason=reason, places=places, theirs=last))
        else:
            conflicts.append(FileConflict(path=shown(path), reason=reason))
    return conflicts


def _reason(kind: str, *, branch: bool, session: bool) -> str:
    """`branch` and `session`: which of them has the file."""
    if kind in _DELETED and branch != session:
        has, lacks = ("branch", "session") if branch else ("session", "branch")
        return f"the {has} {_DELETED[kind]} it and the {lacks} deleted it"
    return _REASONS.get(kind, f"git calls it {kind!r}")


async def _places(git: Git, tree: str, path: bytes) -> list[int]:
    name = f"{tree}:{path.decode('utf-8', 'surrogateescape')}"
    try:
        size = int(await git.run("cat-file", "-s", name))
        content = await git.run("cat-file", "blob", name) if size <= _LONGEST else b""
    except GitFailed:  # it is deleted, or a directory
        return []
    return [number for number, line in enumerate(content.split(b"\n"), start=1) if line.startswith(_MARK)]


async def _last(git: Git, ours: str, theirs: str, path: bytes) -> str | None:
    """As a person finds it: what the branch has and the session does not."""
    out = await git.run(
        *("log", "-1", "--no-show-signature", "--format=%h %s (%an)", ours, f"^{theirs}", "--"),
        path.decode("utf-8", "surrogateescape"),
    )
    text = out.decode("utf-8", "replace").strip()
    return "".join(char if char.isprintable() else "?" for char in text)[:200] or None
