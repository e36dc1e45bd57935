"""Room for one piece of work in a host's git directory, which no agent can reach."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PREFIX: Final = "work-"


@contextmanager
def scratch(git_dir: Path) -> Iterator[Path]:
    """What killed ones left goes first. Not what a worker has that was stopped and lives: it may go on at any moment,
    and so each has a directory of its own.
    """
    for left in git_dir.glob(f"{_PREFIX}*"):
        if not Path("/proc", left.name.split("-")[1]).exists():
            shutil.rmtree(left, ignore_errors=True)
    place = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=git_dir))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
