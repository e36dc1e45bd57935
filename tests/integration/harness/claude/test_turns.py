"""Whole turns with the real CLI: the events in the log, and what the model sees afterwards."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.harness.claude.session_runner import SessionRunner
from tests.integration.harness.doubles import text_of

from footplate.domain.errors import HandOver, ModelRefused, Overloaded, Temporary
from footplate.domain.files.attachments import AttachmentFailed, AttachmentRefused
from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import Process, SteerMessage
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.turns import TurnStatus
from footplate.environments.base_environment import BaseEnvironment
from footplate.environments.unsandboxed_environment import UnsandboxedEnvironment
from footplate.harness.claude.harness import ClaudeHarness
from footplate.harness.claude.session.cli_connection import CliConnection
from footplate.harness.recovery_text import INTERRUPTED, UNKNOWN
from footplate.lease_clock import lease_clock
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
async def runner(tmp_path: Path) -> AsyncIterator[SessionRunner]:
    async with ScriptedModel(SCRIPTS) as model:
        runner = SessionRunner(model, tmp_path)
        yield runner
        await runner.close()


async def wait_for_event(runner: SessionRunner, event_type: str) -> None:
    async with asyncio.timeout(20):
        while not any(event.type == event_type for event in runner.turn_events()):  # noqa: ASYNC110 - the in-memory log sets no event
            await asyncio.sleep(0.02)


@pytest.mark.requirement("S6")
@pytest.mark.requirement("K7")
async def test_the_next_turn_runs_on_another_host(runner: SessionRunner) -> None:
    outcome = await runner.run_turn("Look. [[script:look]]", "one")
    assert (outcome.status, outcome.text, outcome.data) == (TurnStatus.COMPLETED, "Done.", {"finish_reason": "stop"})
    assert [event.type for event in runner.turn_events()] == [
        ev.MODEL_REQUEST_START, ev.AGENT_THINKING, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END, ev.AGENT_TOOL_USE,
        ev.AGENT_TOOL_RESULT, ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END,
    ]  # fmt: skip
    await runner.run_turn("And now? [[script:short]]", "two")
    assert runner.read_model_input() == [
        ("user", "Look. [[script:look]]"),
        ("assistant", "Hm."),
        ("assistant", "Looking."),
        ("assistant", "{'command': 'echo hi'}"),
        ("user", "hi"),
        ("assistant", "Done."),
        ("user", "And now? [[script:short]]"),
    ]


@pytest.mark.parametrize("script", ["talk", "wait"])
async def test_an_interrupt_stores_the_partial_message_and_the_session_continues(
    runner: SessionRunner, script: str
) -> None:
    runner.begin_turn(f"Begin. [[script:{script}]]")
    running = asyncio.create_task(runner.run_attempt())
    if script == "wait":
        await wait_for_event(runner, ev.AGENT_TOOL_USE)
    else:
        async with asyncio.timeout(20):
            while not any(preview.text for preview in runner.log.previews):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
    await asyncio.sleep(0.5)
    runner.interrupt.set()
    outcome = await asyncio.wait_for(running, 30)
    assert outcome.status is TurnStatus.INTERRUPTED
    if script == "talk":
        (message,) = [text_of(event) for event in runner.turn_events() if event.type == ev.AGENT_MESSAGE]
        assert message.startswith("one")
        assert message.startswith(outcome.text)
        assert outcome.text
    else:
        result = runner.turn_events()[-1]
        assert (result.type, text_of(result), result.body["is_error"]) == (ev.AGENT_TOOL_RESULT, INTERRUPTED, True)
    assert (await runner.run_turn("Go on. [[script:short]]")).text == "Short."
    assert [text_of(event) for event in runner.turn_events() if event.type == ev.AGENT_MESSAGE] == ["Short."]
    await runner.run_turn("And look. [[script:look]]")
    assert [text for role, text in runner.read_model_input() if role == "assistant"][-4:-3] == ["Short."]


async def test_a_running_call_is_never_run_again(runner: SessionRunner) -> None:
    runner.begin_turn("Wait. [[script:wait]]")
    running = asyncio.create_task(runner.run_attempt("one"))
    await wait_for_event(runner, ev.AGENT_TOOL_USE)
    async with asyncio.timeout(20):
        while not (runner.folder / "one" / "work" / "ran").exists():  # noqa: ASYNC110 - a tool's own file
            await asyncio.sleep(0.02)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    outcome = await runner.run_attempt("two")
    assert outcome.text == "After it."
    (result,) = [event for event in runner.turn_events() if event.type == ev.AGENT_TOOL_RESULT]
    assert (text_of(result), result.body["is_error"]) == (UNKNOWN, True)
    assert [(runner.folder / host / "work" / "ran").exists() for host in ("one", "two")] == [True, False]
    assert UNKNOWN in [message for _, message in runner.read_model_input()]


async def test_a_stopping_worker_hands_the_turn_over_after_the_call(runner: SessionRunner) -> None:
    runner.begin_turn("Slowly. [[script:slow]]")
    running = asyncio.create_task(runner.run_attempt("one"))
    await wait_for_event(runner, ev.AGENT_TOOL_USE)
    runner.handover.set()
    with pytest.raises(HandOver):
        await running
    runner.handover.clear()
    assert (await runner.run_attempt("two")).text == "Heard."
    results = [event for event in runner.turn_events() if event.type == ev.AGENT_TOOL_RESULT]
    assert [event.body["is_error"] for event in results] == [False]


async def test_a_message_during_the_turn_joins_it_once(runner: SessionRunner) -> None:
    runner.begin_turn("Slowly. [[script:slow]]")
    running = asyncio.create_task(runner.run_attempt())
    await wait_for_event(runner, ev.AGENT_TOOL_USE)
    runner.steering.append(SteerMessage("sevt_7", [ev.text_block("Hurry up.")]))
    assert (await running).status is TurnStatus.COMPLETED
    assert str(runner.model.requests()[-1].body).count("Hurry up.") == 1  # wrapped in the CLI's own text


async def test_a_failing_attachment_of_a_message_during_the_turn_does_not_end_it(runner: SessionRunner) -> None:
    async def resolve(blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
        if "Hurry" in str(blocks):
            raise AttachmentFailed("The file is gone.")
        return blocks

    async def resolve_steering(blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
        return [*blocks, ev.text_block("A file is missing.")]

    runner.begin_turn("Slowly. [[script:slow]]")
    runner.environment = runner.open_host()
    context = replace(
        runner.context(runner.environment), resolve_attachments=resolve, resolve_steering=resolve_steering
    )
    running = asyncio.create_task(runner.harness.run(context))
    await wait_for_event(runner, ev.AGENT_TOOL_USE)
    runner.steering.append(SteerMessage("sevt_7", [ev.text_block("Hurry up.")]))
    assert (await running).status is TurnStatus.COMPLETED
    assert "A file is missing." in str(runner.model.requests()[-1].body)


async def test_an_overloaded_provider_is_retried_by_the_engine(runner: SessionRunner) -> None:
    runner.begin_turn("Please. [[script:busy]]")
    with pytest.raises(Overloaded):
        await runner.run_attempt()
    assert [event.type for event in runner.turn_events()] == [ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END]
    assert (await runner.run_attempt()).text == "At last."
    assert runner.read_model_input() == [("user", "Please. [[script:busy]]")]


async def test_a_cut_response_is_charged_and_not_stored(runner: SessionRunner) -> None:
    """The CLI closes such a response as if it had ended normally."""
    runner.begin_turn("Please. [[script:cut]]")
    with pytest.raises(Temporary):
        await runner.run_attempt()
    start, end = runner.turn_events()
    assert (end.body["model_request_start_id"], end.body["is_error"]) == (start.id, True)
    assert [used.input_tokens for used in runner.log.usage] == [1000]
    assert (await runner.run_attempt()).text == "Whole."
    assert [text_of(event) for event in runner.turn_events() if event.type == ev.AGENT_MESSAGE] == ["Whole."]


async def test_a_refused_request_is_not_retried(runner: SessionRunner) -> None:
    with pytest.raises(ModelRefused, match="401"):
        await runner.run_turn("Please. [[script:refused]]")
    assert len(runner.model.requests("refused")) == 1


async def test_a_killed_cli_is_a_temporary_error(runner: SessionRunner) -> None:
    runner.begin_turn("Wait. [[script:wait]]")
    running = asyncio.create_task(runner.run_attempt())
    await wait_for_event(runner, ev.AGENT_TOOL_USE)
    assert runner.environment is not None
    await runner.environment.run(["sh", "-c", "kill -9 $(pgrep -f _bundled/claude | head -1)"])
    with pytest.raises(Temporary):
        await running


async def test_a_warm_cli_serves_the_next_turn(runner: SessionRunner) -> None:
    runner.keeps_warm = True
    await runner.run_turn("Leave something. [[script:daemon]]")
    warm = runner.warm_process
    assert isinstance(warm, CliConnection)
    assert runner.environment is not None
    remaining = await runner.environment.run(["pgrep", "-f", "sleep 321"])
    assert remaining.stdout == b""
    await runner.run_turn("Again. [[script:daemon]]")
    assert runner.warm_process is warm
    results = [text_of(event) for event in runner.log.events if event.type == ev.AGENT_TOOL_RESULT]
    assert results == ["turn_1", "turn_2"]
    # The next host needs nothing of that.
    await runner.close()
    runner.keeps_warm = False
    await runner.run_turn("And now? [[script:short]]", "two")
    assert [
        message for role, message in runner.read_model_input() if role == "assistant" and message == "Left it."
    ] == ["Left it."] * 2


async def test_a_prewarmed_cli_serves_the_first_turn(runner: SessionRunner) -> None:
    await runner.prewarm()
    prewarmed = runner.warm_process
    assert isinstance(prewarmed, CliConnection)
    assert not runner.model.requests()
    assert not runner.log.entries
    runner.keeps_warm = True
    outcome = await runner.run_turn("Leave something. [[script:daemon]]")
    assert outcome.status is TurnStatus.COMPLETED
    assert runner.warm_process is prewarmed
    assert [text_of(event) for event in runner.turn_events() if event.type == ev.AGENT_TOOL_RESULT] == ["turn_1"]
    # The log has everything, and another host continues from there.
    await runner.close()
    runner.keeps_warm = False
    await runner.run_turn("And now? [[script:short]]", "two")
    assert runner.read_model_input()[0] == ("user", "Leave something. [[script:daemon]]")


async def test_a_prewarmed_cli_knows_the_conversation(runner: SessionRunner) -> None:
    await runner.run_turn("Look. [[script:look]]", "one")
    await runner.prewarm()
    await runner.run_turn("And now? [[script:short]]")
    messages = [text for _, text in runner.read_model_input()]
    assert messages[:3] == ["Look. [[script:look]]", "Hm.", "Looking."]
    assert messages[-3:] == ["hi", "Done.", "And now? [[script:short]]"]


async def test_clis_start_one_after_the_other(tmp_path: Path) -> None:
    begun: list[str] = []
    connected: list[str] = []
    harness = ClaudeHarness(starts=1)

    class Counted(UnsandboxedEnvironment):
        async def start(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Process:
            assert len(begun) == len(connected)
            begun.append(self.root)
            return await super().start(argv, env=env)

    class Crowded(SessionRunner):
        def open_host(self, host: str = "host") -> BaseEnvironment:
            root = self.folder / host
            root.mkdir(parents=True)
            return Counted(str(root), deadline=lease_clock() + 600, home=str(root))

    async def prepare(runner: SessionRunner) -> None:
        await runner.prewarm()
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
async def test_the_model_receives_images_and_documents_of_an_input(runner: SessionRunner) -> None:
    image: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    document: JsonObject = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "T"}}

    async def resolve(blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
        return [*blocks, image, document]

    runner.begin_turn("Look. [[script:short]]")
    runner.environment = runner.open_host()
    outcome = await runner.harness.run(replace(runner.context(runner.environment), resolve_attachments=resolve))
    assert outcome.text == "Short."
    request_body = str(runner.model.requests()[-1].body)
    assert PNG in request_body
    assert "'type': 'document'" in request_body


@pytest.mark.requirement("K8")
async def test_a_refused_attachment_ends_the_turn(runner: SessionRunner) -> None:
    async def resolve(_: Sequence[JsonObject]) -> Sequence[JsonObject]:
        raise AttachmentRefused("The model 'x' does not take application/zip inline.")

    runner.begin_turn("Look. [[script:short]]")
    runner.environment = runner.open_host()
    with pytest.raises(AttachmentRefused):
        await runner.harness.run(replace(runner.context(runner.environment), resolve_attachments=resolve))
    assert runner.model.requests() == []
