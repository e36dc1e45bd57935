"""Reads the diff between two snapshots of a session's files, as a whole or by the state of the changes in git.

As `git status` does, the states compare the files with the agent's index and the index with its commit, at the end of
the diff. Committed changes are those since the commit at the start of the diff.

The reader uses the session's git directory if that directory is on this host. Otherwise it downloads packs from the
object store, and removes them when the response is complete.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.domain.errors import Conflict, InvalidRequest
from footplate.domain.files.snapshots import (
    CHANGE_STATES,
    COMMITTED_FILES,
    SCRATCH_TREE,
    STAGED_FILES,
    ChangeState,
    DiffSummary,
    FileChange,
    Snapshot,
    StoredSnapshot,
    TreeDiff,
    base_packs_prefix,
    packs_prefix,
)
from footplate.domain.organisations.fair_limiter import OrganisationLimiter
from footplate.domain.sessions.comments import LineRange
from footplate.trees.checkout import host_git_dir_path, init_git_dir, private_dir_path
from footplate.trees.diffs import quoted_lines, tree_diff
from footplate.trees.git import Git
from footplate.trees.git_plumbing import find_subtree
from footplate.trees.scratch_directory import scratch_directory
from footplate.trees.snapshots import packs
from footplate.trees.snapshots.packs import PackStore

_DIRECTORY_NAME: Final = "diffs"
"""Directory name inside the data directory."""
_OPTIONS: Final[Mapping[ChangeState, Sequence[str]]] = {
    "unstaged": ("--no-renames", "--diff-filter=a"),
    "untracked": ("--no-renames", "--diff-filter=A"),
}
"""git does not compare an untracked file with the index, so it is never the new name of another one."""


class ChangeStatesUnknown(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "The session's commits were stored by an earlier version, without what is needed to tell staged, unstaged, "
            "untracked and committed changes apart.",
            help_text="Request the diff without a state, or try again after another turn that changes files.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _StateTrees:
    """The git trees between which changes of each state are found."""

    base: str
    """The files of the agent's commit at the start of the diff."""
    head: str
    index: str
    files: str

    def pair(self, state: ChangeState) -> tuple[str, str]:
        if state == "committed":
            return self.base, self.head
        return (self.head, self.index) if state == "staged" else (self.index, self.files)


