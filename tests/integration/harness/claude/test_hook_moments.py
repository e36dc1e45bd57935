"""Hooks after a call, at the end of a turn and of a subagent, and before a compaction, with the real CLI."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.harness.claude.desk import Desk
from tests.integration.harness.claude.test_compaction import SCRIPTS as LONG
from tests.integration.harness.claude.test_compaction import WINDOW
from tests.integration.harness.claude.test_gate import confirm, results, uses
from tests.integration.harness.claude.test_subagents import SCOUT
from tests.integration.harness.claude.test_subagents import SCRIPTS as DELEGATED

from footplate.domain.hooks import Heard, HookEvent
from footplate.domain.json import JsonObject
from footplate.domain.permissions import Outcome as Gated
from footplate.domain.turns import TurnStatus
from footplate.harness.claude import options
from footplate.harness.stops import MOST
from footplate.testing import ScriptedModel, replies, reply, text, tool

SCRIPTS = {
    **DELEGATED,
    "long": LONG["long"],
    "after": LONG["after"],
    "short": LONG["short"],
    "one": replies([tool("Bash", {"command": "echo hi"})], [text("Done.")]),
    "fails": replies([tool("Bash", {"command": "false"})], [text("Done.")]),
    "talk": replies(reply(text("Word."), repeat=True)),
}


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[Desk]:
    async with ScriptedModel(SCRIPTS) as model:
        runner = Desk(model, tmp_path)
        yield runner
        await runner.close()


def told(runner: Desk, event: HookEvent) -> list[JsonObject]:
    return [fields for each, fields in runner.gate.told if each is event]


async def test_what_hooks_say_of_a_call_comes_with_its_result(runner: Desk) -> None:
    runner.gate.heard = {HookEvent.AFTER_TOOL: [Heard("format it", ("by the way",))]}
    assert (await runner.turn("Go. [[script:one]]")).text == "Done."
    last = str(runner.model.requests()[-1].body)
    assert "format it" in last
    assert "by the way" in last
    (fields,) = told(runner, HookEvent.AFTER_TOOL)
    assert fields["tool_input"] == {"command": "echo hi"}
    assert isinstance(fields["tool_response"], dict)
    assert fields["tool_response"]["stdout"] == "hi"
    assert len(results(runner)) == 1


@pytest.mark.parametrize("refuses", [False, True])
async def test_files_of_a_call_are_uploaded_while_its_result_is_written_down(runner: Desk, *, refuses: bool) -> None:
    runner.log.refuses_output = refuses
    assert (await runner.turn("Go. [[script:one]]")).text == "Done."
    assert runner.log.uploads == 1
    assert len(results(runner)) == 1


async def test_nothing_is_told_of_a_call_that_failed_or_was_denied(runner: Desk) -> None:
    await runner.turn("Go. [[script:fails]]")
    runner.gate.words = {"Bash": Gated.DENY}
    await runner.turn("Go. [[script:one]]")
    assert told(runner, HookEvent.AFTER_TOOL) == []


async def test_also_of_a_call_that_the_worker_makes(runner: Desk) -> None:
    runner.gate.words = {"Bash": Gated.ASK}
    runner.gate.heard = {HookEvent.AFTER_TOOL: [Heard("format it")]}
    assert (await runner.turn("Go. [[script:one]]")).status is TurnStatus.AWAITING
    assert told(runner, HookEvent.AFTER_TOOL) == []
    (asked,) = uses(runner)
    confirm(runner, asked.id, "allow")
    assert (await runner.try_it()).text == "Done."
    assert "format it" in str(runner.model.requests()[-1].body)


async def test_a_turn_goes_on_when_a_hook_says_what_is_left(runner: Desk) -> None:
    runner.gate.heard = {HookEvent.STOP: [Heard("run the tests")]}
    outcome = await runner.turn("Go. [[script:talk]]")
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "Word.")
    assert [fields["stop_hook_active"] for fields in told(runner, HookEvent.STOP)] == [False, True]
    assert len(runner.model.requests()) == 2
    assert "run the tests" in str(runner.model.requests()[-1].body)
    assert (await runner.turn("Again. [[script:talk]]")).text == "Word."
    assert "run the tests" in str(runner.model.requests()[-1].body)


async def test_but_not_for_ever(runner: Desk) -> None:
    runner.gate.heard = {HookEvent.STOP: [Heard("more")] * 100}
    assert (await runner.turn("Go. [[script:talk]]")).status is TurnStatus.COMPLETED
    assert len(runner.model.requests()) == MOST + 1


async def test_a_lost_worker_does_not_take_the_end_of_a_turn_past_its_hooks(runner: Desk) -> None:
    assert (await runner.turn("Go. [[script:talk]]")).text == "Word."
    runner.gate.heard = {HookEvent.STOP: [Heard("run the tests")]}
    assert (await runner.try_it("another")).text == "Word."
    assert len(runner.model.requests()) == 2
    assert "run the tests" in str(runner.model.requests()[-1].body)


async def test_the_end_of_a_subagent(runner: Desk) -> None:
    runner.subagents = (SCOUT,)
    assert (await runner.turn("Go. [[script:ask]]")).text == "It looked."
    (fields,) = told(runner, HookEvent.SUBAGENT_STOP)
    assert fields["agent_type"] == "scout"
    inside = next(each for each in told(runner, HookEvent.AFTER_TOOL) if each["tool_input"] == {"command": "echo hi"})
    assert inside["tool_response"]


async def test_before_a_compaction(runner: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(options._VARIABLES, WINDOW, "100000")
    await runner.turn("First of all. [[script:short]]")
    assert (await runner.turn("Look. [[script:long]]")).text == "After it."
    (fields,) = told(runner, HookEvent.COMPACTION)
    assert fields["trigger"] == "auto"
