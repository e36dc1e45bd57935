"""When the live entries of a turn are sent, and which ones are combined.

A piece of a preview is sent almost at once while the publisher is idle, and waits longer while it is busy.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

import pytest
import uvloop

from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event, Position
from footplate.stream import live_entry_codec
from footplate.stream.live_entry_codec import PreviewDelta, PreviewStart, ReceivedItem, RedisCommand
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.turn_publisher import TurnPublisher

pytestmark = pytest.mark.timing


class RecordingPublisher:
    def __init__(self, *, busy: bool) -> None:
        self.is_busy = busy
        self.offered: list[Sequence[RedisCommand]] = []

        self.full = False
        self.filled = asyncio.Event()

    def feed_commands(self, _organisation: str, _items: object) -> Sequence[RedisCommand]:
        return ()

    def enqueue(self, commands: Sequence[RedisCommand]) -> bool:
        if not self.full:
            self.offered.append(commands)
            self.filled.set()
        return not self.full

    @property
    def sent(self) -> list[tuple[list[str], list[ReceivedItem]]]:
        """For each entry, the commands before it and its contents."""
        return [
            ([str(name) for name, *_ in before], live_entry_codec.decode_items(cast("bytes", entry[-1])))
            for *before, entry in self.offered
        ]


async def _pieces(*, busy: bool) -> int:
    """Returns the number of entries for five pieces at the pace of a fast model. The first also has the start."""
    live = RecordingPublisher(busy=busy)
    turn = TurnPublisher(cast("LivePublisher", live), "org", "sesn_1", flush_seconds=5.0)
    preview = turn.preview("agent.message")
    for _ in range(5):
        preview.write("word ")
        await asyncio.sleep(0.01)
    return len(live.offered)


async def test_pieces_are_sent_one_by_one_while_idle() -> None:
    assert await _pieces(busy=False) == 5


async def test_pieces_are_combined_while_busy() -> None:
    assert await _pieces(busy=True) == 1


def _positions(first: int, *new: Event) -> list[Position]:
    now = datetime.now(UTC)
    return [Position(first + number, event, now, now) for number, event in enumerate(new)]


def _types(items: Sequence[ReceivedItem]) -> list[str]:
    return [
        name
        for item in items
        for name in ([each.type for each in item] if isinstance(item, list) else [type(item).__name__])
    ]


@pytest.mark.requirement("S2")
async def test_a_text_turn_is_three_entries() -> None:
    live = RecordingPublisher(busy=False)
    turn = TurnPublisher(cast("LivePublisher", live), "org", "sesn_1")
    await turn.publish(_positions(1, events.status_running()))
    await turn.publish(_positions(2, events.model_request_start()))
    preview = turn.preview("agent.message")
    preview.write("Yes.")
    end = Event(events.MODEL_REQUEST_END, {})
    await turn.publish(_positions(3, events.message("Yes.", event_id=preview.event_id), end))
    await turn.publish(_positions(5, events.status_idle({"type": "end_turn"})))
    await turn.aclose()
    assert [(before, _types(items)) for before, items in live.sent] == [
        ([], [events.STATUS_RUNNING, events.MODEL_REQUEST_START]),
        (["SET"], ["PreviewStart", "PreviewDelta"]),
        (["DEL"], [events.AGENT_MESSAGE, events.MODEL_REQUEST_END, events.STATUS_IDLE]),
    ]


async def test_an_event_without_a_successor_is_sent_after_a_delay() -> None:
    live = RecordingPublisher(busy=False)
    turn = TurnPublisher(cast("LivePublisher", live), "org", "sesn_1")
    await turn.publish(_positions(1, events.status_running()))
    assert not live.sent
    await asyncio.wait_for(live.filled.wait(), 30)
    await turn.publish(_positions(2, Event(events.MODEL_REQUEST_END, {})))
    await turn.aclose()
    assert [_types(items) for _, items in live.sent] == [[events.STATUS_RUNNING], [events.MODEL_REQUEST_END]]


async def test_text_that_did_not_fit_follows_later_and_events_come_from_the_log() -> None:
    live = RecordingPublisher(busy=False)
    turn = TurnPublisher(cast("LivePublisher", live), "org", "sesn_1", flush_seconds=0.0)
    live.full = True
    await turn.publish(_positions(1, events.model_request_start()))
    preview = turn.preview("agent.message")
    preview.write("Hello ")
    preview.write("you")
    live.full = False
    preview.write(".")
    ((before, items),) = live.sent
    assert before == ["SET"]
    assert isinstance(items[0], PreviewStart)
    assert "".join(item.text for item in items if isinstance(item, PreviewDelta)) == "Hello you."
    assert not any(isinstance(item, list) for item in items)


async def test_a_preview_after_a_failed_close_is_saved() -> None:
    live = RecordingPublisher(busy=False)
    turn = TurnPublisher(cast("LivePublisher", live), "org", "sesn_1", flush_seconds=0.0)
    live.full = True
    await turn.publish(_positions(1, events.message("One."), Event(events.MODEL_REQUEST_END, {})))
    turn.flush()
    live.full = False
    turn.preview("agent.message").write("Two.")
    assert [before for before, _ in live.sent] == [["SET"]]


def test_buffered_text_is_sent_in_order_with_uvloop() -> None:
    """A timer of uvloop that is due immediately has another class."""

    async def write() -> list[str]:
        live = RecordingPublisher(busy=True)
        turn = TurnPublisher(cast("LivePublisher", live), "org", "sesn_1")
        turn.preview("agent.thinking")
        await asyncio.sleep(0)
        preview = turn.preview("agent.message")
        preview.write("One, ")
        preview.write("two.")
        await turn.aclose()
        return [item.text for _, items in live.sent for item in items if isinstance(item, PreviewDelta)]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert "".join(runner.run(write())) == "One, two."
