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
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with ScriptedModel(SCRIPTS) as model:
        desk = Desk(model, tmp_path)
        yield desk
        await desk.close()


def told(desk: Desk, event: HookEvent) -> list[JsonObject]:
    return [fields for each, fields in desk.gate.told if each is event]


async def test_what_hooks_say_of_a_call_comes_with_its_result(desk: Desk) -> None:
    desk.gate.heard = {HookEvent.AFTER_TOOL: [Heard("format it", ("by the way",))]}
    assert (await desk.turn("Go. [[script:one]]")).text == "Done."
    last = str(desk.model.requests()[-1].body)
    assert "format it" in last
    assert "by the way" in last
    (fields,) = told(desk, HookEvent.AFTER_TOOL)
    assert fields["tool_input"] == {"command": "echo hi"}
    assert isinstance(fields["tool_response"], dict)
    assert fields["tool_response"]["stdout"] == "hi"
    assert len(results(desk)) == 1


@pytest.mark.parametrize("refuses", [False, True])
async def test_files_of_a_call_are_uploaded_while_its_result_is_written_down(desk: Desk, *, refuses: bool) -> None:
    desk.log.refuses_output = refuses
    assert (await desk.turn("Go. [[script:one]]")).text == "Done."
    assert desk.log.uploads == 1
    assert len(results(desk)) == 1


async def test_nothing_is_told_of_a_call_that_failed_or_was_denied(desk: Desk) -> None:
    await desk.turn("Go. [[script:fails]]")
    desk.gate.words = {"Bash": Gated.DENY}
    await desk.turn("Go. [[script:one]]")
    assert told(desk, HookEvent.AFTER_TOOL) == []


async def test_also_of_a_call_that_the_worker_makes(desk: Desk) -> None:
    desk.gate.words = {"Bash": Gated.ASK}
    desk.gate.heard = {HookEvent.AFTER_TOOL: [Heard("format it")]}
    assert (await desk.turn("Go. [[script:one]]")).status is TurnStatus.AWAITING
    assert told(desk, HookEvent.AFTER_TOOL) == []
    (asked,) = uses(desk)
    confirm(desk, asked.id, "allow")
    assert (await desk.try_it()).text == "Done."
    assert "format it" in str(desk.model.requests()[-1].body)


async def test_a_turn_goes_on_when_a_hook_says_what_is_left(desk: Desk) -> None:
    desk.gate.heard = {HookEvent.STOP: [Heard("run the tests")]}
    outcome = await desk.turn("Go. [[script:talk]]")
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "Word.")
    assert [fields["stop_hook_active"] for fields in told(desk, HookEvent.STOP)] == [False, True]
    assert len(desk.model.requests()) == 2
    assert "run the tests" in str(desk.model.requests()[-1].body)
    assert (await desk.turn("Again. [[script:talk]]")).text == "Word."
    assert "run the tests" in str(desk.model.requests()[-1].body)


async def test_but_not_for_ever(desk: Desk) -> None:
    desk.gate.heard = {HookEvent.STOP: [Heard("more")] * 100}
    assert (await desk.turn("Go. [[script:talk]]")).status is TurnStatus.COMPLETED
    assert len(desk.model.requests()) == MOST + 1


async def test_a_lost_worker_does_not_take_the_end_of_a_turn_past_its_hooks(desk: Desk) -> None:
    assert (await desk.turn("Go. [[script:talk]]")).text == "Word."
    desk.gate.heard = {HookEvent.STOP: [Heard("run the tests")]}
    assert (await desk.try_it("another")).text == "Word."
    assert len(desk.model.requests()) == 2
    assert "run the tests" in str(desk.model.requests()[-1].body)


async def test_the_end_of_a_subagent(desk: Desk) -> None:
    desk.subagents = (SCOUT,)
    assert (await desk.turn("Go. [[script:ask]]")).text == "It looked."
    (fields,) = told(desk, HookEvent.SUBAGENT_STOP)
    assert fields["agent_type"] == "scout"
    inside = next(each for each in told(desk, HookEvent.AFTER_TOOL) if each["tool_input"] == {"command": "echo hi"})
    assert inside["tool_response"]


async def test_before_a_compaction(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(options._VARIABLES, WINDOW, "100000")
    await desk.turn("First of all. [[script:short]]")
    assert (await desk.turn("Look. [[script:long]]")).text == "After it."
    (fields,) = told(desk, HookEvent.COMPACTION)
    assert fields["trigger"] == "auto"
