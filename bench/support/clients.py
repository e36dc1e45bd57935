"""The client of all claims: the unmodified official SDK, with strict validation of every response.

    async with Client(cluster) as client:
        session_id = await client.session()
        async with client.stream(session_id) as stream:
            await client.send_text(session_id, "Hello [[script:hello]]")
            events = await stream.until_idle()

`client.sdk` is the SDK itself, for calls without a short form here. Its responses are validated too.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Self, cast

import httpx2
from anthropic import AsyncAnthropic, AsyncStream, DefaultAsyncHttpxClient
from anthropic.types.beta.sessions import BetaManagedAgentsStreamSessionEvents

from bench.support.cluster import Cluster
from bench.support.response_validation import FRAMES, Frame, ValidationLedger
from footplate.domain.sessions import events

Event = dict[str, Any]
"""An event exactly as it was sent."""

MODEL: Final = "claude-sonnet-4-5"
TOOLSET: Final = {"type": "agent_toolset_20260401"}
CLOUD: Final = {"type": "cloud", "networking": {"type": "unrestricted"}}
_PATIENCE: Final = 60.0


class Client:
    """`key`: the cluster's own by default. A ledger can be shared, to count over many clients."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        api: int = 0,
        key: str | None = None,
        ledger: ValidationLedger | None = None,
        max_retries: int = 2,
        max_connections: int = 1000,
    ) -> None:
        self.ledger = ledger or ValidationLedger()
        self.http = DefaultAsyncHttpxClient(**_validating_options(self.ledger, max_connections))
        self.sdk = AsyncAnthropic(
            api_key=key or cluster.key,
            auth_token=None,
            base_url=cluster.base_urls[api],
            http_client=self.http,
            max_retries=max_retries,
        )
        self._environment_id: str | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.sdk.close()

    async def agent(self, **fields: Any) -> str:
        """Creates an agent with the built-in tools. `extra_body` carries fields that the SDK does not know (`harness`,
        …).
        """
        given: dict[str, Any] = {"name": "proof", "model": MODEL, "tools": [TOOLSET], **fields}
        return (await self.sdk.beta.agents.create(**given)).id

    async def environment(self) -> str:
        name = f"proof-{secrets.token_hex(4)}"
        return (await self.sdk.beta.environments.create(name=name, config=cast("Any", CLOUD))).id

    async def session(self, agent: str | None = None, environment_id: str | None = None, **fields: Any) -> str:
        """Creates a session, with a new agent by default, in an environment that this client's sessions share."""
        if environment_id is None:
            self._environment_id = self._environment_id or await self.environment()
            environment_id = self._environment_id
        chosen = agent or await self.agent()
        return (await self.sdk.beta.sessions.create(agent=chosen, environment_id=environment_id, **fields)).id

    async def send(self, session_id: str, *sent: Mapping[str, Any], **options: Any) -> list[str]:
        """Sends events, and returns their ids."""
        response = await self.sdk.beta.sessions.events.send(session_id, events=cast("Any", sent), **options)
        return [event.id for event in response.data or ()]

    async def send_text(self, session_id: str, text: str, **extra: Any) -> str:
        """Sends a message. `extra`: further fields of it, for example `when_busy`."""
        content = [{"type": "text", "text": text}]
        (event_id,) = await self.send(session_id, {"type": events.USER_MESSAGE, "content": content, **extra})
        return event_id

    async def interrupt(self, session_id: str) -> str:
        (event_id,) = await self.send(session_id, {"type": events.USER_INTERRUPT})
        return event_id

    async def send_tool_result(self, session_id: str, tool_use_id: str, text: str) -> str:
        result = {
            "type": events.USER_CUSTOM_TOOL_RESULT,
            "custom_tool_use_id": tool_use_id,
            "content": [{"type": "text", "text": text}],
        }
        (event_id,) = await self.send(session_id, result)
        return event_id

    @asynccontextmanager
    async def stream(
        self, session_id: str, *, deltas: Iterable[str] = (), last_event_id: str | None = None
    ) -> AsyncIterator["Stream"]:
        headers = {"Last-Event-ID": last_event_id} if last_event_id is not None else {}
        options: dict[str, Any] = {"event_deltas": list(deltas)} if deltas else {}
        opened = await self.sdk.beta.sessions.events.stream(session_id, extra_headers=headers, **options)
        async with opened:
            yield Stream(opened)

    async def run_turn(self, session_id: str, text: str, *, patience: float = _PATIENCE, **extra: Any) -> list[Event]:
        """Opens a stream, sends the text, and returns all events up to the next idle."""
        async with self.stream(session_id) as stream:
            await self.send_text(session_id, text, **extra)
            return await stream.until_idle(patience=patience)

    async def list_turns(self, session_id: str) -> list[dict[str, Any]]:
        response: Any = await self.sdk.get(f"/v1/sessions/{session_id}/turns", cast_to=dict[str, Any])
        return list(response["data"])

    async def events(self, session_id: str, **filters: Any) -> list[Event]:
        """Returns the whole list of events, as they were sent."""
        path = f"/v1/sessions/{session_id}/events"
        found: list[Event] = []
        query: dict[str, Any] = dict(filters)
        while True:
            page = await self.sdk.get(path, cast_to=cast("Any", object), options={"params": query})
            found.extend(page["data"])
            if page["next_page"] is None:
                return found
            query["page"] = page["next_page"]