class DiffReader:
    def __init__(self, data: Path, store: PackStore, *, max_concurrent: int) -> None:
        """`max_concurrent`: maximum number of diffs that are computed concurrently; others wait."""
        self._data = data.resolve()
        self._store = store
        self._slots = OrganisationLimiter(max_concurrent)

    async def changes(self, diff: TreeDiff) -> DiffSummary:
        if _is_unchanged(diff):
            return DiffSummary((), dict.fromkeys(CHANGE_STATES, ()))
        async with self._slots.acquire_slot(diff.organisation), self._open_all_objects(diff) as git_dir:
            files = await tree_diff.summarise_changes(git_dir, *diff.tree_ids)
            try:
                return DiffSummary(files, await _summarise_states(git_dir, await _find_state_trees(git_dir, diff)))
            except (ChangeStatesUnknown, InvalidRequest):  # or one of them has too many files
                return DiffSummary(files, None)

    @contextlib.asynccontextmanager
    async def patch(
        self, diff: TreeDiff, state: ChangeState | None = None
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """`state`: only the changes in this state."""
        old, new = diff.tree_ids
        if _is_unchanged(diff) if state is not None else old == new:
            yield _empty_stream()
            return
        async with self._slots.acquire_slot(diff.organisation), self._open_all_objects(diff) as git_dir:
            options: Sequence[str] = ()
            if state is not None:
                old, new = (await _find_state_trees(git_dir, diff)).pair(state)
                options = _OPTIONS.get(state, ())
            async with tree_diff.stream_patch(git_dir, old, new, *options) as pieces:
                yield pieces

    async def quote_lines(self, diff: TreeDiff, lines: LineRange) -> str:
        """Returns the text of lines that the diff shows. Raises `InvalidRequest` for others."""
        async with self._slots.acquire_slot(diff.organisation), self._open_all_objects(diff) as git_dir:
            return await quoted_lines.quote_lines(git_dir, *diff.tree_ids, lines)

    def _open_all_objects(self, diff: TreeDiff) -> contextlib.AbstractAsyncContextManager[Path]:
        snapshots = [stored.snapshot for stored in (diff.old, diff.new) if stored is not None]
        bundles = [snapshot.bundles for snapshot in snapshots if snapshot.bundles is not None]
        return self.open_objects(diff, [*dict.fromkeys([*diff.tree_ids, diff.base_tree, *bundles])])

    @contextlib.asynccontextmanager
    async def open_objects(self, diff: TreeDiff, object_ids: Sequence[str]) -> AsyncGenerator[Path, None]:
        """Yields a git directory that has these objects of the session."""
        local_git_dir = host_git_dir_path(
            private_dir_path(self._data, diff.organisation, diff.session_id),
            diff.tree,
            is_additional=diff.is_additional,
        )
        if await packs.has_objects(Git(git_dir=local_git_dir), object_ids):
            yield local_git_dir
            return
        directory = self._data / _DIRECTORY_NAME
        await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)
        with scratch_directory(directory) as git_dir:
            await init_git_dir(git_dir, "main", None)
            for stored in (diff.new, diff.old):  # usually one contains the other
                if stored is not None and not await packs.has_objects(Git(git_dir=git_dir), object_ids):
                    await self._download(git_dir, diff, stored)
            yield git_dir

    async def _download(self, git_dir: Path, diff: TreeDiff, stored: StoredSnapshot) -> None:
        sessions = [diff.session_id, *diff.ancestors]
        prefixes = [packs_prefix(f"{diff.organisation}/{session}", diff.tree) for session in sessions]
        if diff.tree != SCRATCH_TREE:
            prefixes.append(base_packs_prefix(diff.organisation, diff.tree))
        await packs.download_packs(self._store, prefixes, git_dir, stored.number, stored.snapshot)


def _is_unchanged(diff: TreeDiff) -> bool:
    """Whether the session has no changes at the end of the diff, in any state."""
    ends = [diff.old, diff.new]
    return all(stored is None or stored.snapshot == Snapshot(diff.base_tree) for stored in ends)


async def _find_state_trees(git_dir: Path, diff: TreeDiff) -> _StateTrees:
    git = Git(git_dir=git_dir)
    head = await _find_head_tree(git, diff, diff.new)
    index = None if diff.new is None else await find_subtree(git, diff.new.snapshot.bundles, STAGED_FILES)
    base = await _find_head_tree(git, diff, diff.old)
    return _StateTrees(base=base, head=head, index=index or head, files=diff.tree_ids[1])


async def _find_head_tree(git: Git, diff: TreeDiff, stored: StoredSnapshot | None) -> str:
    """Returns the files of the agent's commit at one end of the diff."""
    if stored is None or stored.snapshot.head is None:
        return diff.base_tree
    tree = await find_subtree(git, stored.snapshot.bundles, COMMITTED_FILES)
    if tree is None:
        raise ChangeStatesUnknown
    return tree


async def _summarise_states(git_dir: Path, trees: _StateTrees) -> Mapping[ChangeState, Sequence[FileChange]]:
    not_staged = await tree_diff.summarise_changes(git_dir, trees.index, trees.files, "--no-renames")
    return {
        "committed": await tree_diff.summarise_changes(git_dir, trees.base, trees.head),
        "staged": await tree_diff.summarise_changes(git_dir, trees.head, trees.index),
        "unstaged": [change for change in not_staged if change.status != "added"],
        "untracked": [change for change in not_staged if change.status == "added"],
    }


async def _empty_stream() -> AsyncIterator[bytes]:
    pieces: tuple[bytes, ...] = ()
    for piece in pieces:
        yield piece
