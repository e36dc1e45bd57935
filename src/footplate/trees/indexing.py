"""Lines of git's plumbing: what its listings print, and what its index is told."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from footplate.trees.git import Git

_NOTHING: Final = "0" * 40


def split(listed: bytes) -> list[bytes]:
    """What was printed with `-z`."""
    return listed.split(b"\0")[:-1]


def entry(mode: str, blob: str, path: bytes) -> bytes:
    return f"{mode} {blob}\t".encode() + path


def removal(path: bytes) -> bytes:
    return entry("0", _NOTHING, path)


async def update(git: Git, lines: Iterable[bytes]) -> None:
    """A file that takes a directory's place replaces it, and the other way round."""
    await git.run(
        "update-index", "-z", "--add", "--replace", "--index-info", stdin=b"".join(line + b"\0" for line in lines)
    )


async def write_tree(git: Git) -> str:
    return (await git.run("write-tree")).decode().strip()


async def store(git: Git, files: Sequence[Path]) -> list[str]:
    """Files of ours as blobs, byte for byte."""
    if not files:
        return []
    listed = "".join(f"{file}\n" for file in files).encode()
    return (await git.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=listed)).decode().split()
