"""The session store passes the SDK's conformance kit, and its entries become events."""

import asyncio
from pathlib import Path
from typing import Any, cast

import claude_agent_sdk as sdk
import pytest
from claude_agent_sdk.testing import run_session_store_conformance
from tests.integration.harness.claude.transcript_lines import (
    FILE,
    call_line,
    make_line,
    prompt_line,
    response_line,
    result_line,
)
from tests.integration.harness.doubles import LocalEnvironment, World, text_of

from footplate.domain.errors import Fenced, Temporary
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event
from footplate.harness.claude.recording.recorder import TurnRecorder
from footplate.harness.claude.session.session_store import LogSessionStore
from footplate.harness.claude.transcripts import transcript_lines
from footplate.harness.claude.transcripts.sdk_message_parser import Call
from footplate.harness.claude.transcripts.transcript_lines import Transcript

pytestmark = pytest.mark.timing


def make_recorder(world: World) -> TurnRecorder:
    return TurnRecorder(world.context(), Transcript(world.log.entries), 0)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(LocalEnvironment(tmp_path))


async def test_the_store_passes_the_sdks_conformance_kit(tmp_path: Path) -> None:
    made = 0

    def make() -> sdk.SessionStore:
        nonlocal made
        made += 1
        recorder = make_recorder(World(LocalEnvironment(tmp_path)))
        return cast("sdk.SessionStore", LogSessionStore(lambda: recorder))

    # Sessions are listed and deleted elsewhere, so the store does not offer that.
    await run_session_store_conformance(
        make, skip_optional=frozenset({"list_sessions", "list_session_summaries", "delete"})
    )
    assert made > 5


def stream_events(recorder: TurnRecorder, *events: dict[str, Any]) -> None:
    for event in events:
        recorder.handle_message(sdk.StreamEvent("u", "s", event))


def start_event(message_id: str) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": message_id, "model": "claude-sonnet-5", "usage": {}}}


def delta_event(text: str, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


STOP_EVENT = {"type": "message_stop"}


def list_event_types(world: World) -> list[str]:
    return [event.type for event in world.log.events]


@pytest.mark.requirement("K11")
async def test_a_complete_response_is_one_commit(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), delta_event("Let "), delta_event("me"))
    await recorder.record_lines(FILE, [prompt_line("turn_1"), response_line("a", "m", "Let me")])
    assert (list_event_types(world), world.log.entries) == ([ev.MODEL_REQUEST_START], [])
    stream_events(
        recorder, {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use"}}, STOP_EVENT
    )
    await recorder.record_lines(FILE, [call_line("b", "m", "t1")])
    assert list_event_types(world) == [ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END]
    assert [transcript_lines.line_of(entry)["uuid"] for entry in world.log.entries][1:] == ["a", "b"]


async def test_a_call_waits_for_its_response_and_for_the_previous_call(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), STOP_EVENT)
    first = asyncio.create_task(recorder.authorize(Call("t1", "Bash", {"command": "a"})))
    await asyncio.sleep(0.01)
    assert not first.done()
    await recorder.record_lines(FILE, [call_line("a", "m", "t1"), call_line("b", "m", "t2")])
    await first
    second = asyncio.create_task(recorder.authorize(Call("t2", "Bash", {"command": "b"})))
    await asyncio.sleep(0.01)
    assert not second.done()
    await recorder.record_lines(FILE, [result_line("c", "t1", "done")])
    await second
    await recorder.record_lines(FILE, [result_line("d", "t2")])
    assert list_event_types(world)[2:] == [
        ev.AGENT_TOOL_USE, ev.AGENT_TOOL_RESULT, ev.AGENT_TOOL_USE, ev.AGENT_TOOL_RESULT, ev.MODEL_REQUEST_START,
    ]  # fmt: skip
    assert text_of(world.log.of_type(ev.AGENT_TOOL_RESULT)[0]) == "done"
    recorder.close()


async def test_a_call_that_the_cli_refused_is_recorded_with_its_result(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), STOP_EVENT)
    await recorder.record_lines(FILE, [call_line("a", "m", "t1"), result_line("b", "t1", "No such tool")])
    assert list_event_types(world)[2:4] == [ev.AGENT_TOOL_USE, ev.AGENT_TOOL_RESULT]


async def test_the_clis_text_about_an_error_is_not_stored(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    notice = make_line("assistant", "x", [{"type": "text", "text": "API Error: 529"}], id="e", model="<synthetic>")
    notice["isApiErrorMessage"] = True
    await recorder.record_lines(FILE, [prompt_line("turn_1"), notice, {"type": "last-prompt", "leafUuid": "x"}])
    assert [entry.body["line"] for entry in recorder.entries] == [prompt_line("turn_1")]
    await recorder.finish("lost")
    end = world.log.of_type(ev.MODEL_REQUEST_END)[0]
    assert end.body["is_error"] is True
    assert world.log.of_type(ev.AGENT_MESSAGE) == []


async def test_the_clis_placeholder_for_a_response_is_no_message(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    filler = make_line(
        "assistant", "x", [{"type": "text", "text": "No response requested."}], id="e", model="<synthetic>"
    )
    stream_events(recorder, start_event("m"), delta_event("Hi"), STOP_EVENT)
    await recorder.record_lines(FILE, [filler, prompt_line("turn_1"), response_line("a", "m", "Hi")])
    assert [text_of(event) for event in world.log.of_type(ev.AGENT_MESSAGE)] == ["Hi"]
    assert len(world.log.entries) == 3


async def test_an_empty_response_ends_its_request(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), STOP_EVENT)
    await recorder.finish()
    assert [event.body["is_error"] for event in world.log.of_type(ev.MODEL_REQUEST_END)] == [False]


async def test_a_response_missing_in_the_transcript_is_an_error(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), delta_event("Hi"), STOP_EVENT)
    with pytest.raises(Temporary):
        await recorder.finish()


