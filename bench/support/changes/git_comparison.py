"""Measures snapshots and diffs alternately with the same work in plain git, on the same machine."""

import asyncio
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bench.prove.figure import require
from bench.support.changes.large_repositories import (
    PER_DIRECTORY,
    create_repository,
    measure_time,
    open_scratch_directory,
    run_git,
    run_program,
)
from footplate.trees.diffs import tree_diff
from footplate.trees.git import Git, write_attributes
from footplate.trees.snapshots import full_snapshot


@dataclass(slots=True)
class GitComparison:
    snapshot: list[float] = field(default_factory=list)
    bare_snapshot: list[float] = field(default_factory=list)
    nothing: list[float] = field(default_factory=list)
    diff: list[float] = field(default_factory=list)
    bare_diff: list[float] = field(default_factory=list)


async def compare_with_git(files: int, rounds: int) -> GitComparison:
    with open_scratch_directory() as scratch_dir:
        ours, bare, host = scratch_dir / "ours", scratch_dir / "bare", scratch_dir / "host.git"
        await asyncio.to_thread(create_repository, ours, files)
        await asyncio.to_thread(shutil.copytree, ours, bare)
        for tree in (ours, bare):
            run_git(tree, "update-index", "-q", "--refresh", accept=(0, 1))
        await _make_host(host, ours)
        await asyncio.sleep(1.1)  # both read files again that are newer than the index
        before = (await full_snapshot.take_snapshot(host, ours)).snapshot.tree
        found = GitComparison()
        for number in range(rounds):
            turns = [
                _measure_snapshot(host, ours, number, found),
                _measure_git_snapshot(bare, scratch_dir / "index", number, found),
            ]
            for turn in turns if number % 2 else reversed(turns):
                await turn
            after = await measure_time(full_snapshot.take_snapshot(host, ours), found.nothing)
            await _measure_diffs(host, before, after.snapshot.tree, number, found)
            before = after.snapshot.tree
    return found


async def _measure_snapshot(host: Path, tree: Path, number: int, found: GitComparison) -> None:
    _change(tree, number)
    await measure_time(full_snapshot.take_snapshot(host, tree), found.snapshot)


async def _measure_git_snapshot(tree: Path, index: Path, number: int, found: GitComparison) -> None:
    """Runs git as a script would, in a process started the same way. Copying the index is not measured."""
    _change(tree, number)
    shutil.copy2(tree / ".git" / "index", index)
    await measure_time(run_program(tree, "sh", "-c", "git add -A && git write-tree", index=index), found.bare_snapshot)


async def _measure_diffs(host: Path, old: str, new: str, number: int, found: GitComparison) -> None:
    require(holds=old != new, otherwise="a change made no difference")
    turns = [
        lambda: measure_time(tree_diff.summarise_changes(host, old, new), found.diff),
        lambda: measure_time(
            run_program(host, "git", "diff-tree", "-r", "-M", "-z", "--raw", "--numstat", old, new), found.bare_diff
        ),
    ]
    for turn in turns if number % 2 else reversed(turns):
        await turn()


def _change(tree: Path, number: int) -> None:
    number_of_file = number % 20
    (tree / f"d{number_of_file // 10}" / f"p{number_of_file}" / f"{number_of_file * PER_DIRECTORY}.py").write_text(
        f"change {number}\n" * 30
    )


async def _make_host(host: Path, tree: Path) -> None:
    await Git(git_dir=host).run("init", "-q", "--bare", str(host))
    write_attributes(host)
    (host / "objects" / "info" / "alternates").write_text(f"{tree / '.git' / 'objects'}\n")
    shutil.copy2(tree / ".git" / "index", host / "index")


def measure_diff_memory() -> tuple[int, int]:
    """Returns the bytes of a large patch, and the KiB by which a process grew that streamed it, git included."""
    done = subprocess.run([sys.executable, "-m", __name__], check=True, capture_output=True, text=True)
    size, grown = map(int, done.stdout.split())
    return size, grown


async def _stream_patch() -> tuple[int, int]:
    with open_scratch_directory() as scratch_dir:
        tree, host = scratch_dir / "tree", scratch_dir / "host.git"
        tree.mkdir()
        await Git(git_dir=host).run("init", "-q", "--bare", str(host))
        write_attributes(host)
        before = (await full_snapshot.take_snapshot(host, tree)).snapshot.tree
        for number in range(110):
            (tree / f"{number}").write_text("".join(f"{number} line {line:010d}\n" for line in range(5000)))
        after = (await full_snapshot.take_snapshot(host, tree)).snapshot.tree
        first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = 0
        async with tree_diff.stream_patch(host, before, after) as pieces:
            async for piece in pieces:
                size += len(piece)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first
        return size, grown + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


if __name__ == "__main__":
    print(*asyncio.run(_stream_patch()))
