"""Whole turns with the real CLI: what the log gets, and what the model is shown afterwards."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.harness.claude.desk import Desk
from tests.integration.harness.twins import texts

from footplate.domain import events as ev
from footplate.domain.errors import HandOver, ModelRefused, Overloaded, Temporary
from footplate.domain.json import JsonObject
from footplate.domain.parts import NotTaken, PartFailed
from footplate.domain.ports import Process, SteerMessage
from footplate.domain.turns import TurnStatus
from footplate.environments.guarded import GuardedEnvironment
from footplate.environments.guardian import clock
from footplate.environments.unsandboxed import UnsandboxedEnvironment
from footplate.harness.claude.connection import Connection
from footplate.harness.claude.harness import ClaudeHarness
from footplate.harness.leftovers import UNKNOWN
from footplate.testing import ScriptedModel, cut, overloaded, replies, reply, text, thinking, tool, unauthorized

pytestmark = pytest.mark.timing

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCRIPTS = {
    "look": replies([thinking("Hm."), text("Looking."), tool("Bash", {"command": "echo hi"})], [text("Done.")]),
    "short": replies([text("Short.")]),
    "talk": replies([text("one two three four five six seven eight", chunks=8, delay=0.3)]),
    "wait": replies([tool("Bash", {"command": "echo x >> ran; sleep 200"})], [text("After it.")]),
    "slow": replies([tool("Bash", {"command": "sleep 0.5"})], [text("Heard.")]),
    "busy": replies(reply(text("At last."), first_attempts=[[overloaded()]])),
    "refused": replies([unauthorized()]),
    "cut": replies(reply(text("Whole."), first_attempts=[[text("Half of it", delay=0.05), cut()]])),
    "daemon": replies(
        [tool("Bash", {"command": "(setsid sleep 321 </dev/null >/dev/null 2>&1 &); echo $FOOTPLATE_TURN_ID"})],
        [text("Left it.")],
    ),
}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with ScriptedModel(SCRIPTS) as model:
        desk = Desk(model, tmp_path)
        yield desk
        await desk.close()


async def until(desk: Desk, event_type: str) -> None:
    async with asyncio.timeout(20):
        while not any(event.type == event_type for event in desk.told()):  # noqa: ASYNC110 - of a log in memory
            await asyncio.sleep(0.02)


async def test_a_turn_and_the_next_on_another_host(desk: Desk) -> None:
    outcome = await desk.turn("Look. [[script:look]]", "one")
    assert (outcome.status, outcome.text, outcome.data) == (TurnStatus.COMPLETED, "Done.", {"finish_reason": "stop"})
    assert [event.type for event in desk.told()] == [
        ev.MODEL_REQUEST_START, ev.AGENT_THINKING, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END, ev.AGENT_TOOL_USE,
        ev.AGENT_TOOL_RESULT, ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END,
    ]  # fmt: skip
    await desk.turn("And now? [[script:short]]", "two")
    assert desk.said_to_model() == [
        ("user", "Look. [[script:look]]"),
        ("assistant", "Hm."),
        ("assistant", "Looking."),
        ("assistant", "{'command': 'echo hi'}"),
        ("user", "hi"),
        ("assistant", "Done."),
        ("user", "And now? [[script:short]]"),
    ]


@pytest.mark.parametrize("script", ["talk", "wait"])
async def test_an_interrupt_keeps_what_was_said_and_the_session_goes_on(desk: Desk, script: str) -> None:
    desk.next_turn(f"Begin. [[script:{script}]]")
    running = asyncio.create_task(desk.try_it())
    if script == "wait":
        await until(desk, ev.AGENT_TOOL_USE)
    else:
        async with asyncio.timeout(20):
            while not any(preview.text for preview in desk.log.previews):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
    await asyncio.sleep(0.5)
    desk.interrupt.set()
    outcome = await asyncio.wait_for(running, 30)
    assert outcome.status is TurnStatus.INTERRUPTED
    if script == "talk":
        (said,) = [texts(event) for event in desk.told() if event.type == ev.AGENT_MESSAGE]
        assert said.startswith("one")
        assert said.startswith(outcome.text)
        assert outcome.text
    else:
        assert [event.type for event in desk.told()][-1] == ev.AGENT_TOOL_RESULT
    assert (await desk.turn("Go on. [[script:short]]")).text == "Short."
    assert [texts(event) for event in desk.told() if event.type == ev.AGENT_MESSAGE] == ["Short."]
    await desk.turn("And look. [[script:look]]")
    assert [said for role, said in desk.said_to_model() if role == "assistant"][-4:-3] == ["Short."]


async def test_a_call_in_flight_is_never_run_again(desk: Desk) -> None:
    desk.next_turn("Wait. [[script:wait]]")
    running = asyncio.create_task(desk.try_it("one"))
    await until(desk, ev.AGENT_TOOL_USE)
    async with asyncio.timeout(20):
        while not (desk.folder / "one" / "work" / "ran").exists():  # noqa: ASYNC110 - a tool's own file
            await asyncio.sleep(0.02)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    outcome = await desk.try_it("two")
    assert outcome.text == "After it."
    (result,) = [event for event in desk.told() if event.type == ev.AGENT_TOOL_RESULT]
    assert (texts(result), result.body["is_error"]) == (UNKNOWN, True)
    assert [(desk.folder / host / "work" / "ran").exists() for host in ("one", "two")] == [True, False]
    assert UNKNOWN in [said for _, said in desk.said_to_model()]


async def test_a_worker_that_stops_hands_the_turn_over_after_the_call(desk: Desk) -> None:
    desk.next_turn("Slowly. [[script:slow]]")
    running = asyncio.create_task(desk.try_it("one"))
    await until(desk, ev.AGENT_TOOL_USE)
    desk.handover.set()
    with pytest.raises(HandOver):
        await running
    desk.handover.clear()
    assert (await desk.try_it("two")).text == "Heard."
    results = [event for event in desk.told() if event.type == ev.AGENT_TOOL_RESULT]
    assert [event.body["is_error"] for event in results] == [False]


async def test_what_is_said_meanwhile_joins_the_turn_once(desk: Desk) -> None:
    desk.next_turn("Slowly. [[script:slow]]")
    running = asyncio.create_task(desk.try_it())
    await until(desk, ev.AGENT_TOOL_USE)
    desk.steering.append(SteerMessage("sevt_7", [ev.text_block("Hurry up.")]))
    assert (await running).status is TurnStatus.COMPLETED
    assert str(desk.model.requests()[-1].body).count("Hurry up.") == 1  # in the CLI's own words around it


async def test_what_is_said_meanwhile_is_resolved_as_what_must_not_end_the_turn(desk: Desk) -> None:
    async def resolve(blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
        if "Hurry" in str(blocks):
            raise PartFailed("The file is gone.")
        return blocks

    async def resolve_steering(blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
        return [*blocks, ev.text_block("A file is missing.")]

    desk.next_turn("Slowly. [[script:slow]]")
    desk.environment = desk.open()
    context = replace(desk.context(desk.environment), resolve=resolve, resolve_steering=resolve_steering)
    running = asyncio.create_task(desk.harness.run(context))
    await until(desk, ev.AGENT_TOOL_USE)
    desk.steering.append(SteerMessage("sevt_7", [ev.text_block("Hurry up.")]))
    assert (await running).status is TurnStatus.COMPLETED
    assert "A file is missing." in str(desk.model.requests()[-1].body)


async def test_a_busy_provider_is_asked_again_by_the_engine(desk: Desk) -> None:
    desk.next_turn("Please. [[script:busy]]")
    with pytest.raises(Overloaded):
        await desk.try_it()
    assert [event.type for event in desk.told()] == [ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END]
    assert (await desk.try_it()).text == "At last."
    assert desk.said_to_model() == [("user", "Please. [[script:busy]]")]


async def test_an_answer_that_was_cut_off_is_paid_for_and_not_kept(desk: Desk) -> None:
    """The CLI closes such an answer as if it had ended."""
    desk.next_turn("Please. [[script:cut]]")
    with pytest.raises(Temporary):
        await desk.try_it()
    start, end = desk.told()
    assert (end.body["model_request_start_id"], end.body["is_error"]) == (start.id, True)
    assert [used.input_tokens for used in desk.log.usage] == [1000]
    assert (await desk.try_it()).text == "Whole."
    assert [texts(event) for event in desk.told() if event.type == ev.AGENT_MESSAGE] == ["Whole."]


async def test_a_provider_that_refuses_is_not_asked_again(desk: Desk) -> None:
    with pytest.raises(ModelRefused, match="401"):
        await desk.turn("Please. [[script:refused]]")
    assert len(desk.model.requests("refused")) == 1


async def test_a_cli_that_was_killed_is_a_reason_to_try_again(desk: Desk) -> None:
    desk.next_turn("Wait. [[script:wait]]")
    running = asyncio.create_task(desk.try_it())
    await until(desk, ev.AGENT_TOOL_USE)
    assert desk.environment is not None
    await desk.environment.run(["sh", "-c", "kill -9 $(pgrep -f _bundled/claude | head -1)"])
    with pytest.raises(Temporary):
        await running


async def test_a_connected_cli_serves_the_next_turn(desk: Desk) -> None:
    desk.keeps = True
    await desk.turn("Leave something. [[script:daemon]]")
    kept = desk.kept
    assert isinstance(kept, Connection)
    assert desk.environment is not None
    left = await desk.environment.run(["pgrep", "-f", "sleep 321"])
    assert left.stdout == b""
    await desk.turn("Again. [[script:daemon]]")
    assert desk.kept is kept
    results = [texts(event) for event in desk.log.events if event.type == ev.AGENT_TOOL_RESULT]
    assert results == ["turn_1", "turn_2"]
    # Nothing of that is needed by whoever comes next.
    await desk.close()
    desk.keeps = False
    await desk.turn("And now? [[script:short]]", "two")
    assert [said for role, said in desk.said_to_model() if role == "assistant" and said == "Left it."] == [
        "Left it."
    ] * 2


async def test_a_cli_that_was_connected_ahead_serves_the_first_turn(desk: Desk) -> None:
    await desk.prepare()
    prepared = desk.kept
    assert isinstance(prepared, Connection)
    assert not desk.model.requests()
    assert not desk.log.entries
    desk.keeps = True
    outcome = await desk.turn("Leave something. [[script:daemon]]")
    assert outcome.status is TurnStatus.COMPLETED
    assert desk.kept is prepared
    assert [texts(event) for event in desk.told() if event.type == ev.AGENT_TOOL_RESULT] == ["turn_1"]
    # Everything of it is in the log, and another host goes on from there.
    await desk.close()
    desk.keeps = False
    await desk.turn("And now? [[script:short]]", "two")
    assert desk.said_to_model()[0] == ("user", "Leave something. [[script:daemon]]")


async def test_a_cli_that_was_connected_ahead_knows_the_conversation(desk: Desk) -> None:
    await desk.turn("Look. [[script:look]]", "one")
    await desk.prepare()
    await desk.turn("And now? [[script:short]]")
    said = [said for _, said in desk.said_to_model()]
    assert said[:3] == ["Look. [[script:look]]", "Hm.", "Looking."]
    assert said[-3:] == ["hi", "Done.", "And now? [[script:short]]"]


async def test_clis_start_one_after_the_other(tmp_path: Path) -> None:
    begun: list[str] = []
    connected: list[str] = []
    harness = ClaudeHarness(starts=1)

    class Counted(UnsandboxedEnvironment):
        async def start(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Process:
            assert len(begun) == len(connected)
            begun.append(self.root)
            return await super().start(argv, env=env)

    class Crowded(Desk):
        def open(self, host: str = "host") -> GuardedEnvironment:
            root = self.folder / host
            root.mkdir(parents=True)
            return Counted(str(root), deadline=clock() + 600, home=str(root))

    async def prepare(desk: Desk) -> None:
        await desk.prepare()
        connected.append(desk.environment.root if desk.environment else "")

    async with ScriptedModel(SCRIPTS) as model:
        desks = [Crowded(model, tmp_path / str(number), harness=harness) for number in range(3)]
        try:
            await asyncio.gather(*map(prepare, desks))
        finally:
            await asyncio.gather(*(desk.close() for desk in desks))
    assert begun == connected
    assert len(begun) == 3


async def test_the_model_is_given_pictures_and_documents_of_an_input(desk: Desk) -> None:
    image: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    document: JsonObject = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "T"}}

    async def resolve(blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
        return [*blocks, image, document]

    desk.next_turn("Look. [[script:short]]")
    desk.environment = desk.open()
    outcome = await desk.harness.run(replace(desk.context(desk.environment), resolve=resolve))
    assert outcome.text == "Short."
    told = str(desk.model.requests()[-1].body)
    assert PNG in told
    assert "'type': 'document'" in told


async def test_a_part_that_is_not_taken_ends_the_turn(desk: Desk) -> None:
    async def resolve(_: Sequence[JsonObject]) -> Sequence[JsonObject]:
        raise NotTaken("The model 'x' does not take application/zip inline.")

    desk.next_turn("Look. [[script:short]]")
    desk.environment = desk.open()
    with pytest.raises(NotTaken):
        await desk.harness.run(replace(desk.context(desk.environment), resolve=resolve))
    assert desk.model.requests() == []
