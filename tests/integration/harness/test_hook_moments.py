"""Hooks after a call and at the end of a turn, in the native harness."""

from collections.abc import Sequence

from footplate.domain import events as ev
from footplate.domain.hooks import Heard, HookEvent
from footplate.domain.permissions import Outcome as Gated
from footplate.domain.turns import TurnStatus
from footplate.harness.stops import MOST

from .twins import Chunk, Script, World, call, model_of, texts


def calling(command: str) -> Script:
    def answer(number: int) -> Sequence[Chunk]:
        return [f"done {number}"] if number else [call("bash", f'{{"command": "{command}"}}', "toolu_1")]

    return answer


def talking(number: int) -> Sequence[Chunk]:
    return [f"word {number}"]


async def test_what_hooks_say_of_a_call_comes_with_its_result(world: World) -> None:
    world.gate.heard = {HookEvent.AFTER_TOOL: [Heard("format it", ("by the way",))]}
    model, double = model_of(world, calling("echo hi; echo ho >&2"))
    assert (await world.run(model)).text == "done 1"
    (result,) = world.log.of(ev.AGENT_TOOL_RESULT)
    assert all(said in texts(result) for said in ("hi", "by the way", "Feedback of a hook on this call: format it"))
    assert "format it" in str(double.requests[1])
    fields = next(fields for event, fields in world.gate.told if event is HookEvent.AFTER_TOOL)
    assert fields["tool_input"] == {"command": "echo hi; echo ho >&2"}
    assert fields["tool_response"] == {"stdout": "hi\n", "stderr": "ho\n", "interrupted": False, "isImage": False}
    assert fields["tool_use_id"] == "toolu_1"


async def test_nothing_is_told_of_a_call_that_failed_or_was_denied(world: World) -> None:
    model, _ = model_of(world, calling("false"))
    await world.run(model)
    world.gate.words = {"bash": Gated.DENY}
    world.next_turn("turn_2", "Again")
    model, _ = model_of(world, calling("true"))
    await world.run(model)
    assert [event for event, _ in world.gate.told] == [HookEvent.STOP] * 2


async def test_a_turn_goes_on_when_a_hook_says_what_is_left(world: World) -> None:
    world.gate.heard = {HookEvent.STOP: [Heard("run the tests")]}
    model, double = model_of(world, talking)
    outcome = await world.run(model)
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "word 1")
    assert "run the tests" in str(double.requests[1])
    told = [fields for event, fields in world.gate.told if event is HookEvent.STOP]
    assert [(each["stop_hook_active"], each["last_assistant_message"]) for each in told] == [
        (False, "word 0"),
        (True, "word 1"),
    ]


async def test_but_not_for_ever(world: World) -> None:
    world.gate.heard = {HookEvent.STOP: [Heard("more")] * 100}
    model, double = model_of(world, talking)
    assert (await world.run(model)).status is TurnStatus.COMPLETED
    assert len(double.requests) == MOST + 1


async def test_a_lost_worker_does_not_take_the_end_of_a_turn_past_its_hooks(world: World) -> None:
    """The last response is in the log, and the worker was lost before the hooks ran."""
    model, double = model_of(world, talking)
    assert (await world.run(model)).text == "word 0"
    world.gate.heard = {HookEvent.STOP: [Heard("run the tests")]}
    assert (await world.run(model)).text == "word 1"
    assert len(double.requests) == 2
