"""Times messages to arrive just when the workflow of an idle session completes.

Each session has one turn. Its workflow lingers and completes, and a second message is sent so that its wake reaches
Temporal at that time. The first delay is measured on sessions without a second message. Then each round shifts it
until as many wakes arrive before as after. The histories show when they really arrived.
"""

import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from temporalio.api.history.v1 import HistoryEvent

from bench.prove.figure import require
from bench.support.minimal_client import MinimalClient, Received, events_path, validate_frames
from bench.support.response_validation import ValidationLedger
from bench.support.workflow_histories import WorkflowHistories, event_seconds, event_type_name, timestamp_seconds

ArrivalTime = Literal["before", "during", "after"]

_SPREAD: Final = 0.015
_SHIFT: Final = 0.03
_PATIENCE: Final = 30.0


@dataclass(frozen=True, slots=True)
class WakeArrival:
    where: ArrivalTime
    """Before the linger ended; between that and the workflow's end; or after it, so that the wake started the next run.
    """
    seconds: float
    """Seconds between the wake and the interval from the end of the linger to the end of the workflow."""
    was_refused: bool
    """Whether the worker completed the workflow and Temporal refused because of the wake."""


@dataclass(frozen=True, slots=True)
class RaceResult:
    hits: Sequence[WakeArrival]
    validated: int

    def count(self, where: ArrivalTime) -> int:
        return sum(hit.where == where for hit in self.hits)

    @property
    def refused(self) -> int:
        return sum(hit.was_refused for hit in self.hits)

    @property
    def median(self) -> float:
        return statistics.median(abs(hit.seconds) for hit in self.hits)


async def run_race(lean: MinimalClient, histories: WorkflowHistories, *, sends: int, at_once: int) -> RaceResult:
    """Runs the race. Raises `NotHeld` if a second message gets no response, or a workflow stays open."""
    ledger = ValidationLedger()
    seat = await lean.create_session_fields()
    calibration = (_measure_completion(lean, histories, seat, ledger) for _ in range(at_once))
    delay = statistics.median(await asyncio.gather(*calibration))
    hits: list[WakeArrival] = []
    while len(hits) < sends:
        async with asyncio.TaskGroup() as group:
            tries = [
                group.create_task(_race_once(lean, histories, seat, delay + random.uniform(-_SPREAD, _SPREAD), ledger))
                for _ in range(min(at_once, sends - len(hits)))
            ]
        latest = RaceResult([item.result() for item in tries], 0)
        delay += _SHIFT * (0.5 - latest.count("after") / len(tries))
        hits += latest.hits
    return RaceResult(hits, ledger.validated)


async def _measure_completion(
    lean: MinimalClient, histories: WorkflowHistories, seat: dict[str, str], ledger: ValidationLedger
) -> float:
    """Returns the seconds from the turn's end, as a client sees it, to the workflow's end."""
    session_id = (await lean.post("/v1/sessions", seat))["id"]
    async with lean.stream(events_path(session_id)) as stream:
        await lean.send(session_id, "first")
        frames = await stream.until_idle(patience=_PATIENCE)
    validate_frames(frames, ledger)
    return timestamp_seconds((await histories.wait_until_closed(session_id)).close_time) - frames[-1].at


async def _race_once(
    lean: MinimalClient, histories: WorkflowHistories, seat: dict[str, str], wait: float, ledger: ValidationLedger
) -> WakeArrival:
    session_id = (await lean.post("/v1/sessions", seat))["id"]
    async with lean.stream(events_path(session_id)) as stream:
        await lean.send(session_id, "first")
        frames = await stream.until_idle(patience=_PATIENCE)
        first_run = (await histories.describe(session_id)).run_id
        await asyncio.sleep(frames[-1].at + wait - time.time())
        await lean.send(session_id, "second")
        frames += await stream.until_idle(patience=_PATIENCE)
    validate_frames(frames, ledger)
    require(
        holds=_response_texts(frames) == ["You said: first", "You said: second"], otherwise=f"{_response_texts(frames)}"
    )
    last_run = (await histories.wait_until_closed(session_id)).run_id
    return _classify_arrival(
        await histories.fetch_events(session_id, first_run),
        await histories.fetch_events(session_id, last_run) if last_run != first_run else (),
    )


def _response_texts(frames: Sequence[Received]) -> list[str]:
    return [frame.body["content"][0]["text"] for frame in frames if frame.event == "agent.message"]


def _classify_arrival(first: Sequence[HistoryEvent], following: Sequence[HistoryEvent]) -> WakeArrival:
    signals = [event for event in [*first, *following] if event_type_name(event) == "WORKFLOW_EXECUTION_SIGNALED"]
    arrival = event_seconds(signals[1])
    held_back = any(event_type_name(event) == "WORKFLOW_TASK_FAILED" for event in first)
    if following:
        return WakeArrival("after", arrival - event_seconds(first[-1]), held_back)
    linger = next(event for event in first if event_type_name(event) == "TIMER_STARTED")
    due = event_seconds(linger) + linger.timer_started_event_attributes.start_to_fire_timeout.ToNanoseconds() / 1e9
    return WakeArrival("during", 0, held_back) if arrival >= due else WakeArrival("before", arrival - due, held_back)
