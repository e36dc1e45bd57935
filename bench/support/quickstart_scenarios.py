"""Scenarios with the official SDK: the quickstart, previews, custom tools and interrupts. Each raises when it fails.

The claim `official_sdk_quickstart` runs many of them at once; `tests/compat` runs each alone.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from anthropic.lib.sessions import AccumulatedEvent, accumulate_managed_agents_event
from anthropic.types.beta import BetaManagedAgentsSession

from bench.prove.figure import require
from bench.support.clients import MODEL, TOOLSET, Client, Event, Stream, texts
from bench.support.cluster import Cluster
from footplate.domain.sessions import events
from footplate.testing import Replies, hang, replies, text, thinking, tool, usage

Scenario = Callable[[Client], Awaitable[None]]

STOPS_WITHIN: Final = 10.0
"""Maximum seconds from an interrupt to idle: far below the duration of the interrupted work, with room for a busy
machine.
"""
_LONG: Final = 120
_WEATHER: Final = {
    "type": "custom",
    "name": "get_weather",
    "description": "The weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
SCRIPTS: Final[dict[str, Replies]] = {
    "hello": replies(
        [
            thinking("A file is wanted."),
            text("I will write it."),
            tool("bash", {"command": "echo hello > hello.txt && cat hello.txt"}),
            usage(input_tokens=30, output_tokens=12),
        ],
        [text("hello.txt is there.")],
    ),
    "again": replies([text("Still here.")]),
    "weather": replies(
        [tool("get_weather", {"city": "Oslo"}), tool("get_weather", {"city": "Rome"})],
        [text("Snow in Oslo, sun in Rome.")],
    ),
    "slow": replies([text("one word after another " * 50, chunks=_LONG * 10, delay=0.1)]),
    "stuck": replies([hang()]),
    "sleeper": replies([tool("bash", {"command": f"sleep {_LONG}"})], [text("never said")]),
}


async def install_scripts(cluster: Cluster) -> None:
    for name, script in SCRIPTS.items():
        await cluster.model.install(name, script)


def _message(script: str) -> Any:
    return {"type": "user.message", "content": [{"type": "text", "text": f"Please. [[script:{script}]]"}]}


async def two_turns_on_one_stream(client: Client) -> None:
    """Runs two turns with code exactly as a user of the SDK writes it; only the base URL is ours."""
    sdk = client.sdk
    agent = await sdk.beta.agents.create(name="Helper", model=MODEL, tools=[{"type": "agent_toolset_20260401"}])
    environment = await sdk.beta.environments.create(
        name=f"quickstart-{agent.id}", config={"type": "cloud", "networking": {"type": "unrestricted"}}
    )
    session = await sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id, title="Quickstart")
    outputs: list[str] = []
    turns = 0
    async with asyncio.timeout(60), await sdk.beta.sessions.events.stream(session.id) as stream:
        await sdk.beta.sessions.events.send(session.id, events=[_message("hello")])
        async for event in stream:
            match event.type:
                case "agent.message":
                    outputs += [block.text for block in event.content if block.type == "text"]
                case "agent.tool_use":
                    outputs.append(f"[{event.name}]")
                case "session.status_idle":
                    _equal(event.stop_reason.type, "end_turn")
                    turns += 1
                    if turns == 2:
                        break
                    await sdk.beta.sessions.events.send(session.id, events=[_message("again")])
                case _:
                    pass
    _equal(outputs, ["I will write it.", "[bash]", "hello.txt is there.", "Still here."])
    await _check_idle_session(await sdk.beta.sessions.retrieve(session.id), client)


async def _check_idle_session(session: BetaManagedAgentsSession, client: Client) -> None:
    _equal(session.status, "idle")
    require(holds=bool(session.usage.input_tokens), otherwise="the session does not report its usage")
    listed = [event async for event in client.sdk.beta.sessions.events.list(session.id)]
    _equal(listed[0].type, "user.message")
    _equal(listed[-1].type, "session.status_idle")
    results = [event for event in listed if event.type == "agent.tool_result"]
    _equal([str(result.is_error) for result in results], ["False"])


async def deltas(client: Client) -> None:
    """Checks that previews, joined by the SDK's accumulator, are a prefix of the finished event."""
    session_id = await client.session()
    accumulated: AccumulatedEvent | None = None
    previewed: dict[str, str] = {}
    finished: dict[str, str] = {}
    opened = await client.sdk.beta.sessions.events.stream(session_id, event_deltas=["agent.message"])
    async with asyncio.timeout(60), opened as stream:
        await client.send(session_id, _message("hello"))
        async for event in stream:
            accumulated = accumulate_managed_agents_event(accumulated, event)
            if event.type == "event_delta" and accumulated is not None:
                previewed[accumulated.id] = _event_text(accumulated)
            if event.type == "agent.message":
                finished[event.id] = _event_text(event)
            if event.type == "session.status_idle":
                break
    # A preview may be lost, for example on a busy machine; it is never wrong.
    for event_id, seen in previewed.items():
        require(holds=finished[event_id].startswith(seen), otherwise=f"previewed {seen!r} of {finished[event_id]!r}")
    _equal(list(finished.values()), ["I will write it.", "hello.txt is there."])


