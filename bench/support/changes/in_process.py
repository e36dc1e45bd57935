"""Opens a worker's session trees in this process, to measure only their own time."""

import os
from pathlib import Path
from typing import Final

from footplate.domain.addresses import Reach
from footplate.domain.running import TreeGround
from footplate.store.objects import Objects
from footplate.trees.keeping import Keeper
from footplate.trees.mirrors import Mirrors
from footplate.trees.sessions import SessionTrees

ORGANISATION: Final = "default"
_SECONDS: Final = 600
_AGENT: Final = (65_520, 65_520)
"""The owner of the files if the worker is root, as in a sandbox."""


def open_trees(data: Path, *, projects: Path) -> SessionTrees:
    mirrors = Mirrors(data, root=str(projects), address_policy=Reach(), seconds=_SECONDS)
    return SessionTrees(data, mirrors, Keeper(Objects.open(None, data)), seconds=_SECONDS)


def ground_of(tree: Path) -> TreeGround:
    return TreeGround(
        tree=tree,
        seen=str(tree),
        beside=tree.with_name(f"{tree.name}.state"),
        beside_seen="",
        objects_seen=None,
        user=_AGENT if os.geteuid() == 0 else (os.geteuid(), os.getegid()),
    )
