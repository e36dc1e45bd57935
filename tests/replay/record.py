"""Records histories of the current workflows: `just record-histories`.

The engine, the waker, the worker and the activities are the product's own. Only the inside of a turn is scripted,
because none of it reaches a history. The files of older versions stay: a running session must survive every upgrade,
so every later version replays every recorded history. A new version records under a new number.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle

from footplate.config import Settings
from footplate.domain.sessions.turns import SessionToWake
from footplate.engine.temporal.activities import SweepActivities, TurnActivities
from footplate.engine.temporal.session_waker import TemporalWaker, workflow_id
from footplate.engine.temporal.webhook_signals import TemporalWebhookSignals, webhook_workflow_id
from footplate.engine.temporal.webhook_workflow import WebhookActivities
from footplate.engine.temporal.worker import run_worker
from footplate.engine.turn.runner import RetryTurn, TurnEnded, TurnRunner
from footplate.engine.webhooks.delivery_runner import WebhookRunner
from footplate.stack.orphan_processes import wait_until
from footplate.stack.services.temporal import Temporal
from footplate.stack.temporal_connection import connect_temporal

HISTORIES: Final = Path(__file__).parent / "histories"
TIMEOUT: Final = 30.0
ORGANISATION: Final = "org_recorded"
SUGGEST_AFTER: Final = 60
"""History events after which Temporal suggests continue-as-new. Its default would make a file of megabytes."""


class ScriptedTurns(TurnRunner):
    """Ends the turns of each session with scripted outcomes, in order. A turn with `None` waits for `release`."""

    def __init__(self) -> None:
        self.outcomes: dict[str, list[TurnEnded | RetryTurn | None]] = {}
        self.prepared: list[str] = []
        self.started = asyncio.Event()
        self.release = asyncio.Event()

    def prepare(self, organisation: str, session_id: str) -> None:
        del organisation
        self.prepared.append(session_id)

    async def run(self, organisation: str, session_id: str) -> TurnEnded | RetryTurn:
        del organisation
        outcome = self.outcomes[session_id].pop(0)
        if outcome is not None:
            return outcome
        self.started.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.outcomes[session_id].insert(0, None)
            raise
        return TurnEnded(has_more=False)


class ScriptedWebhooks(WebhookRunner):
    """Returns scripted times until the next attempt, in order."""

    def __init__(self) -> None:
        self.waits: dict[str, list[float | None]] = {}

    async def run(self, organisation: str, endpoint_id: str) -> float | None:
        del organisation
        return self.waits[endpoint_id].pop(0)


class NothingToSweep:
    async def find_sessions_to_wake(self, *, older_than: float, lost_for: float, limit: int) -> Sequence[SessionToWake]:
        del older_than, lost_for, limit
        return ()

    async def delete_stale_rows(self) -> None:
        return


class Recorder:
    def __init__(self, client: Client, settings: Settings, into: Path) -> None:
        self.client = client
        self.settings = settings
        self.turns = ScriptedTurns()
        self.webhooks = ScriptedWebhooks()
        self._into = into
        self._waker = TemporalWaker(client, settings)
        self._webhook_signals = TemporalWebhookSignals(client, settings)

    def session(self, name: str, *outcomes: TurnEnded | RetryTurn | None) -> str:
        self.turns.outcomes[session_id := f"sesn_{name}"] = [*outcomes]
        return session_id

    async def wake(self, session_id: str) -> None:
        await self._waker.wake(ORGANISATION, session_id)

    async def prepare(self, session_id: str) -> None:
        await self._waker.prepare(ORGANISATION, session_id)

        async def prepared() -> bool:
            return session_id in self.turns.prepared

        assert await wait_until(prepared, TIMEOUT)
        await asyncio.sleep(0.3)

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        stop = asyncio.Event()
        turns = TurnActivities(self.turns, heartbeat_timeout=self.settings.heartbeat_timeout)
        sweep = SweepActivities(NothingToSweep(), self._waker)
        webhooks = WebhookActivities(self.webhooks, heartbeat_timeout=self.settings.heartbeat_timeout)
        running = asyncio.create_task(run_worker(self.client, self.settings, turns, sweep, stop, webhooks=webhooks))
        try:
            yield
        finally:
            stop.set()
            await running

    async def run_webhooks(self, endpoint_id: str, *waits: float | None) -> WorkflowHandle[object, object]:
        """Wakes an endpoint, and waits until its workflow has received the last of these results."""
        self.webhooks.waits[endpoint_id] = [*waits]
        await self._webhook_signals.wake(ORGANISATION, endpoint_id)

        async def done() -> bool:
            return not self.webhooks.waits[endpoint_id]

        assert await wait_until(done, TIMEOUT)
        await asyncio.sleep(0.5)
        return self.client.get_workflow_handle(webhook_workflow_id(ORGANISATION, endpoint_id))

    def handle(self, session_id: str) -> WorkflowHandle[object, object]:
        return self.client.get_workflow_handle(workflow_id(ORGANISATION, session_id))

    async def until_turns_are_done(self, session_id: str) -> None:
        """Waits until the last outcome was used and the workflow has received it."""

        async def done() -> bool:
            return not self.turns.outcomes[session_id] and not await self._has_pending_activities(session_id)

        assert await wait_until(done, TIMEOUT)
        await asyncio.sleep(0.3)

    async def _has_pending_activities(self, session_id: str) -> bool:
        described = await self.handle(session_id).describe()
        return len(described.raw_description.pending_activities) > 0

    async def until_over(self, handle: WorkflowHandle[object, object]) -> None:
        async def over() -> bool:
            return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

        assert await wait_until(over, TIMEOUT)

    async def write(self, name: str, handle: WorkflowHandle[object, object]) -> None:
        history = await handle.fetch_history()
        text = json.dumps(_without_paths(history.to_json_dict()), indent=1)
        await asyncio.to_thread((self._into / f"{name}.json").write_text, text + "\n")
        print(f"{name}: {len(history.events)} events")  # noqa: T201 - a tool for people


def _without_paths(value: Any) -> Any:
    """Removes stack traces: they name files of the recording machine, and no replay reads them."""
    if isinstance(value, dict):
        return {key: _without_paths(item) for key, item in value.items() if key != "stackTrace"}
    return [_without_paths(item) for item in value] if isinstance(value, list) else value


async def one_turn(recorder: Recorder) -> None:
    session_id = recorder.session("one_turn", TurnEnded(has_more=False))
    await recorder.wake(session_id)
    await recorder.until_turns_are_done(session_id)
    await recorder.write("one-turn-open", recorder.handle(session_id))


async def prepared(recorder: Recorder) -> None:
    """Prepares a session before its first turn, and once more when that is no longer needed."""
    session_id = recorder.session("prepared", TurnEnded(has_more=False), TurnEnded(has_more=False))
    await recorder.prepare(session_id)
    await recorder.wake(session_id)
    await asyncio.sleep(0.3)
    recorder.turns.prepared.clear()
    await recorder.prepare(session_id)
    await recorder.wake(session_id)
    await recorder.until_turns_are_done(session_id)
    await recorder.write("prepared", recorder.handle(session_id))


async def wakes_during_a_turn(recorder: Recorder) -> None:
    session_id = recorder.session(
        "wakes", None, TurnEnded(has_more=True), TurnEnded(has_more=True), TurnEnded(has_more=False)
    )
    await recorder.wake(session_id)
    await recorder.turns.started.wait()
    for _ in range(3):
        await recorder.wake(session_id)
    recorder.turns.release.set()
    await recorder.until_turns_are_done(session_id)
    await recorder.wake(recorder.session("wakes", TurnEnded(has_more=False)))
    await recorder.until_turns_are_done(session_id)
    await recorder.write("several-turns-and-wakes", recorder.handle(session_id))


async def linger_ends(recorder: Recorder) -> None:
    session_id = recorder.session("linger", TurnEnded(has_more=False))
    await recorder.wake(session_id)
    await recorder.until_turns_are_done(session_id)
    await recorder.until_over(recorder.handle(session_id))
    await recorder.write("linger-ends", recorder.handle(session_id))


async def continued_as_new(recorder: Recorder) -> None:
    session_id = recorder.session("continued", *[TurnEnded(has_more=True)] * 15, TurnEnded(has_more=False))
    await recorder.wake(session_id)
    first = recorder.client.get_workflow_handle(
        workflow_id(ORGANISATION, session_id), run_id=(await recorder.handle(session_id).describe()).run_id
    )
    await recorder.until_turns_are_done(session_id)
    await recorder.until_over(first)
    await recorder.until_over(recorder.handle(session_id))
    await recorder.write("continued-as-new-first-run", first)
    await recorder.write("continued-as-new-last-run", recorder.handle(session_id))


async def tried_again(recorder: Recorder) -> None:
    again = [RetryTurn(0.1, "The model is overloaded."), RetryTurn(0.2, "The model is overloaded.")]
    session_id = recorder.session("tried_again", *again, TurnEnded(has_more=False))
    await recorder.wake(session_id)
    await recorder.until_turns_are_done(session_id)
    await recorder.write("tried-again", recorder.handle(session_id))


async def swept(recorder: Recorder) -> None:
    sweep_id = f"sweep/{recorder.settings.task_queue}"
    await recorder.client.get_schedule_handle(sweep_id).trigger()
    runs: list[str] = []

    async def started() -> bool:
        runs[:] = [run.id async for run in recorder.client.list_workflows("WorkflowType = 'SweepWorkflow'")]
        return bool(runs)

    assert await wait_until(started, TIMEOUT)
    handle: WorkflowHandle[object, object] = recorder.client.get_workflow_handle(runs[0])
    await recorder.until_over(handle)
    await recorder.write("swept", handle)


async def webhooks_are_retried(recorder: Recorder) -> None:
    """Two attempts after timers, and a wake signal while the workflow waits for its end."""
    await recorder.run_webhooks("whep_retried", 0.3, 0.2, 0.0, None)
    await recorder.write("webhooks-retried", await recorder.run_webhooks("whep_retried", None))


async def webhooks_are_continued_as_new(recorder: Recorder) -> None:
    last = await recorder.run_webhooks("whep_continued", *[0.0] * 14, None)
    await recorder.write("webhooks-continued-as-new", last)


async def handed_over(recorder: Recorder) -> None:
    """Stops a worker in the middle of a turn. The next worker replays the history before it continues."""
    session_id = recorder.session("handed_over", None)
    async with recorder.worker():
        recorder.turns.started.clear()
        recorder.turns.release.clear()
        await recorder.wake(session_id)
        await recorder.turns.started.wait()
    async with recorder.worker():
        recorder.turns.release.set()
        await recorder.until_turns_are_done(session_id)
    await recorder.write("handed-over", recorder.handle(session_id))


SCENARIOS: Final[Sequence[Callable[[Recorder], Awaitable[None]]]] = (
    one_turn,
    prepared,
    wakes_during_a_turn,
    linger_ends,
    continued_as_new,
    tried_again,
    swept,
    webhooks_are_retried,
    webhooks_are_continued_as_new,
)


async def record(into: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        engine = Temporal(
            Path(directory),
            log_file=Path(directory) / "temporal.log",
            dynamic_config={"limit.historyCount.suggestContinueAsNew": SUGGEST_AFTER},
            in_memory=True,
        )
        await engine.start()
        try:
            # The default identity contains the name of the machine.
            client = await connect_temporal(engine.address, identity="recorder")
            settings = Settings(
                temporal_address=engine.address, linger=2, heartbeat_timeout=5, lease=2, sweep_interval=3600
            )
            recorder = Recorder(client, settings, into)
            async with recorder.worker():
                for scenario in SCENARIOS:
                    await scenario(recorder)
            await handed_over(recorder)
        finally:
            await engine.stop()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/replay/record.py VERSION, for example 1")
    target = HISTORIES / f"v{sys.argv[1]}"
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(record(target))
