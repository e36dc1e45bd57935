"""The session store passes the SDK's conformance kit, and its entries become events."""

import asyncio
from pathlib import Path
from typing import Any, cast

import claude_agent_sdk as sdk
import pytest
from claude_agent_sdk.testing import run_session_store_conformance
from tests.integration.harness.claude.lines import PLACE, called, line, prompt, result, said
from tests.integration.harness.twins import LocalEnvironment, World, texts

from footplate.domain import events as ev
from footplate.domain.errors import Fenced, Temporary
from footplate.domain.events import Event
from footplate.harness.claude import transcript
from footplate.harness.claude.mapping import Call
from footplate.harness.claude.recorder import Recorder
from footplate.harness.claude.store import LogStore
from footplate.harness.claude.transcript import Transcript

pytestmark = pytest.mark.timing


def recorder_of(world: World) -> Recorder:
    return Recorder(world.context(), Transcript(world.log.entries), 0)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(LocalEnvironment(tmp_path))


async def test_the_sdks_own_conformance_kit_holds(tmp_path: Path) -> None:
    made = 0

    def make() -> sdk.SessionStore:
        nonlocal made
        made += 1
        recorder = recorder_of(World(LocalEnvironment(tmp_path)))
        return cast("sdk.SessionStore", LogStore(lambda: recorder))

    # Sessions are listed and deleted elsewhere, so the store does not offer that.
    await run_session_store_conformance(
        make, skip_optional=frozenset({"list_sessions", "list_session_summaries", "delete"})
    )
    assert made > 5


def stream(recorder: Recorder, *events: dict[str, Any]) -> None:
    for event in events:
        recorder.heard(sdk.StreamEvent("u", "s", event))


def begin(message_id: str) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": message_id, "model": "claude-sonnet-5", "usage": {}}}


def delta(text: str, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


STOP = {"type": "message_stop"}


def types(world: World) -> list[str]:
    return [event.type for event in world.log.events]


@pytest.mark.requirement("K11")
async def test_an_answer_is_one_commit_when_it_is_complete(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), delta("Let "), delta("me"))
    await recorder.mirrored(PLACE, [prompt("turn_1"), said("a", "m", "Let me")])
    assert (types(world), world.log.entries) == ([ev.MODEL_REQUEST_START], [])
    stream(recorder, {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use"}}, STOP)
    await recorder.mirrored(PLACE, [called("b", "m", "t1")])
    assert types(world) == [ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END]
    assert [transcript.line_of(kept)["uuid"] for kept in world.log.entries][1:] == ["a", "b"]


async def test_a_call_waits_for_its_answer_and_for_the_call_before(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), STOP)
    first = asyncio.create_task(recorder.intend(Call("t1", "Bash", {"command": "a"})))
    await asyncio.sleep(0.01)
    assert not first.done()
    await recorder.mirrored(PLACE, [called("a", "m", "t1"), called("b", "m", "t2")])
    await first
    second = asyncio.create_task(recorder.intend(Call("t2", "Bash", {"command": "b"})))
    await asyncio.sleep(0.01)
    assert not second.done()
    await recorder.mirrored(PLACE, [result("c", "t1", "done")])
    await second
    await recorder.mirrored(PLACE, [result("d", "t2")])
    assert types(world)[2:] == [
        ev.AGENT_TOOL_USE, ev.AGENT_TOOL_RESULT, ev.AGENT_TOOL_USE, ev.AGENT_TOOL_RESULT, ev.MODEL_REQUEST_START,
    ]  # fmt: skip
    assert texts(world.log.of(ev.AGENT_TOOL_RESULT)[0]) == "done"
    recorder.close()


async def test_a_call_that_the_cli_refused_by_itself_is_told_with_its_result(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), STOP)
    await recorder.mirrored(PLACE, [called("a", "m", "t1"), result("b", "t1", "No such tool")])
    assert types(world)[2:4] == [ev.AGENT_TOOL_USE, ev.AGENT_TOOL_RESULT]


async def test_the_words_of_the_cli_about_an_error_are_not_kept(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    notice = line("assistant", "x", [{"type": "text", "text": "API Error: 529"}], id="e", model="<synthetic>")
    notice["isApiErrorMessage"] = True
    await recorder.mirrored(PLACE, [prompt("turn_1"), notice, {"type": "last-prompt", "leafUuid": "x"}])
    assert [kept.body["line"] for kept in recorder.entries] == [prompt("turn_1")]
    await recorder.settle("lost")
    end = world.log.of(ev.MODEL_REQUEST_END)[0]
    assert end.body["is_error"] is True
    assert world.log.of(ev.AGENT_MESSAGE) == []


async def test_words_that_the_cli_puts_in_the_place_of_an_answer_are_nobodys(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    filler = line("assistant", "x", [{"type": "text", "text": "No response requested."}], id="e", model="<synthetic>")
    stream(recorder, begin("m"), delta("Hi"), STOP)
    await recorder.mirrored(PLACE, [filler, prompt("turn_1"), said("a", "m", "Hi")])
    assert [texts(event) for event in world.log.of(ev.AGENT_MESSAGE)] == ["Hi"]
    assert len(world.log.entries) == 3


async def test_an_answer_without_a_word_ends_its_request(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), STOP)
    await recorder.settle()
    assert [event.body["is_error"] for event in world.log.of(ev.MODEL_REQUEST_END)] == [False]


async def test_an_answer_that_is_not_in_the_transcript_is_not_lost_in_silence(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), delta("Hi"), STOP)
    with pytest.raises(Temporary):
        await recorder.settle()


