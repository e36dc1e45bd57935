"""Room for one piece of work in a host's git directory, which no agent can reach."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from footplate.trees.locks import lock_directory

_PREFIX: Final = "work-"


@contextmanager
def scratch(git_dir: Path) -> Iterator[Path]:
    """What killed ones left goes first. Not what a worker has that was stopped and lives: it may go on at any moment,
    and so each has a directory of its own, and a lock on it that ends with the process. A process's number would not
    do: workers in several containers may share the disk, and each counts its own.
    """
    for left in git_dir.glob(f"{_PREFIX}*"):
        if (nobodys := lock_directory(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(nobodys)
    place, mine = _taken(git_dir)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(mine)


def _taken(git_dir: Path) -> tuple[Path, int]:
    """One that is new may be taken for left before it is locked: then there has to be another."""
    while True:
        place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=git_dir))
        mine = lock_directory(place)
        if mine is not None and place.exists():
            return place, mine
        if mine is not None:
            os.close(mine)
