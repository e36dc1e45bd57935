"""A client that follows one thread of a session gets all frames of that thread and no others."""

from datetime import UTC, datetime

from footplate.domain.policy.permissions import Decision, PermissionOutcome
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event, Position
from footplate.stream import sse
from footplate.stream.client_queue import Frame, Subscriber

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ASK = ev.tool_use("bash", {}, call_id="t2", decision=Decision(PermissionOutcome.ASK, "because"))
DECISION = Event(ev.USER_TOOL_CONFIRMATION, {"tool_use_id": ASK.id, "result": "allow"})
LOG: list[Event] = [
    ev.message("I ask."),
    threads.created("sthr_a", "scout", "t1"),
    threads.running("sthr_a", "scout"),
    threads.in_thread(ev.message("Inside."), "sthr_a"),
    threads.call_in_thread(ASK, "sthr_a", "scout"),
    threads.in_thread(DECISION, "sthr_a"),
    threads.call_in_thread(ev.tool_use("read", {}, call_id="t3"), "sthr_a", "scout"),
    threads.idle("sthr_a", "scout", ev.Usage()),
    ev.message("Done."),
]
PAGE = [Position(number + 1, event, NOW, NOW) for number, event in enumerate(LOG)]
FRAMES = [Frame(item.seq, item.event.id, item.event.type, sse.encode_position(item), item.event.body) for item in PAGE]


def expect_frames(*numbers: int) -> bytes:
    return b"".join(FRAMES[number - 1].data for number in numbers)


def open_subscriber(thread_id: str | None, *, seq: int = 0) -> Subscriber[Frame]:
    return Subscriber(
        seq, keepalive=60, is_shown=lambda frame: frame.is_shown(thread_id), takes_default=thread_id is None
    )


async def receive_frames(thread_id: str | None, *, seq: int = 0) -> bytes:
    """Returns the frames that a subscriber receives from the channel."""
    subscriber = open_subscriber(thread_id, seq=seq)
    subscriber.behind = False
    subscriber.queue_positions(0, FRAMES, b"".join(frame.data for frame in FRAMES if frame.is_shown(None)))
    assert subscriber.seq == len(LOG)
    subscriber.close()
    return subscriber.take_queued()


async def test_a_live_subscriber_gets_the_frames_of_its_thread() -> None:
    assert await receive_frames(None) == expect_frames(1, 2, 3, 5, 6, 8, 9)
    assert await receive_frames(None, seq=2) == expect_frames(3, 5, 6, 8, 9)
    assert await receive_frames("sthr_a") == expect_frames(3, 4, 5, 6, 7, 8)
    assert await receive_frames("sthr_a", seq=3) == expect_frames(4, 5, 6, 7, 8)
    assert await receive_frames("sthr_b") == b""


async def test_the_log_is_read_for_one_thread() -> None:
    for thread_id, numbers in ((None, (1, 2, 3, 5, 6, 8, 9)), ("sthr_a", (3, 4, 5, 6, 7, 8)), ("sthr_b", ())):
        subscriber = open_subscriber(thread_id)
        assert subscriber.take_page(FRAMES) == expect_frames(*numbers)
        assert subscriber.seq == len(LOG)
        subscriber.close()
