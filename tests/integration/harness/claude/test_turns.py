"""Whole turns with the real CLI: the events in the log, and what the model sees afterwards."""

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
async def runner(tmp_path: Path) -> AsyncIterator[Desk]:
    async with ScriptedModel(SCRIPTS) as model:
        runner = Desk(model, tmp_path)
        yield runner
        await runner.close()


async def until(runner: Desk, event_type: str) -> None:
    async with asyncio.timeout(20):
        while not any(event.type == event_type for event in runner.told()):  # noqa: ASYNC110 - the in-memory log sets no event
            await asyncio.sleep(0.02)


@pytest.mark.requirement("S6")
@pytest.mark.requirement("K7")
async def test_a_turn_and_the_next_on_another_host(runner: Desk) -> None:
    outcome = await runner.turn("Look. [[script:look]]", "one")
    assert (outcome.status, outcome.text, outcome.data) == (TurnStatus.COMPLETED, "Done.", {"finish_reason": "stop"})
    assert [event.type for event in runner.told()] == [
        ev.MODEL_REQUEST_START, ev.AGENT_THINKING, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END, ev.AGENT_TOOL_USE,
        ev.AGENT_TOOL_RESULT, ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END,
    ]  # fmt: skip
    await runner.turn("And now? [[script:short]]", "two")
    assert runner.said_to_model() == [
        ("user", "Look. [[script:look]]"),
        ("assistant", "Hm."),
        ("assistant", "Looking."),
        ("assistant", "{'command': 'echo hi'}"),
        ("user", "hi"),
        ("assistant", "Done."),
        ("user", "And now? [[script:short]]"),
    ]


@pytest.mark.parametrize("script", ["talk", "wait"])
async def test_an_interrupt_keeps_what_was_said_and_the_session_goes_on(runner: Desk, script: str) -> None:
    runner.next_turn(f"Begin. [[script:{script}]]")
    running = asyncio.create_task(runner.try_it())
    if script == "wait":
        await until(runner, ev.AGENT_TOOL_USE)
    else:
        async with asyncio.timeout(20):
            while not any(preview.text for preview in runner.log.previews):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
    await asyncio.sleep(0.5)
    runner.interrupt.set()
    outcome = await asyncio.wait_for(running, 30)
    assert outcome.status is TurnStatus.INTERRUPTED
    if script == "talk":
        (said,) = [texts(event) for event in runner.told() if event.type == ev.AGENT_MESSAGE]
        assert said.startswith("one")
        assert said.startswith(outcome.text)
        assert outcome.text
    else:
        assert [event.type for event in runner.told()][-1] == ev.AGENT_TOOL_RESULT
    assert (await runner.turn("Go on. [[script:short]]")).text == "Short."
    assert [texts(event) for event in runner.told() if event.type == ev.AGENT_MESSAGE] == ["Short."]
    await runner.turn("And look. [[script:look]]")
    assert [said for role, said in runner.said_to_model() if role == "assistant"][-4:-3] == ["Short."]


async def test_a_call_in_flight_is_never_run_again(runner: Desk) -> None:
    runner.next_turn("Wait. [[script:wait]]")
    running = asyncio.create_task(runner.try_it("one"))
    await until(runner, ev.AGENT_TOOL_USE)
    async with asyncio.timeout(20):
        while not (runner.folder / "one" / "work" / "ran").exists():  # noqa: ASYNC110 - a tool's own file
            await asyncio.sleep(0.02)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    outcome = await runner.try_it("two")
    assert outcome.text == "After it."
    (result,) = [event for event in runner.told() if event.type == ev.AGENT_TOOL_RESULT]
    assert (texts(result), result.body["is_error"]) == (UNKNOWN, True)
    assert [(runner.folder / host / "work" / "ran").exists() for host in ("one", "two")] == [True, False]
    assert UNKNOWN in [said for _, said in runner.said_to_model()]


async def test_a_worker_that_stops_hands_the_turn_over_after_the_call(runner: Desk) -> None:
    runner.next_turn("Slowly. [[script:slow]]")
    running = asyncio.create_task(runner.try_it("one"))
    await until(runner, ev.AGENT_TOOL_USE)
    runner.handover.set()
    with pytest.raises(HandOver):
        await running
    runner.handover.clear()
    assert (await runner.try_it("two")).text == "Heard."
    results = [event for event in runner.told() if event.type == ev.AGENT_TOOL_RESULT]
    assert [event.body["is_error"] for event in results] == [False]


async def test_what_is_said_meanwhile_joins_the_turn_once(runner: Desk) -> None:
    runner.next_turn("Slowly. [[script:slow]]")
    running = asyncio.create_task(runner.try_it())
    await until(runner, ev.AGENT_TOOL_USE)
    runner.steering.append(SteerMessage("sevt_7", [ev.text_block("Hurry up.")]))
    assert (await running).status is TurnStatus.COMPLETED
    assert str(runner.model.requests()[-1].body).count("Hurry up.") == 1  # wrapped in the CLI's own text