async def test_half_an_answer_of_a_lost_cli_is_not_kept(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), delta("Let me look."))
    await recorder.mirrored(PLACE, [prompt("turn_1"), said("a", "m", "Let me look.")])
    await recorder.settle("lost")
    assert (types(world), world.log.entries) == ([ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END], [])


async def test_a_hand_over_waits_for_the_result_of_a_call(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), STOP)
    leaving = asyncio.create_task(recorder.hand_over())
    await recorder.mirrored(PLACE, [called("a", "m", "t1")])
    await recorder.intend(Call("t1", "Bash", {"command": "a"}))
    await asyncio.sleep(0.01)
    assert not leaving.done()
    await recorder.mirrored(PLACE, [result("b", "t1")])
    await leaving
    stream(recorder, begin("n"), STOP)
    await recorder.mirrored(PLACE, [called("c", "n", "t2")])
    assert types(world)[-3:] == [ev.AGENT_TOOL_RESULT, ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END]
    recorder.close()


@pytest.mark.parametrize("in_one_breath", [False, True])
async def test_a_hand_over_is_not_outrun_by_the_next_answer(world: World, in_one_breath: bool) -> None:  # noqa: FBT001
    """A fast model's next call can arrive before the hand-over has seen that no call is open."""
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), STOP)
    leaving = asyncio.create_task(recorder.hand_over())
    await recorder.mirrored(PLACE, [called("a", "m", "t1")])
    await recorder.intend(Call("t1", "Bash", {"command": "a"}))
    await asyncio.sleep(0.01)
    if in_one_breath:
        stream(recorder, begin("n"), STOP)
        await recorder.mirrored(PLACE, [result("b", "t1"), called("c", "n", "t2")])
    else:
        finishing = asyncio.create_task(recorder.mirrored(PLACE, [result("b", "t1")]))
        await asyncio.sleep(0)
        stream(recorder, begin("n"), STOP)
        await asyncio.gather(finishing, recorder.mirrored(PLACE, [called("c", "n", "t2")]))
    async with asyncio.timeout(30):
        await leaving
    assert [call.id for call, _ in Transcript(world.log.entries).open_calls()] == []
    assert types(world)[-3:] == [ev.AGENT_TOOL_RESULT, ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END]
    recorder.close()


async def in_a_call(world: World) -> Recorder:
    """Returns a recorder whose call `t1` is running."""
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), STOP)
    await recorder.mirrored(PLACE, [called("a", "m", "t1")])
    await recorder.intend(Call("t1", "Bash", {"command": "a"}))
    return recorder


async def test_a_result_and_the_next_answer_are_two_commits(world: World) -> None:
    """A fork at the result contains nothing of the next response, however fast the model was."""
    recorder = await in_a_call(world)
    before = world.log.appends
    stream(recorder, begin("n"), STOP)
    await recorder.mirrored(PLACE, [result("b", "t1"), said("c", "n", "Done")])
    assert world.log.appends == before + 2
    assert types(world)[-2:] == [ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END]
    recorder.close()


async def test_an_answer_is_not_shown_before_the_result_that_it_answers_to(world: World) -> None:
    recorder = await in_a_call(world)
    stream(recorder, begin("n"), delta("Do"))
    assert world.log.previews == []
    await recorder.mirrored(PLACE, [result("b", "t1")])
    stream(recorder, delta("ne."), STOP)
    assert [preview.text for preview in world.log.previews] == ["Done."]
    await recorder.mirrored(PLACE, [said("c", "n", "Done.")])
    assert world.log.of(ev.AGENT_MESSAGE)[0].id == world.log.previews[0].event_id
    recorder.close()


async def test_an_interrupt_keeps_what_was_said(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), delta("Half a "))
    await recorder.settle("interrupted")
    assert [texts(event) for event in world.log.of(ev.AGENT_MESSAGE)] == ["Half a "]
    assert Transcript(world.log.entries).interrupted("turn_1")


async def test_a_line_that_comes_again_is_kept_once(world: World) -> None:
    recorder = recorder_of(world)
    await recorder.mirrored(PLACE, [prompt("turn_1")])
    await recorder.mirrored(PLACE, [prompt("turn_1"), said("a", "m", "Hi")])
    await recorder.settle()
    assert len(world.log.entries) == 2


async def test_lines_that_the_log_does_not_take_fail_the_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise Fenced("Another worker holds the session.")

    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), STOP)
    monkeypatch.setattr(world.log, "append", refuse)
    with pytest.raises(Fenced):
        await recorder.mirrored(PLACE, [said("a", "m", "Hi")])
    with pytest.raises(Fenced):
        recorder.failed.result()
    # The same holds for a batch that the SDK gave up.
    other = recorder_of(world)
    other.heard(sdk.MirrorErrorMessage("mirror_error", {}, error="timed out"))
    assert other.failed.done()


async def test_a_call_is_not_let_through_when_the_turn_is_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = recorder_of(world)
    await recorder.begin([], [])
    stream(recorder, begin("m"), STOP)
    await recorder.mirrored(PLACE, [called("a", "m", "t1")])

    async def refuse(events: list[Event], **_: object) -> None:
        raise Fenced(f"lost before {events}")

    monkeypatch.setattr(world.log, "append", refuse)
    with pytest.raises(Fenced):
        await recorder.intend(Call("t1", "Bash", {"command": "a"}))
