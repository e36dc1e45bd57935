"""Endpoints are woken after changes of organisations that have some, with one signal for many changes."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

import pytest

from footplate.domain.errors import Unavailable
from footplate.domain.ports.webhooks import WebhookStore
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event, Position
from footplate.engine.webhooks.endpoint_waker import ENDPOINTS_CHANGED, EndpointWaker
from footplate.stream.live_publisher import LivePublisher

pytestmark = pytest.mark.timing

ORGANISATION = "org_1"
OTHER = "org_2"


class FakeStore:
    def __init__(self) -> None:
        self.marked: list[list[str]] = []

    async def find_organisations(self) -> frozenset[str]:
        return frozenset({ORGANISATION})

    async def mark_for_wake(self, organisations: Sequence[str]) -> Sequence[tuple[str, str]]:
        self.marked.append([*organisations])
        return [(each, "whep_1") for each in organisations]


class FakeSignals:
    def __init__(self) -> None:
        self.sent: asyncio.Queue[str] = asyncio.Queue()
        self.fails = False

    async def wake(self, organisation: str, endpoint_id: str) -> None:
        del endpoint_id
        self.sent.put_nowait(organisation)
        if self.fails:
            raise Unavailable("Temporal does not respond.")

    async def wake_overdue(self, organisation: str, endpoint_id: str) -> None:
        raise AssertionError((organisation, endpoint_id))


async def test_many_changes_are_one_signal_and_other_organisations_cost_nothing() -> None:
    store, signals = FakeStore(), FakeSignals()
    nudged: asyncio.Queue[str] = asyncio.Queue()

    async def nudge(message: str) -> None:
        nudged.put_nowait(message)

    waker = EndpointWaker(cast("WebhookStore", store), signals, nudge=nudge)
    async with waker.running(), asyncio.timeout(20):
        waker.endpoints_changed(ORGANISATION)
        assert await signals.sent.get() == ORGANISATION
        assert await nudged.get() == ENDPOINTS_CHANGED
        for _ in range(100):
            waker.notify_change(ORGANISATION)
            waker.notify_change(OTHER)
        assert await signals.sent.get() == ORGANISATION
        assert store.marked == [[ORGANISATION], [ORGANISATION]]
        signals.fails = True  # a lost signal is found by the sweep, and later ones are sent
        for _ in range(2):
            waker.notify_change(ORGANISATION)
            assert await signals.sent.get() == ORGANISATION


async def test_the_publisher_reports_changes_only() -> None:
    changed: list[str] = []
    async with LivePublisher("redis://127.0.0.1:1/0", on_change=changed.append) as live:
        for event in (events.message("Not a change."), events.status_running(), Event("step.ended")):
            live.feed_commands(ORGANISATION, [[Position(1, event, datetime.now(UTC), None)]])
    assert changed == [ORGANISATION, ORGANISATION]
