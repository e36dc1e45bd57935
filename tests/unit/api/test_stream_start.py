"""The first frame of a stream of new events contains only the position. Official SDKs do not show it."""

import httpx2
import pytest
from anthropic import AsyncAnthropic

from footplate.client import AsyncFootplate
from footplate.stream import sse

from .conftest import BASE, Api

IDLE = sse.encode_event(
    42, {"id": "sevt_1", "type": "session.status_idle", "stop_reason": {"type": "end_turn"}, "processed_at": None}
)
DELETED = sse.encode_event(43, {"id": "sevt_2", "type": "session.deleted", "processed_at": None})


async def _session(sdk: AsyncAnthropic) -> str:
    agent = await sdk.beta.agents.create(name="a", model="m")
    environment = await sdk.beta.environments.create(name="e")
    return (await sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id)).id


async def test_the_sdk_skips_the_position_frame(api: Api, sdk: AsyncAnthropic) -> None:
    session_id = await _session(sdk)
    api.tails.chunks = [sse.encode_start_position(41), IDLE, DELETED]
    async with await sdk.beta.sessions.events.stream(session_id) as stream:
        assert [event.type async for event in stream] == ["session.status_idle", "session.deleted"]


@pytest.mark.requirement("O10")
async def test_footplates_client_reconnects_after_the_position(api: Api, sdk: AsyncAnthropic) -> None:
    session_id = await _session(sdk)
    api.tails.chunks = [sse.encode_start_position(41)]
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(api.app))
    async with AsyncFootplate(BASE, "secret-a", http=http, patience=5) as client:
        stream = client.events.stream(session_id, on_connection=lambda _: _prepare_end(api))
        assert [event.type async for event in stream] == ["session.status_idle", "session.deleted"]
    cursors = [cursor for _, _, cursor, _ in api.tails.requests]
    assert cursors[0] is None
    assert cursors[1] is not None
    assert cursors[1].seq == 41


def _prepare_end(api: Api) -> None:
    api.tails.chunks = [IDLE, DELETED]
