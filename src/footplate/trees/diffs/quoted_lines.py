"""Quotes lines of a file from a diff, as a patch shows them: changed lines, and the unchanged ones around them.

Only the patch of the one file is computed, and only the requested lines are held in memory.
"""

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from footplate.domain.errors import InvalidRequest
from footplate.domain.files.snapshots import FileChange, display_path
from footplate.domain.sessions.comments import MAX_QUOTED_CHARACTERS, LineRange
from footplate.trees.diffs import tree_diff

_HUNK: Final = re.compile(rb"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_MARKS: Final = {"old": b" -", "new": b" +"}


class LinesNotInDiff(InvalidRequest):
    def __init__(self, message: str, field: str) -> None:
        super().__init__(
            message, field=field, help_text="Choose lines that the patch of the diff shows: `footplate diff`."
        )


def find_file(changes: "list[FileChange]", path: str) -> FileChange:
    """Returns the change of the file with this path, which may be the one before it was renamed."""
    for change in changes:
        if path in {display_path(change.path), display_path(change.old_path or change.path)}:
            if change.binary:
                raise LinesNotInDiff(f"path: {path!r} is a binary file, which has no lines", "path")
            return change
    raise LinesNotInDiff(f"path: {path!r} did not change in this diff", "path")


async def quote_lines(git_dir: Path, old: str, new: str, lines: LineRange) -> str:
    """Returns the text of the lines. Raises `LinesNotInDiff` if a patch does not show all of them in one piece."""
    change = find_file(await tree_diff.summarise_changes(git_dir, old, new), lines.path)
    names = [os.fsdecode(name) for name in dict.fromkeys([change.old_path or change.path, change.path])]
    # A path also selects the files below a directory that took the file's place, or had it. They are on the other side.
    found: dict[int, bytes] = {}
    if change.status != ("deleted" if lines.side == "new" else "added"):
        async with tree_diff.stream_file_patch(git_dir, old, new, *names) as pieces:
            found = await _collect_lines(pieces, lines)
    quoted = b"\n".join(found.values()).decode("utf-8", "replace")
    if len(quoted) > MAX_QUOTED_CHARACTERS:
        raise LinesNotInDiff(f"end_line: the lines have more than {MAX_QUOTED_CHARACTERS} characters", "end_line")
    if sorted(found) != [*range(lines.start, lines.end + 1)]:
        side = "before" if lines.side == "old" else "after"
        raise LinesNotInDiff(
            f"start_line: the diff does not show {lines.label.removesuffix(' before the change')} of {lines.path!r} "
            f"as it was {side} the change",
            "start_line",
        )
    return quoted


async def _collect_lines(pieces: AsyncIterator[bytes], lines: LineRange) -> dict[int, bytes]:
    """Returns the lines of the range by their numbers, up to the first gap or the size limit."""
    found: dict[int, bytes] = {}
    async for number, text in _read_side(pieces, lines):
        if found and number != max(found) + 1:
            break
        found[number] = text
        if number == lines.end or sum(map(len, found.values())) > MAX_QUOTED_CHARACTERS:
            break
    return found


async def _read_side(pieces: AsyncIterator[bytes], lines: LineRange) -> AsyncIterator[tuple[int, bytes]]:
    """Yields the numbers and texts of the lines of one side that are in the range. A long line may be cut."""
    marks, numbers, in_hunk = _MARKS[lines.side], {"old": 0, "new": 0}, False
    async for line in _split_lines(pieces):
        if (header := _HUNK.match(line)) is not None:
            numbers = {"old": int(header[1]), "new": int(header[2])}
            in_hunk = True
        elif not in_hunk or line[:1] not in {b" ", b"-", b"+", b"\\"}:
            in_hunk = False
        elif line[:1] != b"\\":
            mark = line[:1]
            if mark in {bytes([each]) for each in marks} and lines.start <= numbers[lines.side] <= lines.end:
                yield numbers[lines.side], line[1:]
            numbers["old"] += mark != b"+"
            numbers["new"] += mark != b"-"


async def _split_lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yields lines without their end. Of a very long line, only the beginning is held."""
    rest, size = b"", 4 * MAX_QUOTED_CHARACTERS
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line[:size]
        rest = rest[: size + 1]
    if rest:
        yield rest[:size]
