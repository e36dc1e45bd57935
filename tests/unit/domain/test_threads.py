"""A thread that waits for approval is idle but not completed."""

from datetime import UTC, datetime, timedelta

from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event, Position, Usage

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def make_log(*events: Event) -> list[Position]:
    times = [MOMENT + timedelta(seconds=number) for number in range(len(events))]
    return [Position(number, event, at, at) for number, (event, at) in enumerate(zip(events, times, strict=True))]


def test_waiting_time_is_not_active_time() -> None:
    begun = [threads.created("sthr_1", "scout", "toolu_1"), threads.running("sthr_1", "scout")]
    waits = threads.waiting("sthr_1", "scout", ["sevt_1"])
    (thread,) = threads.load_threads(make_log(*begun, waits))
    assert (thread.is_running, thread.active_seconds, thread.usage) == (False, 1.0, None)
    (thread,) = threads.load_threads(make_log(*begun, waits, threads.running("sthr_1", "scout")))
    assert (thread.is_running, thread.active_seconds) == (True, 1.0)


def test_a_thread_that_waited_when_its_process_was_lost_is_closed() -> None:
    begun, waits = threads.running("sthr_1", "scout"), threads.waiting("sthr_1", "scout", ["sevt_1"])
    (end,) = threads.end_open_threads([begun, waits])
    assert end.body["stop_reason"] == {"type": "end_turn"}
    assert threads.end_open_threads([begun, waits, threads.idle("sthr_1", "scout", Usage())]) == []
