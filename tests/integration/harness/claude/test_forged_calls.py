"""A process inside the environment forges Claude Code's messages: only the evaluated call is logged and run."""

import asyncio
from pathlib import Path

import pytest
from tests.integration.harness.claude.session_runner import CONFIG
from tests.integration.harness.claude.test_turn_recorder import STOP_EVENT, make_recorder, start_event, stream_events
from tests.integration.harness.claude.transcript_lines import FILE, call_line, make_entries, prompt_line, result_line
from tests.integration.harness.doubles import LocalEnvironment, World

from footplate.domain.errors import Temporary
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event
from footplate.harness import approvals
from footplate.harness.claude.permissions.custom_tool_names import CustomTools
from footplate.harness.claude.recording.recorder import TurnRecorder
from footplate.harness.claude.recovery import NOT_AS_SHOWN, plan_recovery
from footplate.harness.claude.threads.thread_calls import ThreadCalls
from footplate.harness.claude.transcripts.sdk_message_parser import Call
from footplate.harness.claude.transcripts.transcript_lines import Transcript

pytestmark = pytest.mark.timing
TOOL = "mcp__tracker__delete"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(LocalEnvironment(tmp_path))


async def record_call(world: World, name: str, command: str = "ls") -> TurnRecorder:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), STOP_EVENT)
    await recorder.record_lines(FILE, [prompt_line("turn_1"), call_line("a", "m", "t1", command, name=name)])
    return recorder


async def test_a_call_is_not_evaluated_under_the_name_of_another_tool(world: World) -> None:
    recorder = await record_call(world, TOOL)
    with pytest.raises(Temporary):
        await recorder.authorize(Call("t1", "Read", {"command": "ls"}))
    assert not recorder.claim_start("t1", TOOL, {"command": "ls"})
    assert world.log.of_type(ev.AGENT_TOOL_USE) == []
    recorder.close()


async def test_the_log_has_the_input_that_was_evaluated(world: World) -> None:
    recorder = await record_call(world, "Bash", "rm -rf .")
    await recorder.authorize(Call("t1", "Bash", {"command": "ls"}))
    [use] = world.log.of_type(ev.AGENT_TOOL_USE)
    assert use.body["input"] == {"command": "ls"}
    recorder.close()


async def test_a_second_call_cannot_reuse_the_id_of_the_first(world: World) -> None:
    recorder = await record_call(world, "Bash")
    with pytest.raises(Temporary):
        await recorder.record_lines(FILE, [call_line("b", "m", "t1", "rm -rf .")])
    assert recorder.failed.done()
    assert [call.input for call, _ in Transcript(world.log.entries).open_calls()] == [{"command": "ls"}]
    recorder.close()


async def test_a_running_call_is_not_started_again(world: World) -> None:
    recorder = await record_call(world, "Bash")
    await recorder.authorize(Call("t1", "Bash", {"command": "ls"}))
    again = asyncio.create_task(recorder.authorize(Call("t1", "Bash", {"command": "pwd"})))
    await asyncio.sleep(0.01)
    await recorder.record_lines(FILE, [result_line("b", "t1")])
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)
    assert len(world.log.of_type(ev.AGENT_TOOL_USE)) == 1
    recorder.close()


def test_inputs_that_are_equal_only_in_python_differ() -> None:
    calls, call = ThreadCalls(), Call("t1", TOOL, {"force": False})
    calls.open["t1"] = call
    calls.mark_running(call, Event(ev.AGENT_MCP_TOOL_USE, {}))
    assert not calls.claim_start("t1", TOOL, {"force": 0})
    assert calls.claim_start("t1", TOOL, {"force": False})


@pytest.mark.parametrize("command", ["ls", "rm -rf ."])
def test_an_approved_call_runs_only_as_it_was_shown(command: str) -> None:
    use = ev.tool_use("bash", {"command": "ls"}, call_id="t1")
    mark = approvals.pending_mark("turn_1", "t1", use)
    history = make_entries("turn_1", prompt_line("turn_1"), call_line("a", "m", "t1", command))
    decision = Event(ev.USER_TOOL_CONFIRMATION, {"tool_use_id": use.id, "result": "allow"})
    found = plan_recovery(
        "turn_1", Transcript([*history, mark]), [use, decision], timestamp="now", custom=CustomTools(CONFIG)
    )
    assert len(found.approved_calls) == (command == "ls")
    assert (NOT_AS_SHOWN in str(found.entries)) == (command != "ls")
