"""Computes how the files of a parent session change when the files of a child are added to them.

Only git objects in the host's git directory of the parent's tree are used. The result is a patch, which is applied
inside the environment with the rights of the agent.
"""

from pathlib import Path
from typing import Final

from footplate.domain.errors import Permanent
from footplate.domain.files.delivery import MergeConflict
from footplate.domain.files.snapshots import EMPTY_TREE, StoredSnapshot, TreeMerge
from footplate.trees.delivery.merge_commits import create_commit, merge_trees
from footplate.trees.git import Git

_MAX_PATCH_BYTES: Final = 64 << 20
_MESSAGE: Final = "Files of a session"


async def compute_merge(
    git_dir: Path, ours: StoredSnapshot | None, base: StoredSnapshot | None, theirs: StoredSnapshot, *, replaces: bool
) -> TreeMerge:
    """Merges the changes from `base` to `theirs` into `ours`. `replaces`: the result has the files of `theirs`."""
    git = Git(git_dir=git_dir)
    old, new = EMPTY_TREE if ours is None else ours.snapshot.tree, theirs.snapshot.tree
    start = theirs.base_tree if base is None else base.snapshot.tree
    if not replaces:
        if new == start:
            return TreeMerge()
        first = await create_commit(git, start, [], _MESSAGE, 0)
        our_commit = await create_commit(git, old, [first], _MESSAGE, 1)
        their_commit = await create_commit(git, new, [first], _MESSAGE, 2)
        try:
            new = await merge_trees(git, our_commit, their_commit, "parent")
        except MergeConflict as error:
            return TreeMerge(conflicts=error.summaries)
    return TreeMerge(patch=await _build_patch(git, old, new)) if new != old else TreeMerge()


async def _build_patch(git: Git, old: str, new: str) -> bytes:
    patch = bytearray()
    options = ("-p", "--binary", "--full-index", "--no-renames", "--no-textconv", "--no-ext-diff")
    async with git.stream_output("diff-tree", "-r", *options, old, new) as chunks:
        async for chunk in chunks:
            patch += chunk
            if len(patch) > _MAX_PATCH_BYTES:
                raise Permanent(
                    f"The changes have more than {_MAX_PATCH_BYTES} bytes.",
                    help_text="Merge the session into a branch with `footplate merge`.",
                )
    return bytes(patch)
