"""Removes a directory that an agent filled: as deep as it likes, with rights that it took from itself.

By `rm` and `chmod`, which follow no link on their way down and do not mind ten thousand levels; Python's own gives up
at its recursion limit.
"""

import subprocess
from pathlib import Path


def remove(directory: Path) -> bool:
    """False if something is left. Nothing there is nothing left."""
    if _rm(directory):
        return True
    subprocess.run(["chmod", "-R", "u+rwx", "--", directory], stderr=subprocess.DEVNULL, check=False)
    return _rm(directory)


def _rm(directory: Path) -> bool:
    argv = ["rm", "-rf", "--one-file-system", "--", str(directory)]
    return subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode == 0
