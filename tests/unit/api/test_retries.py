"""A retried request takes effect once, whether the retry has a key or is the SDK's own."""

import httpx2
import pytest
from anthropic import AsyncAnthropic
from starlette.types import Message, Receive, Scope, Send

from .conftest import BASE, Api

BODY = {"name": "A", "model": "m"}


async def test_the_same_key_returns_the_same_response(http: httpx2.AsyncClient, api: Api) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = await http.post("/v1/agents", json=BODY, headers=headers)
    second = await http.post("/v1/agents", json=BODY, headers=headers)
    assert first.json() == second.json()
    assert first.headers["request-id"] != second.headers["request-id"]
    assert len(api.world.agents) == 1


async def test_the_same_key_with_another_body_is_refused(http: httpx2.AsyncClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    await http.post("/v1/agents", json=BODY, headers=headers)
    response = await http.post("/v1/agents", json={**BODY, "name": "B"}, headers=headers)
    assert response.status_code == 400
    assert response.json()["error"]["field"] == "Idempotency-Key"


async def test_without_headers_every_request_takes_effect(http: httpx2.AsyncClient, api: Api) -> None:
    for _ in range(2):
        await http.post("/v1/agents", json=BODY)
    assert len(api.world.agents) == 2
    assert api.world.responses == {}


@pytest.mark.parametrize("count", ["", "soon", "-1", "99999"])
async def test_an_invalid_retry_count_is_ignored(http: httpx2.AsyncClient, api: Api, count: str) -> None:
    await http.post("/v1/agents", json=BODY, headers={"x-stainless-retry-count": count})
    assert api.world.responses == {}


@pytest.mark.parametrize("key", ["", "k" * 256])
async def test_the_length_of_a_key_is_limited(http: httpx2.AsyncClient, key: str) -> None:
    response = await http.post("/v1/agents", json=BODY, headers={"Idempotency-Key": key})
    assert response.status_code == 400


class LossyTransport(httpx2.AsyncBaseTransport):
    """Sends the request, and loses the response to every first attempt."""

    def __init__(self, api: Api) -> None:
        self._inner = httpx2.ASGITransport(api.app)
        self.lost = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if request.headers["x-stainless-retry-count"] == "0":
            self.lost += 1
            raise httpx2.ReadError("connection reset")
        return response


async def test_the_sdks_own_retries_run_nothing_twice(api: Api) -> None:
    transport = LossyTransport(api)
    client = httpx2.AsyncClient(transport=transport)
    async with AsyncAnthropic(api_key="secret-a", base_url=BASE, http_client=client, max_retries=1) as sdk:
        agent = await sdk.beta.agents.create(name="A", model="m")
        environment = await sdk.beta.environments.create(name="E")
        session = await sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id)
        sent = await sdk.beta.sessions.events.send(
            session.id, events=[{"type": "user.message", "content": [{"type": "text", "text": "once"}]}]
        )
        await sdk.beta.sessions.delete(session.id)
    assert transport.lost == 5
    assert (len(api.world.agents), len(api.world.environments), len(api.world.inputs)) == (1, 1, 1)
    assert sent.data is not None
    assert [event.id for event in sent.data] == [row.event.id for row in api.world.log[session.id]]


async def test_a_failing_notifier_fails_no_request(http: httpx2.AsyncClient, sdk: AsyncAnthropic, api: Api) -> None:
    agent = await sdk.beta.agents.create(name="A", model="m")
    environment = await sdk.beta.environments.create(name="E")
    api.notifier.failure = ConnectionError("no engine")
    response = await http.post("/v1/sessions", json={"agent": agent.id, "environment_id": environment.id})
    assert response.status_code == 200
    assert response.json()["id"] in api.world.sessions


async def test_the_caller_gets_the_response_before_the_engine_is_notified(sdk: AsyncAnthropic, api: Api) -> None:
    """The caller waits for the commit, not for the engine, which may be slow."""
    agent = await sdk.beta.agents.create(name="A", model="m")
    environment = await sdk.beta.environments.create(name="E")
    sent: list[tuple[str, int]] = []

    async def recorded_app(scope: Scope, receive: Receive, send: Send) -> None:
        async def record(message: Message) -> None:
            sent.append((message["type"], len(api.world.accepted)))
            await send(message)

        await api.app(scope, receive, record)

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(recorded_app), base_url=BASE) as http:
        body = {"agent": agent.id, "environment_id": environment.id}
        await http.post("/v1/sessions", json=body, headers={"x-api-key": "secret-a"})
    assert sent == [("http.response.start", 0), ("http.response.body", 0)]
    assert len(api.world.accepted) == 1
