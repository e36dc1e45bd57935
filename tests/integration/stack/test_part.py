"""The life cycle of a service, with a small program instead of a server."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from footplate.stack import ServiceFailed, orphan_processes
from footplate.stack.services.service import Service

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


class Sleeper(Service):
    title = "Sleeper"
    start_timeout = 5.0
    stop_timeout = 0.5

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

    async def is_ready(self) -> bool:
        return b"up" in self.log.read_bytes()


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_service_starts_and_stops(tmp_path: Path) -> None:
    part = Sleeper(tmp_path, script="echo up; exec sleep 300")
    await part.start()
    pid = part.pid
    assert pid is not None
    await part.stop()
    assert part.pid is None
    assert not _is_alive(pid)


async def test_a_service_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    part = Sleeper(tmp_path, script=STUBBORN)
    await part.start()
    pid = part.pid
    assert pid is not None
    await part.stop()
    assert not _is_alive(pid)


async def test_a_failure_while_starting_shows_the_log(tmp_path: Path) -> None:
    part = Sleeper(tmp_path, script="echo the reason >&2; exit 3")
    with pytest.raises(ServiceFailed, match=r"(?s)exit code 3.*the reason"):
        await part.start()
    assert part.pid is None


async def test_a_service_that_never_responds_fails_to_start(tmp_path: Path) -> None:
    part = Sleeper(tmp_path, script="exec sleep 300")
    part.start_timeout = 0.3
    with pytest.raises(ServiceFailed, match="did not respond"):
        await part.start()
    assert not orphan_processes.find_processes(Path("/bin/sleep"), tmp_path)


async def test_a_service_inherits_no_environment_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_MINE", "leaked")
    part = Sleeper(tmp_path, script="env; echo up; exec sleep 300")
    await part.start()
    await part.stop()
    assert "leaked" not in part.log.read_text()


async def test_orphans_of_an_earlier_launcher_are_killed_at_start(tmp_path: Path) -> None:
    command = ["/bin/bash", "-c", STUBBORN]
    orphan = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE)  # noqa: ASYNC220 - an orphan, not awaited
    assert orphan.stdout is not None
    try:
        assert orphan.stdout.readline() == b"up\n"  # from here on it ignores SIGTERM
        part = Sleeper(tmp_path, script="echo up; exec sleep 300")
        reap = asyncio.create_task(asyncio.to_thread(orphan.wait))
        await part.start()
        assert await reap == -signal.SIGKILL
        await part.stop()
    finally:
        orphan.kill()
        orphan.stdout.close()


async def test_a_service_dies_with_its_killed_launcher(tmp_path: Path) -> None:
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

    assert await orphan_processes.wait_until(gone, 30)
