"""A thread that waits for approval is idle but not completed."""

from datetime import UTC, datetime, timedelta

from footplate.domain import threads
from footplate.domain.events import Event, Position, Usage

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def told(*events: Event) -> list[Position]:
    times = [MOMENT + timedelta(seconds=number) for number in range(len(events))]
    return [Position(number, event, at, at) for number, (event, at) in enumerate(zip(events, times, strict=True))]


def test_the_time_that_a_thread_waits_is_not_its_work() -> None:
    begun = [threads.created("sthr_1", "scout", "toolu_1"), threads.running("sthr_1", "scout")]
    waits = threads.waiting("sthr_1", "scout", ["sevt_1"])
    (thread,) = threads.load_threads(told(*begun, waits))
    assert (thread.is_running, thread.active_seconds, thread.usage) == (False, 1.0, None)
    (thread,) = threads.load_threads(told(*begun, waits, threads.running("sthr_1", "scout")))
    assert (thread.is_running, thread.active_seconds) == (True, 1.0)


def test_one_that_waited_when_its_process_was_lost_has_an_end() -> None:
    begun, waits = threads.running("sthr_1", "scout"), threads.waiting("sthr_1", "scout", ["sevt_1"])
    (end,) = threads.end_open_threads([begun, waits])
    assert end.body["stop_reason"] == {"type": "end_turn"}
    assert threads.end_open_threads([begun, waits, threads.idle("sthr_1", "scout", Usage())]) == []