async def test_half_a_response_of_a_lost_cli_is_not_stored(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), delta_event("Let me look."))
    await recorder.record_lines(FILE, [prompt_line("turn_1"), response_line("a", "m", "Let me look.")])
    await recorder.finish("lost")
    assert (list_event_types(world), world.log.entries) == ([ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END], [])


async def test_a_hand_over_waits_for_the_result_of_a_call(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), STOP_EVENT)
    handing_over = asyncio.create_task(recorder.hand_over())
    await recorder.record_lines(FILE, [call_line("a", "m", "t1")])
    await recorder.authorize(Call("t1", "Bash", {"command": "a"}))
    await asyncio.sleep(0.01)
    assert not handing_over.done()
    await recorder.record_lines(FILE, [result_line("b", "t1")])
    await handing_over
    stream_events(recorder, start_event("n"), STOP_EVENT)
    await recorder.record_lines(FILE, [call_line("c", "n", "t2")])
    assert list_event_types(world)[-3:] == [ev.AGENT_TOOL_RESULT, ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END]
    recorder.close()


@pytest.mark.parametrize("in_one_breath", [False, True])
async def test_a_hand_over_is_not_outrun_by_the_next_response(world: World, in_one_breath: bool) -> None:  # noqa: FBT001
    """A fast model's next call can arrive before the hand-over has seen that no call is open."""
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), STOP_EVENT)
    handing_over = asyncio.create_task(recorder.hand_over())
    await recorder.record_lines(FILE, [call_line("a", "m", "t1")])
    await recorder.authorize(Call("t1", "Bash", {"command": "a"}))
    await asyncio.sleep(0.01)
    if in_one_breath:
        stream_events(recorder, start_event("n"), STOP_EVENT)
        await recorder.record_lines(FILE, [result_line("b", "t1"), call_line("c", "n", "t2")])
    else:
        finishing = asyncio.create_task(recorder.record_lines(FILE, [result_line("b", "t1")]))
        await asyncio.sleep(0)
        stream_events(recorder, start_event("n"), STOP_EVENT)
        await asyncio.gather(finishing, recorder.record_lines(FILE, [call_line("c", "n", "t2")]))
    async with asyncio.timeout(30):
        await handing_over
    assert [call.id for call, _ in Transcript(world.log.entries).open_calls()] == []
    assert list_event_types(world)[-3:] == [ev.AGENT_TOOL_RESULT, ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END]
    recorder.close()


async def start_call(world: World) -> TurnRecorder:
    """Returns a recorder whose call `t1` is running."""
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), STOP_EVENT)
    await recorder.record_lines(FILE, [call_line("a", "m", "t1")])
    await recorder.authorize(Call("t1", "Bash", {"command": "a"}))
    return recorder


async def test_a_result_and_the_next_response_are_two_commits(world: World) -> None:
    """A fork at the result contains nothing of the next response, however fast the model was."""
    recorder = await start_call(world)
    before = world.log.appends
    stream_events(recorder, start_event("n"), STOP_EVENT)
    await recorder.record_lines(FILE, [result_line("b", "t1"), response_line("c", "n", "Done")])
    assert world.log.appends == before + 2
    assert list_event_types(world)[-2:] == [ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END]
    recorder.close()


async def test_a_response_is_not_shown_before_the_preceding_result(world: World) -> None:
    recorder = await start_call(world)
    stream_events(recorder, start_event("n"), delta_event("Do"))
    assert world.log.previews == []
    await recorder.record_lines(FILE, [result_line("b", "t1")])
    stream_events(recorder, delta_event("ne."), STOP_EVENT)
    assert [preview.text for preview in world.log.previews] == ["Done."]
    await recorder.record_lines(FILE, [response_line("c", "n", "Done.")])
    assert world.log.of_type(ev.AGENT_MESSAGE)[0].id == world.log.previews[0].event_id
    recorder.close()


async def test_an_interrupt_stores_the_partial_message(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), delta_event("Half a "))
    await recorder.finish("interrupted")
    assert [text_of(event) for event in world.log.of_type(ev.AGENT_MESSAGE)] == ["Half a "]
    assert Transcript(world.log.entries).was_interrupted("turn_1")


async def test_a_repeated_line_is_stored_once(world: World) -> None:
    recorder = make_recorder(world)
    await recorder.record_lines(FILE, [prompt_line("turn_1")])
    await recorder.record_lines(FILE, [prompt_line("turn_1"), response_line("a", "m", "Hi")])
    await recorder.finish()
    assert len(world.log.entries) == 2


async def test_lines_that_the_log_refuses_fail_the_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise Fenced("Another worker holds the session.")

    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), STOP_EVENT)
    monkeypatch.setattr(world.log, "append", refuse)
    with pytest.raises(Fenced):
        await recorder.record_lines(FILE, [response_line("a", "m", "Hi")])
    with pytest.raises(Fenced):
        recorder.failed.result()
    # The same holds for a batch that the SDK gave up.
    other = make_recorder(world)
    other.handle_message(sdk.MirrorErrorMessage("mirror_error", {}, error="timed out"))
    assert other.failed.done()


async def test_a_call_does_not_start_when_the_turn_is_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = make_recorder(world)
    await recorder.begin_request([], [])
    stream_events(recorder, start_event("m"), STOP_EVENT)
    await recorder.record_lines(FILE, [call_line("a", "m", "t1")])

    async def refuse(events: list[Event], **_: object) -> None:
        raise Fenced(f"lost before {events}")

    monkeypatch.setattr(world.log, "append", refuse)
    with pytest.raises(Fenced):
        await recorder.authorize(Call("t1", "Bash", {"command": "a"}))
