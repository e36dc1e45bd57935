"""The harnesses without a model: a command runs at most once and under the gate, and a client's result is used once."""

import pytest

from footplate.domain.errors import Permanent
from footplate.domain.json import JsonObject
from footplate.domain.policy.permissions import PermissionOutcome as Gated
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.harness.steps.external import ExternalHarness
from footplate.harness.steps.shell import LOGGED_CHARACTERS, ShellHarness

from .doubles import Crash, World, text_of


async def run(world: World, command: str) -> TurnOutcome:
    world.content = [ev.text_block(command)]
    return await ShellHarness().run(world.context())


def command_of(outcome: TurnOutcome) -> JsonObject:
    command = outcome.data["command"]
    assert isinstance(command, dict)
    return command


@pytest.mark.requirement("O3", "O6")
async def test_a_result_has_status_streams_exit_code_and_duration(world: World) -> None:
    outcome = await run(world, "echo out; echo err >&2; exit_with() { return 3; }; exit_with")
    found = command_of(outcome)
    assert (outcome.status, outcome.step_failed, outcome.may_retry) == (TurnStatus.COMPLETED, True, True)
    assert (found["status"], found["exit_code"]) == ("failed", 3)
    assert isinstance(found["duration_ms"], int)
    assert outcome.error_message == "The command exited with code 3."
    use, result = world.log.of_type(ev.AGENT_TOOL_USE)[0], world.log.of_type(ev.AGENT_TOOL_RESULT)[0]
    assert result.body["tool_use_id"] == use.id
    assert world.log.entries == []  # the model of the session does not see the command


async def test_long_output_is_stored_completely(world: World) -> None:
    outcome = await run(world, f"head -c {LOGGED_CHARACTERS + 10} /dev/zero | tr '\\0' x")
    stream = command_of(outcome)["stdout"]
    assert isinstance(stream, dict)
    assert (stream["bytes"], stream["object"]) == (LOGGED_CHARACTERS + 10, "output-1")
    assert world.log.outputs == [b"x" * (LOGGED_CHARACTERS + 10)]


@pytest.mark.requirement("S8")
async def test_a_denied_command_does_not_run_and_is_not_repeated(world: World) -> None:
    world.gate.outcomes = {"touch x": Gated.DENY}
    outcome = await run(world, "touch x")
    assert (command_of(outcome)["status"], outcome.step_failed, outcome.may_retry) == ("denied", True, False)
    assert not world.environment.ran


async def test_a_command_that_needs_approval_waits_and_runs_once(world: World) -> None:
    world.gate.outcomes = {"touch x": Gated.ASK}
    parked = await run(world, "touch x")
    (use,) = world.log.of_type(ev.AGENT_TOOL_USE)
    assert (parked.status, parked.pending) == (TurnStatus.AWAITING, (use.id,))
    assert (await run(world, "touch x")).pending == (use.id,)
    world.confirm(use.id, "allow")
    assert command_of(await run(world, "touch x"))["status"] == "completed"
    assert command_of(await run(world, "touch x"))["status"] == "completed"  # the end of the turn was lost
    assert world.environment.ran == {"touch x": 1}


async def test_a_refused_approval_and_an_edited_one(world: World) -> None:
    world.gate.outcomes = {"touch x": Gated.ASK}
    await run(world, "touch x")
    world.confirm(world.log.of_type(ev.AGENT_TOOL_USE)[0].id, "deny", "not now")
    outcome = await run(world, "touch x")
    assert "not now" in outcome.text
    assert not outcome.may_retry
    world.next_turn("turn_2", "touch x")
    await run(world, "touch x")
    world.confirm(world.log.of_type(ev.AGENT_TOOL_USE)[1].id, "allow", updated={"command": "touch y"})
    await run(world, "touch x")
    assert world.environment.ran == {"touch y": 1}


@pytest.mark.parametrize("outcome", [Gated.ALLOW, Gated.ASK])
@pytest.mark.parametrize("after_commit", [False, True])
async def test_a_command_runs_at_most_once_whatever_append_is_the_last(
    world: World, outcome: Gated, *, after_commit: bool
) -> None:
    """Crashes at each append in turn, and continues until the turn ends."""
    for crash_at in range(1, 5):
        world.next_turn(f"turn_{crash_at}", "touch x")
        world.environment.ran.clear()
        world.gate.outcomes = {"touch x": outcome}
        world.log.appends, world.log.crash_at, world.log.crash_after_commit = 0, crash_at, after_commit
        for _ in range(6):
            try:
                found = await run(world, "touch x")
            except Crash:
                world.log.crash_at = None
                continue
            if found.status is TurnStatus.AWAITING:
                world.confirm(found.pending[0], "allow")
                continue
            break
        assert found.status is TurnStatus.COMPLETED
        assert world.environment.ran["touch x"] <= 1
        if command_of(found)["status"] == "completed":
            assert world.environment.ran["touch x"] == 1
        else:
            assert command_of(found)["status"] == "unknown"
        results = [event for event in world.log.events[world.first_event :] if event.type == ev.AGENT_TOOL_RESULT]
        assert len(results) == 1


async def test_an_interrupt_ends_a_command_that_waits(world: World) -> None:
    world.gate.outcomes = {"touch x": Gated.ASK}
    await run(world, "touch x")
    world.interrupt.set()
    assert (await run(world, "touch x")).status is TurnStatus.INTERRUPTED
    assert "had no effect" in text_of(world.log.of_type(ev.AGENT_TOOL_RESULT)[0])


async def test_a_message_without_text_is_refused(world: World) -> None:
    world.content = [{"type": "image", "source": {}}]
    with pytest.raises(Permanent):
        await ShellHarness().run(world.context())


@pytest.mark.requirement("R3")
async def test_an_external_step_asks_once_and_uses_the_result(world: World) -> None:
    harness = ExternalHarness()
    first, second = await harness.run(world.context()), await harness.run(world.context())
    (use,) = world.log.of_type(ev.AGENT_CUSTOM_TOOL_USE)
    assert first.pending == second.pending == (use.id,)
    world.send_tool_result(use.id, "it failed", is_error=True)
    ended = await harness.run(world.context())
    assert (ended.status, ended.step_failed, ended.error_message) == (TurnStatus.COMPLETED, True, "it failed")


async def test_a_failed_external_step_has_an_error_without_text(world: World) -> None:
    harness = ExternalHarness()
    await harness.run(world.context())
    (use,) = world.log.of_type(ev.AGENT_CUSTOM_TOOL_USE)
    world.send_tool_result(use.id, "", is_error=True)
    ended = await harness.run(world.context())
    assert (ended.step_failed, ended.error_message) == (True, "The step was reported as failed.")
