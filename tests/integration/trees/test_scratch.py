"""A scratch directory belongs to one process while in use, and is removed once that process is dead."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from footplate.trees.scratch import scratch

pytestmark = pytest.mark.timing

_HOLD = """
import sys
from pathlib import Path
from footplate.trees.scratch import scratch
with scratch(Path(sys.argv[1])) as place:
    print(place.name, flush=True)
    sys.stdin.read()
"""


@contextmanager
def another(git_dir: Path) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """Starts a process with a scratch directory of its own, until it is killed or asked to end."""
    argv = [sys.executable, "-c", _HOLD, str(git_dir)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, git_dir / process.stdout.readline().strip()


def test_it_stays_while_its_process_lives_and_goes_when_that_was_killed(tmp_path: Path) -> None:
    with another(tmp_path) as (process, theirs):
        assert theirs.is_dir()
        with scratch(tmp_path) as mine, scratch(tmp_path) as second:
            assert len({theirs, mine, second}) == 3
            assert all(place.is_dir() for place in (theirs, mine, second))
        process.kill()
        process.wait()
        assert theirs.is_dir()
        with scratch(tmp_path) as mine:
            assert [*tmp_path.iterdir()] == [mine]
    assert [*tmp_path.iterdir()] == []


def test_what_a_process_of_another_container_left_goes_whatever_its_number(tmp_path: Path) -> None:
    (tmp_path / "work-1-left").mkdir()  # a process with that number exists here, but it is another one
    with scratch(tmp_path) as mine:
        assert [*tmp_path.iterdir()] == [mine]
