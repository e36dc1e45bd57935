"""Compares two git trees: returns a summary of the changes, or streams the patch without holding it in memory.

git computes both, and ignores all attributes, diff drivers and conversions that files in the tree configure. `git
apply` with the patch reproduces the new tree exactly, including renames, binary files, file modes, symbolic links and
unusual names.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Final

from footplate.domain.errors import InvalidRequest
from footplate.domain.files.snapshots import ChangeStatus, FileChange
from footplate.trees.git import Git
from footplate.trees.snapshots.full_snapshot import SNAPSHOT_GIT_CONFIGURATION

MAX_SUMMARY_BYTES: Final = 32 << 20
"""Bytes of git's output for a summary: about 200,000 files."""
_COMPARE: Final = ("diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv", "--full-index", "--no-color")
_PATCH: Final = ("-p", "--binary", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short")
_LINK: Final = b":120000 "
_HEADER: Final = b"diff --git "
_HEADER_LINE: Final = re.compile(rb"^diff --git a/.* /.*$", re.MULTILINE)
_STATUS: Final[dict[bytes, ChangeStatus]] = {
    b"A": "added",
    b"M": "modified",
    b"D": "deleted",
    b"R": "renamed",
    b"T": "type_changed",
}


async def summarise_changes(git_dir: Path, old: str, new: str, *options: str) -> list[FileChange]:
    """Returns one entry per changed file, ordered by name. `options` are those of `git diff-tree`."""
    if old == new:
        return []
    listed = bytearray()
    async with _git(git_dir).stream_output(*_COMPARE, *options, "-z", "--raw", "--numstat", old, new) as pieces:
        async for piece in pieces:
            listed += piece
            if len(listed) > MAX_SUMMARY_BYTES:
                raise InvalidRequest(
                    "format: too many changed files for a summary",
                    field="format",
                    help_text="Request the patch instead (`format=patch`), or the changes of a single turn.",
                )
    return await asyncio.to_thread(parse_changes, bytes(listed))  # takes a second for 100,000 files


@contextlib.asynccontextmanager
async def stream_patch(git_dir: Path, old: str, new: str, *options: str) -> AsyncGenerator[AsyncIterator[bytes], None]:
    """Streams a patch for `git apply`. Leaving the context early kills git. `options` are those of `git diff-tree`.

    A renamed link is shown as a deletion and an addition. From a rename alone, `git apply` cannot know that the file is
    a link, and then refuses files below its old path.
    """
    async with _git(git_dir).stream_output(*_COMPARE, *options, "--raw", *_PATCH, old, new) as pieces:
        first = await _skip_raw_lines(pieces)
        if first is not None:
            yield quote_headers(_prepend(first, pieces))
            return
    async with _git(git_dir).stream_output(*_COMPARE, *options, "--no-renames", *_PATCH, old, new) as pieces:
        yield quote_headers(pieces)


@contextlib.asynccontextmanager
async def stream_file_patch(
    git_dir: Path, old: str, new: str, *paths: str
) -> AsyncGenerator[AsyncIterator[bytes], None]:
    """Streams the patch of one file, which may have been renamed. Leaving the context early kills git."""
    async with _git(git_dir).stream_output(*_COMPARE, *_PATCH, old, new, "--", *paths) as pieces:
        yield pieces


async def _skip_raw_lines(pieces: AsyncIterator[bytes]) -> bytes | None:
    """Skips the `--raw` lines. Returns the part of the patch that was already read, or None if a link was renamed."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for number, line in enumerate(lines):
            if not line.startswith(b":"):
                return b"\n".join([*lines[number + 1 :], rest])
            modes, _, _ = line.partition(b"\t")
            if modes.startswith(_LINK) and modes.rpartition(b" ")[2].startswith(b"R"):
                return None
    return rest


async def _prepend(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for piece in pieces:
        yield piece


async def quote_headers(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Quotes names where `git apply` requires it. No line of a file starts like a header."""
    incomplete_line = b""
    in_long_line = False
    """Whether the current line started in an earlier piece and is not a header."""
    async for piece in pieces:
        data = incomplete_line + piece
        rest, end, lines = data.partition(b"\n") if in_long_line else (b"", b"", data)
        in_long_line = in_long_line and not end
        whole, newline, incomplete_line = lines.rpartition(b"\n")
        ready = rest + end + _quote_header_lines(whole) + newline
        if incomplete_line and not (incomplete_line.startswith(_HEADER) or _HEADER.startswith(incomplete_line)):
            in_long_line, ready, incomplete_line = True, ready + incomplete_line, b""
        if ready:
            yield ready
    if incomplete_line:
        yield incomplete_line


def _quote_header_lines(lines: bytes) -> bytes:
    return _HEADER_LINE.sub(lambda found: _quote_names(found[0]), lines)


def _quote_names(line: bytes) -> bytes:
    """Quotes a path with a directory whose name ends with a space. `git apply` otherwise finds no names in the line.

    Without a rename the line is `a/NAME b/NAME`, so its middle shows where the name ends.
    """
    names = line[len(_HEADER) :]
    middle = len(names) // 2
    name = names[2:middle]
    if names != b"a/" + name + b" b/" + name or b" /" not in name:
        return line
    return _HEADER + b'"a/' + name + b'" "b/' + name + b'"'


def parse_changes(listed: bytes) -> list[FileChange]:
    """Parses the output: lines of `--raw`, then as many of `--numstat`, for the same files in the same order."""
    fields = listed.split(b"\0")[:-1]
    changes: list[tuple[ChangeStatus, bytes | None, bytes]] = []
    index = 0
    while index < len(fields) and fields[index].startswith(b":"):
        status = _STATUS[fields[index].rsplit(b" ", 1)[1][:1]]
        if status == "renamed":
            changes.append((status, fields[index + 1], fields[index + 2]))
            index += 3
        else:
            changes.append((status, None, fields[index + 1]))
            index += 2
    found = []
    for status, old_path, path in changes:
        added, deleted, _ = fields[index].split(b"\t", 2)
        index += 1 if old_path is None else 3
        found.append(
            FileChange(path=path, old_path=old_path, status=status, added=_count(added), deleted=_count(deleted))
        )
    return found


def _count(text: bytes) -> int | None:
    return None if text == b"-" else int(text)


def _git(git_dir: Path) -> Git:
    """Returns git without a working tree, so that no attributes are read."""
    return Git(git_dir=git_dir, configuration={**SNAPSHOT_GIT_CONFIGURATION, "core.bare": "true"})
