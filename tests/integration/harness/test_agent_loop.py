"""The agent loop of the native harness: the order of its writes, failing tools, interrupts, and how a turn ends."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart

from footplate.domain.files.attachments import AttachmentFailed
from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import SteerMessage
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.turns import TurnStatus
from footplate.harness.native.harness import NativeHarness

from .doubles import Chunk, World, call, make_model, text_of, thought

pytestmark = pytest.mark.timing

PICTURE: JsonObject = {"type": "base64", "media_type": "image/png", "data": "aGk="}


async def test_a_response_without_tools_ends_the_turn(world: World) -> None:
    model, double = make_model(world, lambda _: [thought("hm"), "Good ", "day"])
    outcome = await world.run(model)
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "Good day")
    assert [event.type for event in world.log.events] == [
        "span.model_request_start",
        "agent.thinking",
        "agent.message",
        "span.model_request_end",
    ]
    assert [entry.kind for entry in world.log.entries] == ["request", "response"]
    assert world.log.appends == 2
    assert double.instructions == ["Be brief."]


@pytest.mark.requirement("S2")
async def test_previews_carry_the_ids_and_text_of_the_finished_events(world: World) -> None:
    model, _ = make_model(world, lambda _: [thought("hm"), "Good ", "day"])
    await world.run(model)
    shown = {preview.event_id: (preview.event_type, preview.text) for preview in world.log.previews}
    thinking, message = world.log.events[1:3]
    assert shown == {thinking.id: ("agent.thinking", "hm"), message.id: ("agent.message", "Good day")}
    assert text_of(message) == "Good day"


@pytest.mark.requirement("S6")
async def test_a_tool_call_is_logged_before_it_runs_with_few_writes(world: World) -> None:
    model, double = make_model(
        world, lambda n: ["Look.", call("bash", '{"command": "echo hi"}', "c1")] if n == 0 else ["Done"]
    )
    outcome = await world.run(model)
    assert outcome.text == "Done"
    assert [event.type for event in world.log.events] == [
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "agent.tool_use",
        "agent.tool_result",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
    ]
    # start+prompt, response, intent, result+start, response
    assert world.log.appends == 5
    use, result = world.log.of_type("agent.tool_use")[0], world.log.of_type("agent.tool_result")[0]
    assert result.body["tool_use_id"] == use.id
    assert text_of(result) == "hi"
    assert isinstance(double.requests[1][-1], ModelRequest)


async def test_intent_is_durable_before_the_tool_starts(world: World) -> None:
    seen: list[int] = []
    original = world.environment.shell

    async def shell(command: str, *, timeout: float) -> object:  # noqa: ASYNC109 - the port's
        seen.append(len(world.log.of_type("agent.tool_use")))
        return await original(command, timeout=timeout)

    world.environment.shell = shell  # pyrefly: ignore[bad-assignment, method-assign]
    model, _ = make_model(world, lambda n: [call("bash", '{"command": "true"}', "c1")] if n == 0 else ["Done"])
    await world.run(model)
    assert seen == [1]


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("teleport", "{}", "The tool 'teleport' does not exist"),
        ("bash", '{"command": ', "not valid JSON"),
        ("bash", "[1]", "must be a JSON object"),
        ("bash", '{"cmd": "ls"}', "cmd: Extra inputs are not permitted"),
        ("bash", "{}", "must contain a command"),
        ("read", '{"file_path": "gone"}', "The file gone does not exist"),
        ("ask", "[1]", "must be a JSON object"),
    ],
)
@pytest.mark.requirement("F5")
async def test_a_wrong_call_is_a_failed_result_not_a_failed_turn(
    world: World, name: str, arguments: str, problem: str
) -> None:
    model, double = make_model(world, lambda n: [call(name, arguments, "c1")] if n == 0 else ["I see"])
    outcome = await world.run(model)
    assert outcome.status is TurnStatus.COMPLETED
    (result,) = world.log.of_type("agent.tool_result")
    assert result.body["is_error"] is True
    assert problem in text_of(result)
    (part,) = double.requests[1][-1].parts
    assert isinstance(part, ToolReturnPart)
    assert part.outcome == "failed"


@pytest.mark.requirement("F5")
async def test_a_tool_that_raises_is_a_failed_result(world: World) -> None:
    async def broken(command: str, *, timeout: float) -> object:  # noqa: ASYNC109 - the port's
        raise OSError("no more processes")

    world.environment.shell = broken  # pyrefly: ignore[bad-assignment, method-assign]
    model, _ = make_model(world, lambda n: [call("bash", '{"command": "ls"}', "c1")] if n == 0 else ["Well"])
    assert (await world.run(model)).status is TurnStatus.COMPLETED
    assert "no more processes" in text_of(world.log.of_type("agent.tool_result")[0])


async def test_a_disabled_tool_has_no_effect(world: World) -> None:
    world.config = replace(world.config, tools=("read",))
    model, _ = make_model(world, lambda n: [call("bash", '{"command": "touch x"}', "c1")] if n == 0 else ["No"])
    await world.run(model)
    assert not world.environment.ran
    assert world.log.of_type("agent.tool_result")[0].body["is_error"] is True


@pytest.mark.requirement("F3")
async def test_iteration_limit(world: World) -> None:
    world.config = replace(world.config, max_iterations=3)
    model, double = make_model(world, lambda n: [call("bash", '{"command": "true"}', f"c{n}")])
    outcome = await world.run(model)
    assert outcome.status is TurnStatus.LIMIT_REACHED
    assert outcome.error_type == "tool_use_limit_reached_error"
    assert len(double.requests) == 3
    assert len(world.log.of_type("span.model_request_start")) == len(world.log.of_type("span.model_request_end")) == 3


async def test_custom_tools_wait_until_the_built_in_ones_are_done(world: World) -> None:
    def script(n: int) -> list[Chunk]:
        if n:
            return ["Thanks"]
        return [
            call("ask", '{"q": 1}', "c1", 0),
            call("bash", '{"command": "true"}', "c2", 1),
            call("ask", '{"q": 2}', "c3", 2),
        ]

    model, double = make_model(world, script)
    outcome = await world.run(model)
    asks = world.log.of_type("agent.custom_tool_use")
    assert outcome.status is TurnStatus.AWAITING
    assert outcome.pending == tuple(event.id for event in asks)
    assert world.environment.ran["true"] == 1

    world.send_tool_result(asks[1].id, "two")
    partly = await world.run(model)
    assert (partly.status, partly.pending) == (TurnStatus.AWAITING, (asks[0].id,))
    assert len(double.requests) == 1

    world.send_tool_result(asks[0].id, "one", is_error=True)
    assert (await world.run(model)).text == "Thanks"
    returns = [part for part in double.requests[1][-1].parts if isinstance(part, ToolReturnPart)]
    assert [(part.tool_call_id, part.content, part.outcome) for part in returns] == [
        ("c1", "one", "failed"),
        ("c2", "[no output]", "success"),
        ("c3", "two", "success"),
    ]


async def test_a_new_message_instead_of_a_result_closes_the_call(world: World) -> None:
    model, double = make_model(world, lambda n: [call("ask", "{}", "c1")] if n == 0 else ["Fine"])
    assert (await world.run(model)).status is TurnStatus.AWAITING
    world.next_turn("turn_2", "Never mind")
    assert (await world.run(model)).text == "Fine"
    returned, prompt = double.requests[1][-1].parts
    assert isinstance(returned, ToolReturnPart)
    assert "has no result" in str(returned.content)
    assert isinstance(prompt, UserPromptPart)
    assert prompt.content == "Never mind"


async def test_steering_joins_at_the_next_request_and_after_the_last_response(world: World) -> None:
    def script(n: int) -> list[Chunk]:
        world.steering.append(SteerMessage(f"sevt_{n}", [ev.text_block(f"and {n}")]))
        if n == 0:
            return [call("bash", '{"command": "true"}', "c1")]
        if n == 2:
            world.steering.clear()
        return [f"Answer {n}"]

    model, double = make_model(world, script)
    outcome = await world.run(model)
    assert outcome.text == "Answer 2"
    asked = [request[-1].parts[-1] for request in double.requests]
    assert [part.content for part in asked if isinstance(part, UserPromptPart)] == ["Hello", "and 0", "and 1"]


async def test_steering_that_is_offered_again_joins_once(world: World) -> None:
    message = SteerMessage("sevt_s", [ev.text_block("more")])

    def script(n: int) -> list[Chunk]:
        world.steering = [message]
        return [call("bash", '{"command": "true"}', f"c{n}")] if n < 2 else ["Done"]

    model, _ = make_model(world, script)
    await world.run(model)
    assert [entry.body["input"] for entry in world.entries("request")] == ["prompt", "sevt_s"]


async def test_an_interrupt_stores_the_partial_message(world: World) -> None:
    async def slow(_: int) -> AsyncIterator[Chunk]:
        yield "Half a "
        yield "sentence"
        world.interrupt.set()
        await asyncio.sleep(60)

    model, _ = make_model(world, slow)
    outcome = await asyncio.wait_for(world.run(model), 5)
    assert (outcome.status, outcome.text) == (TurnStatus.INTERRUPTED, "Half a sentence")
    (message,) = world.log.of_type("agent.message")
    assert (message.id, text_of(message)) == (world.log.previews[0].event_id, "Half a sentence")
    assert world.log.of_type("span.model_request_end")[0].body["is_error"] is True
    last = world.messages[-1]
    assert isinstance(last, ModelResponse)
    assert last.text == "Half a sentence"
    again = await world.run(model)
    assert again.status is TurnStatus.INTERRUPTED
    assert len(world.log.of_type("span.model_request_start")) == 1


async def test_interrupt_stops_a_running_tool_and_closes_the_others(world: World) -> None:
    model, double = make_model(
        world,
        lambda n: (
            [
                call("ask", "{}", "c0", 0),
                call("bash", '{"command": "sleep 60"}', "c1", 1),
                call("bash", '{"command": "touch x"}', "c2", 2),
            ]
            if n == 0
            else ["Next"]
        ),
    )
    running = asyncio.create_task(world.run(model))
    await asyncio.wait_for(world.environment.started.wait(), 5)
    world.interrupt.set()
    assert (await asyncio.wait_for(running, 30)).status is TurnStatus.INTERRUPTED
    assert world.environment.ran == {"sleep 60": 1}
    (result,) = world.log.of_type("agent.tool_result")
    assert "The user interrupted this call" in text_of(result)

    world.next_turn("turn_2", "Go on")
    assert (await world.run(model)).text == "Next"
    returns = [part for part in double.requests[1][-1].parts if isinstance(part, ToolReturnPart)]
    assert [part.tool_call_id for part in returns] == ["c0", "c1", "c2"]
    assert all(part.outcome == "failed" for part in returns)


async def test_an_interrupt_before_the_first_request_calls_no_model(world: World) -> None:
    world.interrupt.set()
    model, double = make_model(world, lambda _: ["Hi"])
    assert (await world.run(model)).status is TurnStatus.INTERRUPTED
    assert not double.requests
    assert len(world.entries("request")) == 1


async def test_an_unexpected_error_closes_the_span_and_is_raised(world: World) -> None:
    async def broken(_: int) -> AsyncIterator[Chunk]:
        yield "a"
        raise KeyError("defect")

    model, _ = make_model(world, broken)
    with pytest.raises(KeyError):
        await world.run(model)
    assert world.log.of_type("span.model_request_end")[0].body["is_error"] is True
    assert not world.entries("response")


async def test_cancelling_a_turn_ends_its_tool(world: World) -> None:
    model, _ = make_model(world, lambda _: [call("bash", '{"command": "sleep 60"}', "c1")])
    running = asyncio.create_task(world.run(model))
    await asyncio.wait_for(world.environment.started.wait(), 5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 30)
    assert not world.log.of_type("agent.tool_result")


async def test_an_input_is_resolved_once_and_right_before_it_is_stored(world: World) -> None:
    asked: list[Sequence[JsonObject]] = []

    async def resolve(blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
        asked.append(blocks)
        return [ev.text_block("resolved"), {"type": "image", "source": PICTURE}]

    model, _ = make_model(world, lambda n: [call("bash", '{"command": "echo hi"}', "c1")] if n == 0 else ["Done"])
    world.steering = [SteerMessage("sevt_1", [ev.text_block("More")])]
    harness = NativeHarness(lambda *_: model, world.web)
    await harness.run(replace(world.context(), resolve_attachments=resolve, resolve_steering=resolve))
    assert asked == [world.content, [ev.text_block("More")]]
    prompts = [entry for entry in world.log.entries if entry.kind == "request"]
    assert all("resolved" in str(entry.body) and "image/png" in str(entry.body) for entry in prompts)
    await harness.run(replace(world.context(), resolve_attachments=resolve, resolve_steering=resolve))
    assert len(asked) == 2, "a later attempt finds what is stored"


async def test_a_failed_attachment_ends_the_turn_before_the_model_request(world: World) -> None:
    async def resolve(_: Sequence[JsonObject]) -> Sequence[JsonObject]:
        raise AttachmentFailed("The file is gone.")

    model, double = make_model(world, lambda _: ["Good day"])
    with pytest.raises(AttachmentFailed):
        await NativeHarness(lambda *_: model, world.web).run(replace(world.context(), resolve_attachments=resolve))
    assert (world.log.entries, double.instructions) == ([], [])


async def test_a_result_is_stored_before_the_attachments_of_a_joining_message_are_fetched(world: World) -> None:
    async def resolve(blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
        assert world.log.of_type("agent.tool_result"), "a slow URL holds nothing back"
        assert any(entry.kind == "tool_return" for entry in world.log.entries)
        return blocks

    def respond(number: int) -> list[Chunk]:
        if number == 0:
            world.steering = [SteerMessage("sevt_1", [ev.text_block("More")])]
        return [call("bash", '{"command": "echo hi"}', "c1")] if number == 0 else ["Done"]

    model, double = make_model(world, respond)
    outcome = await NativeHarness(lambda *_: model, world.web).run(replace(world.context(), resolve_steering=resolve))
    assert outcome.text == "Done"
    result, more = double.requests[1][-1].parts
    assert isinstance(result, ToolReturnPart)
    assert isinstance(more, UserPromptPart)
