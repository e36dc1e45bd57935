"""One interface for the unmodified official SDK, synchronous or asynchronous, so that each test runs with both.

    async with Door(cluster, "sync") as door:
        agent = await door.call("agents.create", name="Helper", model=MODEL)
        await door.refused(anthropic.NotFoundError, "agents.retrieve", "agent_none")

It counts calls by method and errors by class, and validates every response with the SDK's models.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, Literal, Self

import anthropic
import httpx2
from anthropic import Anthropic, AsyncAnthropic

from bench.prove.figure import NotHeld, require
from bench.support.cluster import Cluster
from bench.support.response_validation import ValidationLedger
from bench.support.sdk import sync_validation

SdkKind = Literal["sync", "async"]
SDK_KINDS: Final[tuple[SdkKind, ...]] = ("sync", "async")
MODEL: Final = "claude-sonnet-4-5"
TOOLSET: Final = {"type": "agent_toolset_20260401"}
PATIENCE: Final = 60.0
IDLE: Final = "session.status_idle"


@dataclass(slots=True)
class CallTally:
    """Counts of calls and errors so far. Many clients may share one."""

    calls: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    ledger: ValidationLedger = field(default_factory=ValidationLedger)


class SdkClient:
    def __init__(
        self, cluster: Cluster, kind: SdkKind, *, tally: CallTally | None = None, key: str | None = None, **options: Any
    ) -> None:
        """`key` defaults to the cluster's own key; `options` are passed to the SDK."""
        self.cluster = cluster
        self.kind = kind
        self.tally = tally or CallTally()
        given: dict[str, Any] = {
            "api_key": key or cluster.key,
            "auth_token": None,
            "base_url": cluster.base_urls[0],
            **options,
        }
        self.sync = Anthropic(
            **given,
            http_client=anthropic.DefaultHttpxClient(**sync_validation.validating_client_options(self.tally.ledger)),
        )
        self.sdk = AsyncAnthropic(
            **given,
            http_client=anthropic.DefaultAsyncHttpxClient(
                transport=httpx2.AsyncHTTPTransport(), event_hooks={"response": [self.tally.ledger.hook]}, timeout=60
            ),
        )
        self._environment_id = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.sync.close()
        await self.sdk.close()

    async def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Calls an SDK method, such as `sessions.events.send`, and returns the SDK's own object."""
        self.tally.calls[f"{self.kind} {method.replace('with_raw_response.', '')}"] += 1
        if self.kind == "sync":
            return await asyncio.to_thread(attrgetter(method)(self.sync.beta), *args, **kwargs)
        return await attrgetter(method)(self.sdk.beta)(*args, **kwargs)

    async def list_all(self, method: str, *args: Any, **kwargs: Any) -> list[Any]:
        """Returns all items of a list, page by page, as the SDK iterates it."""
        self.tally.calls[f"{self.kind} {method}"] += 1
        if self.kind == "sync":
            listed = attrgetter(method)(self.sync.beta)
            return await asyncio.to_thread(lambda: list(listed(*args, **kwargs)))
        return [item async for item in attrgetter(method)(self.sdk.beta)(*args, **kwargs)]

    async def expect_error(
        self,
        error: type[anthropic.APIStatusError],
        method: str,
        *args: Any,
        field: str | None = None,
        **kwargs: Any,
    ) -> anthropic.APIStatusError:
        """Requires that the call raises exactly this error class and names this field."""
        try:
            response = await self.call(method, *args, **kwargs)
        except anthropic.APIStatusError as raised:
            require(holds=type(raised) is error, otherwise=f"{method} raised {raised!r}, not {error.__name__}")
            named = _error_of(raised).get("field")
            require(holds=field is None or named == field, otherwise=f"{method} named {named!r}, not {field!r}")
            require(
                holds=raised.request_id == (raised.body or {}).get("request_id"),  # pyrefly: ignore[missing-attribute]
                otherwise=f"{method}: the request id of {raised!r} differs from its header",
            )
            self.tally.refusals[type(raised).__name__] += 1
            return raised
        raise NotHeld(f"{method} was accepted instead of raising {error.__name__}: {response}")

    async def watch(
        self,
        watched: str,
        act: Callable[[], Awaitable[object]],
        *,
        until: Callable[[Any], bool] = lambda event: event.type == IDLE,
        method: str = "sessions.events.stream",
        **options: Any,
    ) -> list[Any]:
        """Opens a stream, then calls `act`, and returns the events up to the first for which `until` is true."""
        opened = await self.call(method, watched, **options)
        async with asyncio.timeout(PATIENCE):
            if self.kind == "sync":
                await act()
                return await asyncio.to_thread(_read, opened, until)
            async with opened:
                await act()
                found = []
                async for event in opened:
                    found.append(event)
                    if until(event):
                        return found
        raise NotHeld(f"the stream ended early: {[event.type for event in found]}")

    async def agent(self, **fields: Any) -> Any:
        return await self.call("agents.create", **{"name": "probe", "model": MODEL, "tools": [TOOLSET], **fields})

    async def environment(self, **fields: Any) -> Any:
        return await self.call("environments.create", **{"name": f"probe-{secrets.token_hex(6)}", **fields})

    async def session(self, agent: Any = None, **fields: Any) -> Any:
        """Creates a session, by default with a new agent, in an environment that this client's sessions share."""
        if "environment_id" not in fields:
            self._environment_id = self._environment_id or (await self.environment()).id
            fields["environment_id"] = self._environment_id
        return await self.call("sessions.create", agent=agent or (await self.agent()).id, **fields)

    async def send_script(self, session_id: str, script: str, **fields: Any) -> Any:
        """Sends a message that makes the scripted model follow this script."""
        return await self.call("sessions.events.send", session_id, events=[message(f"[[script:{script}]]", **fields)])

    async def run_turn(self, session_id: str, script: str, **options: Any) -> list[Any]:
        return await self.watch(session_id, lambda: self.send_script(session_id, script), **options)


def message(text: str, **fields: Any) -> Any:
    return {"type": "user.message", "content": [{"type": "text", "text": text}], **fields}


def event_types(received: Collection[Any]) -> list[str]:
    return [event.type for event in received]


def _read(opened: Any, until: Callable[[Any], bool]) -> list[Any]:
    found = []
    with opened:
        for event in opened:
            found.append(event)
            if until(event):
                return found
    raise NotHeld(f"the stream ended early: {event_types(found)}")


def _error_of(raised: anthropic.APIStatusError) -> dict[str, Any]:
    body = raised.body
    error: dict[str, Any] = body.get("error", {}) if isinstance(body, dict) else {}
    return error
