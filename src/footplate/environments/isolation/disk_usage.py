"""Measures the disk usage of a directory safely, even if a hostile agent changes the directory at the same time."""

import os
from contextlib import suppress
from typing import Final

TOO_DEEP: Final = 1 << 62
"""Reported for a tree that is nested too deeply to be measured."""
MIN_FILE_BYTES: Final = 4096
"""The minimum size of a file: even an empty file uses an inode, and a disk can run out of inodes."""
_MAX_DEPTH: Final = 128


def measure_usage(directory: str) -> int:
    """Returns the allocated bytes: each file once, at least one block each, without links' targets and other file
    systems.
    """
    try:
        top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    counted_inodes: set[int] = set()
    return _measure_directory(top, os.fstat(top).st_dev, counted_inodes, 0)


def _measure_directory(directory: int, device: int, counted_inodes: set[int], depth: int) -> int:
    """Closes the descriptor that it is given. Uses only descriptors, so a directory that is swapped for a link leads
    nowhere.
    """
    total = 0
    below = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_dev != device:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.name)
                    elif status.st_nlink > 1:
                        if status.st_ino in counted_inodes:
                            continue
                        counted_inodes.add(status.st_ino)
                    total += max(status.st_blocks * 512, MIN_FILE_BYTES)
        if below and depth == _MAX_DEPTH:
            return TOO_DEEP
        for name in below:
            with suppress(OSError):
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                total += _measure_directory(os.open(name, flags, dir_fd=directory), device, counted_inodes, depth + 1)
    finally:
        os.close(directory)
    return total
