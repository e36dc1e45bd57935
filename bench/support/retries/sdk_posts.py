"""Makes the POSTs that are interrupted by kills, with the unmodified SDK and its retries, and records their results."""

import time
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import anthropic

from bench.support.clients import MODEL, Client
from bench.support.cluster import Cluster
from bench.support.retries.balancer import Balancer
from footplate.domain.sessions import events

Kind = Literal["send", "session", "agent"]
KINDS: Final[tuple[Kind, ...]] = ("send", "session", "agent")
SCRIPT: Final = "yes"


@dataclass(frozen=True, slots=True)
class Posted:
    """The result of one SDK call, including its retries."""

    kind: Kind
    mark: str
    """The message's text, the session's title or the agent's name. Other callers may use the same one."""
    id: str | None
    """The id of the created object; None if the SDK gave up."""
    retries: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SharedObjects:
    """The agent, environment and session that the callers share."""

    agent: str
    environment: str
    session: str


class Caller:
    """A separate client program: each caller has its own SDK client and connections, and may have its own key."""

    def __init__(self, cluster: Cluster, balancer: Balancer, key: str | None = None) -> None:
        self._client = Client(cluster, key=key)
        self.sdk = self._client.sdk.with_options(base_url=balancer.url)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.sdk.close()

    async def create_shared_objects(self) -> SharedObjects:
        agent = (await self.sdk.beta.agents.create(name="of all", model=MODEL)).id
        environment = await self._client.environment()
        session = await self.sdk.beta.sessions.create(agent=agent, environment_id=environment)
        return SharedObjects(agent, environment, session.id)

    async def open_connection(self, shared: SharedObjects) -> None:
        """Makes a request, so that the caller has an open connection before the POST."""
        await self.sdk.beta.sessions.retrieve(shared.session)

    async def post(self, kind: Kind, shared: SharedObjects, mark: str) -> Posted:
        began = time.perf_counter()
        try:
            made, retries = await getattr(self, f"_{kind}")(shared, mark)
        except anthropic.APIConnectionError:
            made, retries = None, self.sdk.max_retries
        return Posted(kind, mark, made, retries, time.perf_counter() - began)

    async def _send(self, shared: SharedObjects, mark: str) -> tuple[str, int]:
        response = await self.sdk.beta.sessions.events.with_raw_response.send(
            shared.session, events=_message_events(mark)
        )
        (event,) = (await response.parse()).data or []
        return event.id, response.retries_taken

    async def _session(self, shared: SharedObjects, mark: str) -> tuple[str, int]:
        response = await self.sdk.beta.sessions.with_raw_response.create(
            agent=shared.agent, environment_id=shared.environment, title=mark, initial_events=_message_events(mark)
        )
        return (await response.parse()).id, response.retries_taken

    async def _agent(self, _: SharedObjects, mark: str) -> tuple[str, int]:
        response = await self.sdk.beta.agents.with_raw_response.create(name=mark, model=MODEL)
        return (await response.parse()).id, response.retries_taken


def _message_events(text: str) -> list[Any]:
    return [{"type": events.USER_MESSAGE, "content": [{"type": "text", "text": text}]}]


def message_text(label: str) -> str:
    """Returns a message that the scripted model responds to."""
    return f"{label} [[script:{SCRIPT}]]"
