"""Hooks after a call and at the end of a turn, in the native harness."""

from collections.abc import Sequence

from footplate.domain.policy.hooks import HookEvent, HookFeedback
from footplate.domain.policy.permissions import PermissionOutcome as Gated
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.turns import TurnStatus
from footplate.harness.stop_hooks import MAX_CONTINUATIONS

from .doubles import Chunk, Script, World, call, make_model, text_of


def script_with_call(command: str) -> Script:
    def respond(number: int) -> Sequence[Chunk]:
        return [f"done {number}"] if number else [call("bash", f'{{"command": "{command}"}}', "toolu_1")]

    return respond


def script_of_text(number: int) -> Sequence[Chunk]:
    return [f"word {number}"]


async def test_hook_feedback_on_a_call_is_added_to_its_result(world: World) -> None:
    world.gate.hook_feedback = {HookEvent.AFTER_TOOL: [HookFeedback("format it", ("by the way",))]}
    model, double = make_model(world, script_with_call("echo hi; echo ho >&2"))
    assert (await world.run(model)).text == "done 1"
    (result,) = world.log.of_type(ev.AGENT_TOOL_RESULT)
    assert all(
        expected in text_of(result) for expected in ("hi", "by the way", "Feedback from a hook on this call: format it")
    )
    assert "format it" in str(double.requests[1])
    fields = next(fields for event, fields in world.gate.hook_events if event is HookEvent.AFTER_TOOL)
    assert fields["tool_input"] == {"command": "echo hi; echo ho >&2"}
    assert fields["tool_response"] == {"stdout": "hi\n", "stderr": "ho\n", "interrupted": False, "isImage": False}
    assert fields["tool_use_id"] == "toolu_1"


async def test_no_hooks_run_after_a_failed_or_denied_call(world: World) -> None:
    model, _ = make_model(world, script_with_call("false"))
    await world.run(model)
    world.gate.outcomes = {"bash": Gated.DENY}
    world.next_turn("turn_2", "Again")
    model, _ = make_model(world, script_with_call("true"))
    await world.run(model)
    assert [event for event, _ in world.gate.hook_events] == [HookEvent.STOP] * 2


async def test_a_stop_hook_makes_the_turn_continue(world: World) -> None:
    world.gate.hook_feedback = {HookEvent.STOP: [HookFeedback("run the tests")]}
    model, double = make_model(world, script_of_text)
    outcome = await world.run(model)
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "word 1")
    assert "run the tests" in str(double.requests[1])
    stop_fields = [fields for event, fields in world.gate.hook_events if event is HookEvent.STOP]
    assert [(each["stop_hook_active"], each["last_assistant_message"]) for each in stop_fields] == [
        (False, "word 0"),
        (True, "word 1"),
    ]


async def test_stop_hooks_cannot_continue_a_turn_forever(world: World) -> None:
    world.gate.hook_feedback = {HookEvent.STOP: [HookFeedback("more")] * 100}
    model, double = make_model(world, script_of_text)
    assert (await world.run(model)).status is TurnStatus.COMPLETED
    assert len(double.requests) == MAX_CONTINUATIONS + 1


async def test_stop_hooks_run_even_if_the_worker_is_lost_at_the_end(world: World) -> None:
    """The last response is in the log, and the worker was lost before the hooks ran."""
    model, double = make_model(world, script_of_text)
    assert (await world.run(model)).text == "word 0"
    world.gate.hook_feedback = {HookEvent.STOP: [HookFeedback("run the tests")]}
    assert (await world.run(model)).text == "word 1"
    assert len(double.requests) == 2
