"""The life cycle of a service, with a small program instead of a server."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from footplate.stack import PartFailed, leftovers
from footplate.stack.part import Part

pytestmark = pytest.mark.timing

STUBBORN = "trap '' TERM; echo up; while true; do sleep 0.05; done"
LAUNCH = """
import asyncio, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_part import Sleeper
async def main():
    part = Sleeper(Path(sys.argv[1]), script="echo up; exec sleep 300")
    await part.start()
    print(part.pid, flush=True)
    await asyncio.sleep(300)
asyncio.run(main())
"""


class Sleeper(Part):
    title = "Sleeper"
    start_patience = 5.0
    stop_patience = 0.5

    def __init__(self, directory: Path, *, script: str) -> None:
        super().__init__(directory, log_file=directory / "log")
        self.script = script

    @property
    def address(self) -> str:
        return ""

    @property
    def program(self) -> Path:
        return Path("/bin/bash")

    def arguments(self) -> Sequence[str]:
        return ["-c", self.script]

    async def ready(self) -> bool:
        return b"up" in self.log.read_bytes()


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_starts_and_stops(tmp_path: Path) -> None:
    part = Sleeper(tmp_path, script="echo up; exec sleep 300")
    await part.start()
    pid = part.pid
    assert pid is not None
    await part.stop()
    assert part.pid is None
    assert not _is_alive(pid)


async def test_one_that_ignores_the_polite_signal_is_killed(tmp_path: Path) -> None:
    part = Sleeper(tmp_path, script=STUBBORN)
    await part.start()
    pid = part.pid
    assert pid is not None
    await part.stop()
    assert not _is_alive(pid)


async def test_a_failure_while_starting_shows_the_log(tmp_path: Path) -> None:
    part = Sleeper(tmp_path, script="echo the reason >&2; exit 3")
    with pytest.raises(PartFailed, match=r"(?s)exit code 3.*the reason"):
        await part.start()
    assert part.pid is None


async def test_a_start_that_never_answers_is_given_up(tmp_path: Path) -> None:
    part = Sleeper(tmp_path, script="exec sleep 300")
    part.start_patience = 0.3
    with pytest.raises(PartFailed, match="did not respond"):
        await part.start()
    assert not leftovers.find(Path("/bin/sleep"), tmp_path)


async def test_nothing_of_the_launchers_environment_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_MINE", "leaked")
    part = Sleeper(tmp_path, script="env; echo up; exec sleep 300")
    await part.start()
    await part.stop()
    assert "leaked" not in part.log.read_text()


async def test_what_an_earlier_launcher_left_is_ended_at_start(tmp_path: Path) -> None:
    command = ["/bin/bash", "-c", STUBBORN]
    left = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE)  # noqa: ASYNC220 - an orphan, not awaited
    assert left.stdout is not None
    try:
        assert left.stdout.readline() == b"up\n"  # from here on it ignores SIGTERM
        part = Sleeper(tmp_path, script="echo up; exec sleep 300")
        reap = asyncio.create_task(asyncio.to_thread(left.wait))
        await part.start()
        assert await reap == -signal.SIGKILL
        await part.stop()
    finally:
        left.kill()
        left.stdout.close()


async def test_it_dies_with_a_launcher_that_is_killed(tmp_path: Path) -> None:
    launcher = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", LAUNCH, str(tmp_path), str(Path(__file__).parent)), stdout=asyncio.subprocess.PIPE
    )
    assert launcher.stdout is not None
    pid = int(await launcher.stdout.readline())
    assert _is_alive(pid)
    os.kill(launcher.pid, signal.SIGKILL)
    await launcher.wait()

    async def gone() -> bool:
        return not _is_alive(pid)

    assert await leftovers.wait_until(gone, 30)