def raw_client(
    cluster: Cluster, *, api: int = 0, key: str | None = None, ledger: ValidationLedger | None = None
) -> httpx2.AsyncClient:
    """Returns a plain HTTP client, for requests that the SDK cannot make. Its responses are validated too."""
    headers = {"authorization": f"Bearer {key or cluster.key}"}
    return httpx2.AsyncClient(
        base_url=cluster.base_urls[api], headers=headers, **_validating_options(ledger or ValidationLedger(), 1000)
    )


def _validating_options(ledger: ValidationLedger, max_connections: int) -> dict[str, Any]:
    """Returns client options with their own transport, so that no proxy from the environment is used."""
    limits = httpx2.Limits(max_connections=max_connections, max_keepalive_connections=max_connections)
    return {
        "transport": httpx2.AsyncHTTPTransport(limits=limits),
        "event_hooks": {"response": [ledger.hook]},
        "timeout": 60,
    }


class Stream:
    """An open stream: the events that the SDK parsed, and the frames as they were sent."""

    def __init__(self, opened: AsyncStream[BetaManagedAgentsStreamSessionEvents]) -> None:
        self._opened = opened
        self._frames: deque[Frame] = opened.response.extensions[FRAMES]
        self.last_id = ""
        """The id of the last frame, from which a new connection continues."""
        self.received: list[Event] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        seen = await anext(self._opened)
        frame = self._frames.popleft()
        # If the SDK does not recognise a type it guesses one.
        if seen.type != frame.data["type"]:
            raise AssertionError(f"the SDK parsed {frame.data} as {type(seen).__name__}")
        self.last_id = frame.id
        self.received.append(frame.data)
        return frame.data

    async def until(self, *types: str, patience: float = _PATIENCE) -> list[Event]:
        """Returns all events up to and including the next one of these types."""
        found: list[Event] = []
        async with asyncio.timeout(patience):
            async for event in self:
                found.append(event)
                if event["type"] in types:
                    return found
        raise AssertionError(f"the stream ended before any of {types}: {[event['type'] for event in found]}")

    async def until_idle(self, *, patience: float = _PATIENCE) -> list[Event]:
        return await self.until(events.STATUS_IDLE, patience=patience)


def texts(received: Iterable[Event]) -> list[str]:
    """Returns the texts of the agent's messages."""
    return [
        "".join(block["text"] for block in event["content"])
        for event in received
        if event["type"] == events.AGENT_MESSAGE
    ]
