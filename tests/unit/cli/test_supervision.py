"""`footplate dev` restarts a service that dies, and gives up when it dies again and again."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from footplate.cli.dev import supervision
from footplate.stack import ServiceFailed

pytestmark = pytest.mark.timing


class DyingService:
    """Ends immediately, as often as it is started, until it has no more exit codes."""

    title = "Worker 0"
    log = Path("/data/logs/worker-0.log")
    pid = 7

    def __init__(self, *exit_codes: int, failing_starts: int = 0) -> None:
        self._exit_codes = [*exit_codes]
        self._failing_starts = failing_starts
        self.starts = 0

    async def wait(self) -> int:
        return self._exit_codes.pop(0) if self._exit_codes else await asyncio.Event().wait()

    async def start(self) -> None:
        self.starts += 1
        if self.starts <= self._failing_starts:
            raise ServiceFailed("It did not start.")

    def failure(self, problem: str, advice: str) -> ServiceFailed:
        return ServiceFailed(f"{self.title} {problem}.", help_text=advice)


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []
    sleep = asyncio.sleep

    async def skip(seconds: float) -> None:
        waited.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", skip)
    return waited


async def keep_running(service: Any, messages: list[str]) -> None:
    await supervision.keep_running(service, notify=messages.append, on_restart=lambda: None)


async def test_a_service_that_dies_is_restarted_and_reported(delays: list[float]) -> None:
    service, messages = DyingService(-9, 1), list[str]()
    task = asyncio.create_task(keep_running(service, messages))
    async with asyncio.timeout(5):
        while len(messages) < 4:
            await asyncio.wait({task}, timeout=0)
    task.cancel()
    assert messages[::2] == [
        f"Worker 0 {how}. Restarting it; its log is at /data/logs/worker-0.log."
        for how in ("was killed by SIGKILL", "ended with exit code 1")
    ]
    assert messages[1] == "Worker 0 runs again (pid 7). Sessions continue where they stopped."
    assert delays == [0.5, 1.0]


@pytest.mark.parametrize("service", [DyingService(*[-9] * 9), DyingService(-9, failing_starts=9)])
async def test_repeated_quick_failures_end_everything(service: DyingService, delays: list[float]) -> None:
    with pytest.raises(ServiceFailed, match="for the 6th time within a short time"):
        await keep_running(service, [])
    assert service.starts == 5
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0]
