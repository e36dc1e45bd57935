"""Creates large repositories for measurements, and runs plain git as a script would."""

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from bench.prove.figure import require

T = TypeVar("T")

PER_DIRECTORY: Final = 50
_ENVIRONMENT: Final = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    **{f"GIT_{who}_{what}": "bench@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


@contextmanager
def open_scratch_directory() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="footplate-ratios-"))
    try:
        yield made
    finally:
        shutil.rmtree(made)


def create_repository(tree: Path, files: int) -> None:
    """Creates a repository with this number of files in one commit and one pack."""
    for number in range(files):
        directory = tree / f"d{number // (10 * PER_DIRECTORY)}" / f"p{number // PER_DIRECTORY}"
        if number % PER_DIRECTORY == 0:
            directory.mkdir(parents=True)
        (directory / f"{number}.py").write_text(f"file {number}\n" * 30)
    run_git(tree, "init", "-q")
    run_git(tree, "config", "gc.auto", "0")
    run_git(tree, "add", "-A")
    run_git(tree, "commit", "-qm", "all")
    run_git(tree, "repack", "-adq")


def run_git(tree: Path, *argv: str, accept: Sequence[int] = (0,)) -> None:
    done = subprocess.run(["git", *argv], cwd=tree, env=_ENVIRONMENT, check=False, capture_output=True, text=True)
    require(holds=done.returncode in accept, otherwise=done.stderr)


async def run_program(directory: Path, *argv: str, index: Path | None = None) -> None:
    """Runs a program in the same way as the product does. It must succeed and print something."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=directory,
        env={**_ENVIRONMENT, **({} if index is None else {"GIT_INDEX_FILE": str(index)})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    require(holds=process.returncode == 0 and bool(out), otherwise=errors.decode())


async def measure_time(awaited: Awaitable[T], times: list[float]) -> T:
    begun = time.perf_counter()
    result = await awaited
    times.append(time.perf_counter() - begun)
    return result
