"""The loop of the native harness: what it writes, in which order, and how a turn ends."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart

from footplate.domain import events as ev
from footplate.domain.ports import SteerMessage
from footplate.domain.turns import TurnStatus

from .twins import Chunk, World, call, model_of, texts, thought


async def test_answer_without_tools(world: World) -> None:
    model, double = model_of(world, lambda _: [thought("hm"), "Good ", "day"])
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


async def test_previews_carry_the_ids_and_text_of_the_finished_events(world: World) -> None:
    model, _ = model_of(world, lambda _: [thought("hm"), "Good ", "day"])
    await world.run(model)
    shown = {preview.event_id: (preview.event_type, preview.text) for preview in world.log.previews}
    thinking, message = world.log.events[1:3]
    assert shown == {thinking.id: ("agent.thinking", "hm"), message.id: ("agent.message", "Good day")}
    assert texts(message) == "Good day"


async def test_tool_round_saves_writes_and_keeps_intent_before_effect(world: World) -> None:
    model, double = model_of(
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
    use, result = world.log.of("agent.tool_use")[0], world.log.of("agent.tool_result")[0]
    assert result.body["tool_use_id"] == use.id
    assert texts(result) == "hi"
    assert isinstance(double.requests[1][-1], ModelRequest)


async def test_intent_is_durable_before_the_tool_starts(world: World) -> None:
    seen: list[int] = []
    original = world.environment.shell

    async def shell(command: str, *, timeout: float) -> object:  # noqa: ASYNC109 - the port's
        seen.append(len(world.log.of("agent.tool_use")))
        return await original(command, timeout=timeout)

    world.environment.shell = shell  # type: ignore[method-assign, assignment]
    model, _ = model_of(world, lambda n: [call("bash", '{"command": "true"}', "c1")] if n == 0 else ["Done"])
    await world.run(model)
    assert seen == [1]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("teleport", "{}", "There is no tool 'teleport'"),
        ("bash", '{"command": ', "not valid JSON"),
        ("bash", "[1]", "must be a JSON object"),
        ("bash", '{"cmd": "ls"}', "cmd: Extra inputs are not permitted"),
        ("bash", "{}", "needs a command"),
        ("read", '{"file_path": "gone"}', "There is no file gone"),
        ("ask", "[1]", "must be a JSON object"),
    ],
)
async def test_a_wrong_call_is_a_failed_result_not_a_failed_turn(
    world: World, name: str, arguments: str, said: str
) -> None:
    model, double = model_of(world, lambda n: [call(name, arguments, "c1")] if n == 0 else ["I see"])
    outcome = await world.run(model)
    assert outcome.status is TurnStatus.COMPLETED
    (result,) = world.log.of("agent.tool_result")
    assert result.body["is_error"] is True
    assert said in texts(result)
    (part,) = double.requests[1][-1].parts
    assert isinstance(part, ToolReturnPart)
    assert part.outcome == "failed"


async def test_a_tool_that_raises_is_a_failed_result(world: World) -> None:
    async def broken(command: str, *, timeout: float) -> object:  # noqa: ASYNC109 - the port's
        raise OSError("no more processes")

    world.environment.shell = broken  # type: ignore[method-assign, assignment]
    model, _ = model_of(world, lambda n: [call("bash", '{"command": "ls"}', "c1")] if n == 0 else ["Well"])
    assert (await world.run(model)).status is TurnStatus.COMPLETED
    assert "no more processes" in texts(world.log.of("agent.tool_result")[0])


async def test_a_disabled_tool_has_no_effect(world: World) -> None:
    world.config = replace(world.config, tools=("read",))
    model, _ = model_of(world, lambda n: [call("bash", '{"command": "touch x"}', "c1")] if n == 0 else ["No"])
    await world.run(model)
    assert not world.environment.ran
    assert world.log.of("agent.tool_result")[0].body["is_error"] is True


async def test_iteration_limit(world: World) -> None:
    world.config = replace(world.config, max_iterations=3)
    model, double = model_of(world, lambda n: [call("bash", '{"command": "true"}', f"c{n}")])
    outcome = await world.run(model)
    assert outcome.status is TurnStatus.LIMIT_REACHED
    assert outcome.error_type == "tool_use_limit_reached_error"
    assert len(double.requests) == 3
    assert len(world.log.of("span.model_request_start")) == len(world.log.of("span.model_request_end")) == 3


async def test_custom_tools_wait_until_the_built_in_ones_are_done(world: World) -> None:
    def script(n: int) -> list[Chunk]:
        if n:
            return ["Thanks"]
        return [
            call("ask", '{"q": 1}', "c1", 0),
            call("bash", '{"command": "true"}', "c2", 1),
            call("ask", '{"q": 2}', "c3", 2),
        ]

    model, double = model_of(world, script)
    outcome = await world.run(model)
    asks = world.log.of("agent.custom_tool_use")
    assert outcome.status is TurnStatus.AWAITING
    assert outcome.pending == tuple(event.id for event in asks)
    assert world.environment.ran["true"] == 1

    world.answer(asks[1].id, "two")
    partly = await world.run(model)
    assert (partly.status, partly.pending) == (TurnStatus.AWAITING, (asks[0].id,))
    assert len(double.requests) == 1

    world.answer(asks[0].id, "one", is_error=True)
    assert (await world.run(model)).text == "Thanks"
    returns = [part for part in double.requests[1][-1].parts if isinstance(part, ToolReturnPart)]
    assert [(part.tool_call_id, part.content, part.outcome) for part in returns] == [
        ("c1", "one", "failed"),
        ("c2", "[no output]", "success"),
        ("c3", "two", "success"),
    ]


async def test_a_new_message_instead_of_an_answer_closes_the_call(world: World) -> None:
    model, double = model_of(world, lambda n: [call("ask", "{}", "c1")] if n == 0 else ["Fine"])
    assert (await world.run(model)).status is TurnStatus.AWAITING
    world.next_turn("turn_2", "Never mind")
    assert (await world.run(model)).text == "Fine"
    returned, prompt = double.requests[1][-1].parts
    assert isinstance(returned, ToolReturnPart)
    assert "not answered" in str(returned.content)
    assert isinstance(prompt, UserPromptPart)
    assert prompt.content == "Never mind"


async def test_steering_joins_at_the_next_request_and_after_the_last_word(world: World) -> None:
    def script(n: int) -> list[Chunk]:
        world.steering.append(SteerMessage(f"sevt_{n}", [ev.text_block(f"and {n}")]))
        if n == 0:
            return [call("bash", '{"command": "true"}', "c1")]
        if n == 2:
            world.steering.clear()
        return [f"Answer {n}"]

    model, double = model_of(world, script)
    outcome = await world.run(model)
    assert outcome.text == "Answer 2"
    asked = [request[-1].parts[-1] for request in double.requests]
    assert [part.content for part in asked if isinstance(part, UserPromptPart)] == ["Hello", "and 0", "and 1"]


async def test_steering_that_is_offered_again_joins_once(world: World) -> None:
    message = SteerMessage("sevt_s", [ev.text_block("more")])

    def script(n: int) -> list[Chunk]:
        world.steering = [message]
        return [call("bash", '{"command": "true"}', f"c{n}")] if n < 2 else ["Done"]

    model, _ = model_of(world, script)
    await world.run(model)
    assert [entry.body["input"] for entry in world.entries("request")] == ["prompt", "sevt_s"]


async def test_interrupt_keeps_half_a_message(world: World) -> None:
    async def slow(_: int) -> AsyncIterator[Chunk]:
        yield "Half a "
        yield "sentence"
        world.interrupt.set()
        await asyncio.sleep(60)

    model, _ = model_of(world, slow)
    outcome = await asyncio.wait_for(world.run(model), 5)
    assert (outcome.status, outcome.text) == (TurnStatus.INTERRUPTED, "Half a sentence")
    (message,) = world.log.of("agent.message")
    assert (message.id, texts(message)) == (world.log.previews[0].event_id, "Half a sentence")
    assert world.log.of("span.model_request_end")[0].body["is_error"] is True
    last = world.messages[-1]
    assert isinstance(last, ModelResponse)
    assert last.text == "Half a sentence"
    again = await world.run(model)
    assert again.status is TurnStatus.INTERRUPTED
    assert len(world.log.of("span.model_request_start")) == 1


async def test_interrupt_stops_a_running_tool_and_closes_the_others(world: World) -> None:
    model, double = model_of(
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
    assert (await asyncio.wait_for(running, 5)).status is TurnStatus.INTERRUPTED
    assert world.environment.ran == {"sleep 60": 1}
    (result,) = world.log.of("agent.tool_result")
    assert "Interrupted by the user" in texts(result)

    world.next_turn("turn_2", "Go on")
    assert (await world.run(model)).text == "Next"
    returns = [part for part in double.requests[1][-1].parts if isinstance(part, ToolReturnPart)]
    assert [part.tool_call_id for part in returns] == ["c0", "c1", "c2"]
    assert all(part.outcome == "failed" for part in returns)


async def test_interrupt_before_the_first_request_asks_no_model(world: World) -> None:
    world.interrupt.set()
    model, double = model_of(world, lambda _: ["Hi"])
    assert (await world.run(model)).status is TurnStatus.INTERRUPTED
    assert not double.requests
    assert len(world.entries("request")) == 1


async def test_a_defect_of_ours_closes_the_span_and_looks_like_one(world: World) -> None:
    async def broken(_: int) -> AsyncIterator[Chunk]:
        yield "a"
        raise KeyError("defect")

    model, _ = model_of(world, broken)
    with pytest.raises(KeyError):
        await world.run(model)
    assert world.log.of("span.model_request_end")[0].body["is_error"] is True
    assert not world.entries("response")


async def test_cancelling_a_turn_ends_its_tool(world: World) -> None:
    model, _ = model_of(world, lambda _: [call("bash", '{"command": "sleep 60"}', "c1")])
    running = asyncio.create_task(world.run(model))
    await asyncio.wait_for(world.environment.started.wait(), 5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5)
    assert not world.log.of("agent.tool_result")
