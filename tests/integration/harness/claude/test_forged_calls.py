"""A process inside the environment forges Claude Code's messages: only the evaluated call is logged and run."""

import asyncio
from pathlib import Path

import pytest
from tests.integration.harness.claude.desk import CONFIG
from tests.integration.harness.claude.lines import PLACE, called, entries, prompt, result
from tests.integration.harness.claude.test_store import STOP, begin, recorder_of, stream
from tests.integration.harness.twins import LocalEnvironment, World

from footplate.domain import events as ev
from footplate.domain.errors import Temporary
from footplate.domain.events import Event
from footplate.harness import approvals
from footplate.harness.claude.calls import Calls
from footplate.harness.claude.custom_tools import CustomTools
from footplate.harness.claude.mapping import Call
from footplate.harness.claude.recorder import Recorder
from footplate.harness.claude.recovery import NOT_AS_SHOWN, settle
from footplate.harness.claude.transcript import Transcript

pytestmark = pytest.mark.timing
TOOL = "mcp__tracker__delete"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(LocalEnvironment(tmp_path))


async def asked_for(world: World, name: str, command: str = "ls") -> Recorder:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), STOP)
    await recorder.mirrored(PLACE, [prompt("turn_1"), called("a", "m", "t1", command, name=name)])
    return recorder


async def test_a_call_is_not_judged_under_the_name_of_another_tool(world: World) -> None:
    recorder = await asked_for(world, TOOL)
    with pytest.raises(Temporary):
        await recorder.intend(Call("t1", "Read", {"command": "ls"}))
    assert not recorder.starts("t1", TOOL, {"command": "ls"})
    assert world.log.of(ev.AGENT_TOOL_USE) == []
    recorder.close()


async def test_the_log_has_the_input_that_was_judged(world: World) -> None:
    recorder = await asked_for(world, "Bash", "rm -rf .")
    await recorder.intend(Call("t1", "Bash", {"command": "ls"}))
    [use] = world.log.of(ev.AGENT_TOOL_USE)
    assert use.body["input"] == {"command": "ls"}
    recorder.close()


async def test_a_second_call_cannot_take_the_id_of_the_first(world: World) -> None:
    recorder = await asked_for(world, "Bash")
    with pytest.raises(Temporary):
        await recorder.mirrored(PLACE, [called("b", "m", "t1", "rm -rf .")])
    assert recorder.failed.done()
    assert [call.input for call, _ in Transcript(world.log.entries).open_calls()] == [{"command": "ls"}]
    recorder.close()


async def test_a_call_that_runs_is_not_started_a_second_time(world: World) -> None:
    recorder = await asked_for(world, "Bash")
    await recorder.intend(Call("t1", "Bash", {"command": "ls"}))
    again = asyncio.create_task(recorder.intend(Call("t1", "Bash", {"command": "pwd"})))
    await asyncio.sleep(0.01)
    await recorder.mirrored(PLACE, [result("b", "t1")])
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)
    assert len(world.log.of(ev.AGENT_TOOL_USE)) == 1
    recorder.close()


def test_an_input_that_only_python_holds_equal_is_another_input() -> None:
    calls, call = Calls(), Call("t1", TOOL, {"force": False})
    calls.open["t1"] = call
    calls.begin(call, Event(ev.AGENT_MCP_TOOL_USE, {}))
    assert not calls.starts("t1", TOOL, {"force": 0})
    assert calls.starts("t1", TOOL, {"force": False})


@pytest.mark.parametrize("command", ["ls", "rm -rf ."])
def test_an_approved_call_is_made_only_as_it_was_shown(command: str) -> None:
    use = ev.tool_use("bash", {"command": "ls"}, call_id="t1")
    mark = approvals.asked("turn_1", "t1", use)
    kept = entries("turn_1", prompt("turn_1"), called("a", "m", "t1", command))
    word = Event(ev.USER_TOOL_CONFIRMATION, {"tool_use_id": use.id, "result": "allow"})
    found = settle("turn_1", Transcript([*kept, mark]), [use, word], timestamp="now", custom=CustomTools(CONFIG))
    assert len(found.allowed) == (command == "ls")
    assert (NOT_AS_SHOWN in str(found.entries)) == (command != "ls")
