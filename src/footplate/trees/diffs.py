"""Compares two trees: a summary as values, and the patch as a stream that is never held in memory as a whole.

git computes both, without attributes, drivers or conversions from the tree. `git apply` turns one tree into the other
byte for byte: renames, binary files, modes, links, names of any bytes.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Final

from footplate.domain.errors import InvalidRequest
from footplate.domain.snapshots import ChangeStatus, FileChange
from footplate.trees.git import Git
from footplate.trees.snapshots import CONFIGURATION

MOST_LISTED: Final = 32 << 20
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


async def summary(git_dir: Path, old: str, new: str) -> list[FileChange]:
    """Returns one entry per changed file, ordered by name."""
    if old == new:
        return []
    listed = bytearray()
    async with _git(git_dir).stream_output(*_COMPARE, "-z", "--raw", "--numstat", old, new) as pieces:
        async for piece in pieces:
            listed += piece
            if len(listed) > MOST_LISTED:
                raise InvalidRequest(
                    "format: too many changed files for a summary",
                    field="format",
                    help_text="Request the patch instead (`format=patch`), or the changes of a single turn.",
                )
    return await asyncio.to_thread(parse, bytes(listed))  # takes a second for 100,000 files


@contextlib.asynccontextmanager
async def patch(git_dir: Path, old: str, new: str) -> AsyncGenerator[AsyncIterator[bytes], None]:
    """Streams a patch for `git apply`. Leaving the context early kills git.

    A renamed link is shown as a deletion and an addition. From a rename alone, `git apply` cannot know that the file is
    a link, and then refuses files below its old path.
    """
    async with _git(git_dir).stream_output(*_COMPARE, "--raw", *_PATCH, old, new) as pieces:
        began = await _past_listing(pieces)
        if began is not None:
            yield readable(_from(began, pieces))
            return
    async with _git(git_dir).stream_output(*_COMPARE, "--no-renames", *_PATCH, old, new) as pieces:
        yield readable(pieces)


async def _past_listing(pieces: AsyncIterator[bytes]) -> bytes | None:
    """Skips the `--raw` lines. Returns the part of the patch that was already read, or None if a link was renamed."""
    begun = b""
    async for piece in pieces:
        *lines, begun = (begun + piece).split(b"\n")
        for number, line in enumerate(lines):
            if not line.startswith(b":"):
                return b"\n".join([*lines[number + 1 :], begun])
            modes, _, _ = line.partition(b"\t")
            if modes.startswith(_LINK) and modes.rpartition(b" ")[2].startswith(b"R"):
                return None
    return begun


async def _from(began: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if began:
        yield began
    async for piece in pieces:
        yield piece


async def readable(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Quotes names where `git apply` requires it. No line of a file starts like a header."""
    held = b""
    within = False
    """Whether the current line started in an earlier piece and is not a header."""
    async for piece in pieces:
        data = held + piece
        rest, end, lines = data.partition(b"\n") if within else (b"", b"", data)
        within = within and not end
        whole, newline, held = lines.rpartition(b"\n")
        ready = rest + end + _make_readable(whole) + newline
        if held and not (held.startswith(_HEADER) or _HEADER.startswith(held)):
            within, ready, held = True, ready + held, b""
        if ready:
            yield ready
    if held:
        yield held


def _make_readable(lines: bytes) -> bytes:
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


def parse(listed: bytes) -> list[FileChange]:
    """Parses the output: lines of `--raw`, then as many of `--numstat`, for the same files in the same order."""
    fields = listed.split(b"\0")[:-1]
    changes: list[tuple[ChangeStatus, bytes | None, bytes]] = []
    place = 0
    while place < len(fields) and fields[place].startswith(b":"):
        status = _STATUS[fields[place].rsplit(b" ", 1)[1][:1]]
        if status == "renamed":
            changes.append((status, fields[place + 1], fields[place + 2]))
            place += 3
        else:
            changes.append((status, None, fields[place + 1]))
            place += 2
    found = []
    for status, old_path, path in changes:
        added, deleted, _ = fields[place].split(b"\t", 2)
        place += 1 if old_path is None else 3
        found.append(
            FileChange(path=path, old_path=old_path, status=status, added=_count(added), deleted=_count(deleted))
        )
    return found


def _count(text: bytes) -> int | None:
    return None if text == b"-" else int(text)


def _git(git_dir: Path) -> Git:
    """Returns git without a work tree, so that no attributes are read."""
    return Git(git_dir=git_dir, configuration={**CONFIGURATION, "core.bare": "true"})