async def custom_tool(client: Client) -> None:
    """Checks a turn with two pending calls: after the first result the second still waits, then the turn continues."""
    agent_id = await client.agent(tools=[TOOLSET, _WEATHER])
    session_id = await client.session(agent_id)
    async with client.stream(session_id) as stream:
        await client.send(session_id, _message("weather"))
        asked = await stream.until_idle()
        calls = [event for event in asked if event["type"] == events.AGENT_CUSTOM_TOOL_USE]
        _equal([call["input"] for call in calls], [{"city": "Oslo"}, {"city": "Rome"}])
        _equal(_stop_reason(asked), {"type": "requires_action", "event_ids": [call["id"] for call in calls]})
        await client.send_tool_result(session_id, calls[0]["id"], "snow")
        _equal(_stop_reason(await stream.until_idle()), {"type": "requires_action", "event_ids": [calls[1]["id"]]})
        await client.send_tool_result(session_id, calls[1]["id"], "sun")
        rest = await stream.until_idle()
        _equal(texts(rest), ["Snow in Oslo, sun in Rome."])
        _equal(_stop_reason(rest), {"type": "end_turn"})


async def interrupt_of_a_slow_model(client: Client) -> None:
    """Checks that the text up to the interrupt is stored, and is a prefix of the full text."""

    async def wait_for_delta(stream: Stream) -> None:
        await stream.until("event_delta")

    ended = await _interrupted(client, "slow", wait_for_delta)
    (stored_text,) = texts(ended)
    require(
        holds=bool(stored_text) and ("one word after another " * 50).startswith(stored_text),
        otherwise=f"the stored text is {stored_text!r}",
    )


async def interrupt_of_a_silent_model(client: Client) -> None:
    async def wait_for_request(stream: Stream) -> None:
        await stream.until(events.MODEL_REQUEST_START)

    _equal(texts(await _interrupted(client, "stuck", wait_for_request)), [])


async def interrupt_of_a_running_tool(client: Client) -> None:
    """Checks that the interrupted call gets an error result, and that no further model request is made."""

    async def wait_for_call(stream: Stream) -> None:
        await stream.until(events.AGENT_TOOL_USE)

    ended = await _interrupted(client, "sleeper", wait_for_call)
    (result,) = [event for event in ended if event["type"] == events.AGENT_TOOL_RESULT]
    require(holds=result["is_error"], otherwise=f"an interrupted call looks like a success: {result}")
    _equal(texts(ended), [])


async def interrupt_of_nothing(client: Client) -> None:
    """Checks that an idle session processes an interrupt at once and stays idle."""
    session_id = await client.session()
    await client.interrupt(session_id)
    _equal([event["type"] for event in await client.events(session_id)], [events.USER_INTERRUPT])
    _equal(texts(await client.run_turn(session_id, "Go on. [[script:again]]")), ["Still here."])


async def _interrupted(client: Client, script: str, ready: Callable[[Stream], Awaitable[None]]) -> Sequence[Event]:
    """Interrupts a turn and returns the events from then to idle. Then checks that the session works as before."""
    session_id = await client.session()
    async with client.stream(session_id, deltas=["agent.message"]) as stream:
        await client.send(session_id, _message(script))
        await ready(stream)
        started = time.monotonic()
        event_id = await client.interrupt(session_id)
        ended = await stream.until_idle()
        took = time.monotonic() - started
        require(holds=took < STOPS_WITHIN, otherwise=f"an interrupt took {took:.1f} s to end the turn")
        _equal(_stop_reason(ended), {"type": "end_turn"})
        shown = [event["processed_at"] is not None for event in ended if event.get("id") == event_id]
        _equal(shown, [False, True])
        await client.send(session_id, _message("again"))
        _equal(texts(await stream.until_idle()), ["Still here."])
    return ended


SCENARIOS: Final[Sequence[Scenario]] = (
    two_turns_on_one_stream,
    deltas,
    custom_tool,
    interrupt_of_a_slow_model,
    interrupt_of_a_silent_model,
    interrupt_of_a_running_tool,
    interrupt_of_nothing,
)


def _stop_reason(received: Sequence[Event]) -> Any:
    return received[-1]["stop_reason"]


def _event_text(event: AccumulatedEvent) -> str:
    return "".join(block.text for block in event.content if block.type == "text")


def _equal(found: object, wanted: object) -> None:
    require(holds=found == wanted, otherwise=f"found {found!r} instead of {wanted!r}")
