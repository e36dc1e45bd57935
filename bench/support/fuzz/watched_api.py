"""`python -m bench.support.fuzz.watched_api FILE`: runs the api, and on SIGUSR1 writes a list of its tasks to FILE.

From outside, a stuck task is invisible once its connection is closed.
"""

import asyncio
import signal
import sys
from collections import Counter
from pathlib import Path

import orjson
import uvloop

from footplate import wiring
from footplate.config import Settings
from footplate.telemetry import configure_logging


async def _serve(report: Path) -> None:
    def write() -> None:
        tasks = Counter(_name(task) for task in asyncio.all_tasks())
        fresh = report.with_suffix(".new")
        fresh.write_bytes(orjson.dumps(tasks))
        fresh.rename(report)

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, write)
    await wiring.run_api(Settings())


def _name(task: "asyncio.Task[object]") -> str:
    coroutine = task.get_coro()
    return getattr(coroutine, "__qualname__", repr(coroutine))


if __name__ == "__main__":
    configure_logging()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(Path(sys.argv[1])))
