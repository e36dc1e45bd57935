"""Measures snapshots and diffs alternately with the same work in plain git, on the same machine."""

import asyncio
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bench.prove.figure import require
from bench.support.changes.repositories import PER_DIRECTORY, fill, git, program, space, timed
from footplate.trees import diffs, snapshots
from footplate.trees.git import Git, write_attributes


@dataclass(slots=True)
class Measured:
    snapshot: list[float] = field(default_factory=list)
    bare_snapshot: list[float] = field(default_factory=list)
    nothing: list[float] = field(default_factory=list)
    diff: list[float] = field(default_factory=list)
    bare_diff: list[float] = field(default_factory=list)


async def measure(files: int, rounds: int) -> Measured:
    with space() as place:
        ours, bare, host = place / "ours", place / "bare", place / "host.git"
        await asyncio.to_thread(fill, ours, files)
        await asyncio.to_thread(shutil.copytree, ours, bare)
        for tree in (ours, bare):
            git(tree, "update-index", "-q", "--refresh", accept=(0, 1))
        await _make_host(host, ours)
        await asyncio.sleep(1.1)  # both read files again that are newer than the index
        before = (await snapshots.take_snapshot(host, ours)).snapshot.tree
        found = Measured()
        for number in range(rounds):
            turns = [_ours(host, ours, number, found), _bare(bare, place / "index", number, found)]
            for turn in turns if number % 2 else reversed(turns):
                await turn
            after = await timed(snapshots.take_snapshot(host, ours), found.nothing)
            await _diffs(host, before, after.snapshot.tree, number, found)
            before = after.snapshot.tree
    return found


async def _ours(host: Path, tree: Path, number: int, found: Measured) -> None:
    _change(tree, number)
    await timed(snapshots.take_snapshot(host, tree), found.snapshot)


async def _bare(tree: Path, index: Path, number: int, found: Measured) -> None:
    """Runs git as a script would, in a process started the same way. Copying the index is not measured."""
    _change(tree, number)
    shutil.copy2(tree / ".git" / "index", index)
    await timed(program(tree, "sh", "-c", "git add -A && git write-tree", index=index), found.bare_snapshot)


async def _diffs(host: Path, old: str, new: str, number: int, found: Measured) -> None:
    require(holds=old != new, otherwise="a change made no difference")
    turns = [
        lambda: timed(diffs.summarise_changes(host, old, new), found.diff),
        lambda: timed(
            program(host, "git", "diff-tree", "-r", "-M", "-z", "--raw", "--numstat", old, new), found.bare_diff
        ),
    ]
    for turn in turns if number % 2 else reversed(turns):
        await turn()


def _change(tree: Path, number: int) -> None:
    place = number % 20
    (tree / f"d{place // 10}" / f"p{place}" / f"{place * PER_DIRECTORY}.py").write_text(f"change {number}\n" * 30)


async def _make_host(host: Path, tree: Path) -> None:
    await Git(git_dir=host).run("init", "-q", "--bare", str(host))
    write_attributes(host)
    (host / "objects" / "info" / "alternates").write_text(f"{tree / '.git' / 'objects'}\n")
    shutil.copy2(tree / ".git" / "index", host / "index")


def diff_memory() -> tuple[int, int]:
    """Returns the bytes of a large patch, and the KiB by which a process grew that streamed it, git included."""
    done = subprocess.run([sys.executable, "-m", __name__], check=True, capture_output=True, text=True)
    size, grown = map(int, done.stdout.split())
    return size, grown


async def _stream() -> tuple[int, int]:
    with space() as place:
        tree, host = place / "tree", place / "host.git"
        tree.mkdir()
        await Git(git_dir=host).run("init", "-q", "--bare", str(host))
        write_attributes(host)
        before = (await snapshots.take_snapshot(host, tree)).snapshot.tree
        for number in range(110):
            (tree / f"{number}").write_text("".join(f"{number} line {line:010d}\n" for line in range(5000)))
        after = (await snapshots.take_snapshot(host, tree)).snapshot.tree
        first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = 0
        async with diffs.stream_patch(host, before, after) as pieces:
            async for piece in pieces:
                size += len(piece)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first
        return size, grown + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


if __name__ == "__main__":
    print(*asyncio.run(_stream()))
