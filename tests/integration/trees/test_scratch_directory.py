"""A scratch directory belongs to one process while in use, and is removed once that process is dead."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from footplate.trees.scratch_directory import scratch_directory

pytestmark = pytest.mark.timing

_HOLD = """
import sys
from pathlib import Path
from footplate.trees.scratch_directory import scratch
with scratch(Path(sys.argv[1])) as place:
    print(place.name, flush=True)
    sys.stdin.read()
"""


@contextmanager
def other_process(git_dir: Path) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """Starts a process with a scratch directory of its own, until it is killed or asked to end."""
    argv = [sys.executable, "-c", _HOLD, str(git_dir)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, git_dir / process.stdout.readline().strip()


def test_a_scratch_directory_is_removed_only_after_its_process_was_killed(tmp_path: Path) -> None:
    with other_process(tmp_path) as (process, theirs):
        assert theirs.is_dir()
        with scratch_directory(tmp_path) as mine, scratch_directory(tmp_path) as second:
            assert len({theirs, mine, second}) == 3
            assert all(directory.is_dir() for directory in (theirs, mine, second))
        process.kill()
        process.wait()
        assert theirs.is_dir()
        with scratch_directory(tmp_path) as mine:
            assert [*tmp_path.iterdir()] == [mine]
    assert [*tmp_path.iterdir()] == []


def test_a_directory_of_a_process_in_another_container_is_removed(tmp_path: Path) -> None:
    (tmp_path / "work-1-left").mkdir()  # a process with that number exists here, but it is another one
    with scratch_directory(tmp_path) as mine:
        assert [*tmp_path.iterdir()] == [mine]
