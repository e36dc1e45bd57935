"""Formats the input and parses the output of git's plumbing commands, such as `ls-files -z` and `update-index`."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from footplate.trees.git import Git

_NULL_ID: Final = "0" * 40


async def list_ignored(git: Git, paths: Sequence[bytes], *, seconds: float) -> list[bytes]:
    """Returns the paths that `.gitignore` files of the working tree ignore, whether or not they exist or are tracked. A
    directory ends with a slash. No path may lead through a link.
    """
    given = b"".join(path + b"\0" for path in paths if not path.startswith(b":"))
    if not given:
        return []
    # git refuses literal pathspecs here, and matches the paths literally in any case.
    plain = replace(git, variables={**git.variables, "GIT_LITERAL_PATHSPECS": "0"})
    _, listed = await plain.run_with_exit_code(
        "check-ignore", "--no-index", "-z", "--stdin", stdin=given, seconds=seconds
    )
    return split_nul_separated(listed)


def split_nul_separated(output: bytes) -> list[bytes]:
    """Splits output that was printed with `-z`."""
    return output.split(b"\0")[:-1]


def format_index_entry(mode: str, blob: str, path: bytes) -> bytes:
    return f"{mode} {blob}\t".encode() + path


def format_index_removal(path: bytes) -> bytes:
    return format_index_entry("0", _NULL_ID, path)


async def update_index(git: Git, lines: Iterable[bytes]) -> None:
    """Writes entries to the index. A file replaces a directory of the same name, and the other way round."""
    await git.run(
        "update-index", "-z", "--add", "--replace", "--index-info", stdin=b"".join(line + b"\0" for line in lines)
    )


async def write_tree(git: Git) -> str:
    return (await git.run("write-tree")).decode().strip()


async def store_blobs(git: Git, files: Sequence[Path]) -> list[str]:
    """Stores host files as blobs, byte for byte, and returns their ids."""
    if not files:
        return []
    paths = "".join(f"{file}\n" for file in files).encode()
    return (await git.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=paths)).decode().split()


async def find_subtree(git: Git, tree: str | None, name: str) -> str | None:
    """Returns the id of a tree in another tree. None: there is none."""
    lines: list[str] = [] if tree is None else (await git.run("ls-tree", "-d", tree, name)).decode().splitlines()
    return lines[0].split()[2] if lines else None
