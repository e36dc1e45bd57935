"""Opens a worker's session trees in this process, to measure only their own time."""

import os
from pathlib import Path
from typing import Final

from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.ports.engine import CheckoutTarget
from footplate.store.object_store import Objects
from footplate.trees.projects.mirrors import Mirrors
from footplate.trees.session_trees import SessionTrees
from footplate.trees.snapshots.upload import SnapshotUploader

ORGANISATION: Final = "default"
_SECONDS: Final = 600
_AGENT: Final = (65_520, 65_520)
"""The owner of the files if the worker is root, as in a sandbox."""


def open_trees(data: Path, *, projects: Path) -> SessionTrees:
    mirrors = Mirrors(data, root=str(projects), address_policy=AddressPolicy(), seconds=_SECONDS)
    return SessionTrees(data, mirrors, SnapshotUploader(Objects.open(None, data)), seconds=_SECONDS)


def make_checkout_target(tree: Path) -> CheckoutTarget:
    return CheckoutTarget(
        tree=tree,
        inside_path=str(tree),
        additional_directory=tree.with_name(f"{tree.name}.state"),
        additional_inside_path="",
        objects_inside_path=None,
        owner=_AGENT if os.geteuid() == 0 else (os.geteuid(), os.getegid()),
    )