async def test_what_is_said_meanwhile_is_resolved_as_what_must_not_end_the_turn(runner: Desk) -> None:
    async def resolve(blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
        if "Hurry" in str(blocks):
            raise PartFailed("The file is gone.")
        return blocks

    async def resolve_steering(blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
        return [*blocks, ev.text_block("A file is missing.")]

    runner.next_turn("Slowly. [[script:slow]]")
    runner.environment = runner.open()
    context = replace(runner.context(runner.environment), resolve=resolve, resolve_steering=resolve_steering)
    running = asyncio.create_task(runner.harness.run(context))
    await until(runner, ev.AGENT_TOOL_USE)
    runner.steering.append(SteerMessage("sevt_7", [ev.text_block("Hurry up.")]))
    assert (await running).status is TurnStatus.COMPLETED
    assert "A file is missing." in str(runner.model.requests()[-1].body)


async def test_a_busy_provider_is_asked_again_by_the_engine(runner: Desk) -> None:
    runner.next_turn("Please. [[script:busy]]")
    with pytest.raises(Overloaded):
        await runner.try_it()
    assert [event.type for event in runner.told()] == [ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END]
    assert (await runner.try_it()).text == "At last."
    assert runner.said_to_model() == [("user", "Please. [[script:busy]]")]


async def test_an_answer_that_was_cut_off_is_paid_for_and_not_kept(runner: Desk) -> None:
    """The CLI closes such a response as if it had ended normally."""
    runner.next_turn("Please. [[script:cut]]")
    with pytest.raises(Temporary):
        await runner.try_it()
    start, end = runner.told()
    assert (end.body["model_request_start_id"], end.body["is_error"]) == (start.id, True)
    assert [used.input_tokens for used in runner.log.usage] == [1000]
    assert (await runner.try_it()).text == "Whole."
    assert [texts(event) for event in runner.told() if event.type == ev.AGENT_MESSAGE] == ["Whole."]


async def test_a_provider_that_refuses_is_not_asked_again(runner: Desk) -> None:
    with pytest.raises(ModelRefused, match="401"):
        await runner.turn("Please. [[script:refused]]")
    assert len(runner.model.requests("refused")) == 1


async def test_a_cli_that_was_killed_is_a_reason_to_try_again(runner: Desk) -> None:
    runner.next_turn("Wait. [[script:wait]]")
    running = asyncio.create_task(runner.try_it())
    await until(runner, ev.AGENT_TOOL_USE)
    assert runner.environment is not None
    await runner.environment.run(["sh", "-c", "kill -9 $(pgrep -f _bundled/claude | head -1)"])
    with pytest.raises(Temporary):
        await running


async def test_a_connected_cli_serves_the_next_turn(runner: Desk) -> None:
    runner.keeps = True
    await runner.turn("Leave something. [[script:daemon]]")
    kept = runner.kept
    assert isinstance(kept, Connection)
    assert runner.environment is not None
    left = await runner.environment.run(["pgrep", "-f", "sleep 321"])
    assert left.stdout == b""
    await runner.turn("Again. [[script:daemon]]")
    assert runner.kept is kept
    results = [texts(event) for event in runner.log.events if event.type == ev.AGENT_TOOL_RESULT]
    assert results == ["turn_1", "turn_2"]
    # The next host needs nothing of that.
    await runner.close()
    runner.keeps = False
    await runner.turn("And now? [[script:short]]", "two")
    assert [said for role, said in runner.said_to_model() if role == "assistant" and said == "Left it."] == [
        "Left it."
    ] * 2


async def test_a_cli_that_was_connected_ahead_serves_the_first_turn(runner: Desk) -> None:
    await runner.prepare()
    prepared = runner.kept
    assert isinstance(prepared, Connection)
    assert not runner.model.requests()
    assert not runner.log.entries
    runner.keeps = True
    outcome = await runner.turn("Leave something. [[script:daemon]]")
    assert outcome.status is TurnStatus.COMPLETED
    assert runner.kept is prepared
    assert [texts(event) for event in runner.told() if event.type == ev.AGENT_TOOL_RESULT] == ["turn_1"]
    # The log has everything, and another host continues from there.
    await runner.close()
    runner.keeps = False
    await runner.turn("And now? [[script:short]]", "two")
    assert runner.said_to_model()[0] == ("user", "Leave something. [[script:daemon]]")


async def test_a_cli_that_was_connected_ahead_knows_the_conversation(runner: Desk) -> None:
    await runner.turn("Look. [[script:look]]", "one")
    await runner.prepare()
    await runner.turn("And now? [[script:short]]")
    said = [said for _, said in runner.said_to_model()]
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

    async def prepare(runner: Desk) -> None:
        await runner.prepare()
        connected.append(runner.environment.root if runner.environment else "")

    async with ScriptedModel(SCRIPTS) as model:
        runners = [Crowded(model, tmp_path / str(number), harness=harness) for number in range(3)]
        try:
            await asyncio.gather(*map(prepare, runners))
        finally:
            await asyncio.gather(*(runner.close() for runner in runners))
    assert begun == connected
    assert len(begun) == 3


@pytest.mark.requirement("K8")
async def test_the_model_is_given_pictures_and_documents_of_an_input(runner: Desk) -> None:
    image: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    document: JsonObject = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "T"}}

    async def resolve(blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
        return [*blocks, image, document]

    runner.next_turn("Look. [[script:short]]")
    runner.environment = runner.open()
    outcome = await runner.harness.run(replace(runner.context(runner.environment), resolve=resolve))
    assert outcome.text == "Short."
    told = str(runner.model.requests()[-1].body)
    assert PNG in told
    assert "'type': 'document'" in told


@pytest.mark.requirement("K8")
async def test_a_part_that_is_not_taken_ends_the_turn(runner: Desk) -> None:
    async def resolve(_: Sequence[JsonObject]) -> Sequence[JsonObject]:
        raise NotTaken("The model 'x' does not take application/zip inline.")

    runner.next_turn("Look. [[script:short]]")
    runner.environment = runner.open()
    with pytest.raises(NotTaken):
        await runner.harness.run(replace(runner.context(runner.environment), resolve=resolve))
    assert runner.model.requests() == []
