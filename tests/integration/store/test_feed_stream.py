"""The stream of a feed, over a real database and a real Redis: live, resumed, slow, and without notifications."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta

import pytest

from footplate.domain.errors import InvalidRequest
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import Audience, ViewFilter, Visibility
from footplate.domain.ports.api import Cursor
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.feed import FeedViewer
from footplate.stack import Stack
from footplate.store.log.feed import Feed, FeedExpiry
from footplate.stream.feed.feed_hub import FeedHub
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.stream_hub import StreamHub

from .cell import Cell
from .test_feed import append_events

pytestmark = [pytest.mark.timing, pytest.mark.requirement("O10")]

_ID = re.compile(rb"^id: (\d+)$", re.MULTILINE)
OpenHub = Callable[..., AbstractAsyncContextManager[FeedHub]]


@pytest.fixture
def open_hub(cell: Cell, stack: Stack) -> OpenHub:
    @asynccontextmanager
    async def opened(**options: float) -> AsyncIterator[FeedHub]:
        url = stack.settings.redis_url
        async with FeedHub(url, Feed(cell.database, cell.reads.positions), **options) as hub:  # pyrefly: ignore[bad-argument-type]
            yield hub

    return opened


def view(principal: Principal, **filters: object) -> FeedViewer:
    return FeedViewer(organisation=principal.organisation, view=ViewFilter.of(principal), **filters)  # pyrefly: ignore[bad-argument-type]


async def read(frames: AsyncIterator[bytes], count: int) -> list[int]:
    """Returns the positions of the next frames."""
    found: list[int] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found += map(int, _ID.findall(await anext(frames)))
    return found


async def _start(hub: FeedHub, viewer: FeedViewer, after: int | None = None) -> AsyncIterator[bytes]:
    frames = hub.frames(viewer, after=after)
    await anext(frames)
    return frames


async def _change(cell: Cell, principal: Principal, session_id: str, count: int = 1) -> None:
    await append_events(cell, principal, session_id, *(events.status_running() for _ in range(count)))


async def test_two_processes_stream_the_same_and_resume_at_every_position(
    cell: Cell, principal: Principal, stack: Stack, open_hub: OpenHub
) -> None:
    session_id = await cell.session(principal)
    async with (
        open_hub(check_interval=600) as first,
        open_hub(check_interval=600) as second,
        LivePublisher(stack.settings.redis_url) as live,
    ):
        streams = [await _start(hub, view(principal)) for hub in (first, second)]
        for number in range(5):
            await _change(cell, principal, session_id)
            live.notify_feed(principal.organisation)
            assert [await read(frames, 1) for frames in streams] == [[number + 2], [number + 2]]
        for after in range(7):
            hub = (first, second)[after % 2]
            assert await read(await _start(hub, view(principal), after), 6 - after) == list(range(after + 1, 7))
        with pytest.raises(InvalidRequest, match="cannot resume after position 8"):
            await _start(first, view(principal), 8)


async def test_a_lost_notification_delays_a_change(cell: Cell, principal: Principal, open_hub: OpenHub) -> None:
    session_id = await cell.session(principal)
    async with open_hub(check_interval=0.05) as hub:
        frames = await _start(hub, view(principal))
        await _change(cell, principal, session_id, 3)
        assert await read(frames, 3) == [2, 3, 4]


async def test_a_slow_client_reads_the_table_and_delays_no_other(
    cell: Cell, principal: Principal, open_hub: OpenHub
) -> None:
    session_id = await cell.session(principal)
    async with open_hub(check_interval=0.05, queue_bytes=2000) as hub:
        slow, quick = await _start(hub, view(principal)), await _start(hub, view(principal))
        for number in range(10):
            await _change(cell, principal, session_id, 5)
            assert await read(quick, 5) == list(range(2 + 5 * number, 7 + 5 * number))
        assert await read(slow, 50) == list(range(2, 52))
        await _change(cell, principal, session_id)
        assert await read(slow, 1) == await read(quick, 1) == [52]


async def test_a_silent_feed_reports_its_position(cell: Cell, principal: Principal, open_hub: OpenHub) -> None:
    """A client that sees few changes can then resume after a recent position."""
    session_id = await cell.session(principal)
    async with open_hub(check_interval=0.05, keepalive=0.3) as hub:
        frames = await _start(hub, view(principal, types=frozenset({"session.error"})))
        await _change(cell, principal, session_id, 3)
        async with asyncio.timeout(20):
            while await read(frames, 1) != [4]:
                pass


async def test_a_position_whose_successor_was_deleted_is_refused(
    cell: Cell, principal: Principal, open_hub: OpenHub
) -> None:
    session_id = await cell.session(principal)
    await _change(cell, principal, session_id, 3)
    await FeedExpiry(cell.database, timedelta(0)).run()
    await _change(cell, principal, session_id)
    async with open_hub() as hub:
        for after in (0, 3):
            with pytest.raises(InvalidRequest) as refused:
                await _start(hub, view(principal), after)
            assert refused.value.help_text == "List the sessions again, then connect without a position."
        assert await read(await _start(hub, view(principal), 4), 1) == [5]


async def test_changes_are_filtered(cell: Cell, principal: Principal, open_hub: OpenHub) -> None:
    first, second = await cell.session(principal), await cell.session(principal)
    await append_events(cell, principal, second, Event("step.completed", {}), events.status_running())
    async with open_hub() as hub:
        assert await read(await _start(hub, view(principal, session_id=first), 0), 1) == [1]
        assert await read(await _start(hub, view(principal, session_id=second), 0), 3) == [2, 3, 4]
        steps = view(principal, session_id=second, types=frozenset({"step.completed"}))
        assert await read(await _start(hub, steps, 0), 1) == [3]


async def test_only_current_viewers_of_a_session_see_its_changes(
    cell: Cell, principal: Principal, open_hub: OpenHub
) -> None:
    other = Principal(principal.organisation, "memb_other", "other", frozenset({"member"}))
    hidden, shown = await cell.session(principal), await cell.session(principal)
    async with cell.database.connection() as connection:
        await connection.execute(
            "update sessions set visible_to = $2 where id = $1", hidden, Audience(Visibility.PRIVATE).dump()
        )
    async with open_hub(check_interval=0.05) as hub:
        # What is visible is decided when a change is sent: the creation was visible to all at first.
        mine, theirs = [await _start(hub, view(each), 0) for each in (principal, other)]
        assert await read(mine, 2) == [1, 2]
        assert await read(theirs, 1) == [2]
        await _change(cell, principal, hidden)
        assert await read(mine, 1) == [3]
        await cell.delete(principal, hidden)
        await _change(cell, principal, shown)
        assert await read(mine, 2) == [4, 5]
        assert await read(theirs, 1) == [5]


async def test_extension_events_are_streamed_on_request(cell: Cell, principal: Principal, stack: Stack) -> None:
    session_id = await cell.session(principal)
    await append_events(cell, principal, session_id, Event("step.queued", {}), events.status_running())
    async with StreamHub(stack.settings.redis_url, cell.reads) as hub:
        organisation = principal.organisation
        default = hub.frames(organisation, session_id, cursor=Cursor(0))
        everything = hub.frames(organisation, session_id, cursor=Cursor(0), with_extensions=True)
        assert [await anext(default), await anext(everything)] == [b"", b""]
        assert (await read(default, 1), await read(everything, 2)) == ([2], [1, 2])
        await append_events(cell, principal, session_id, Event("step.failed", {}), events.status_running())
        assert (await read(default, 1), await read(everything, 2)) == ([4], [3, 4])
