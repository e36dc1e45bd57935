"""Custom tools with the real CLI: the client is asked once, no CLI waits, and the response is the call's result."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.harness.claude.session_runner import ASK_TOOL, CONFIG, SessionRunner, open_with_custom_tool
from tests.integration.harness.doubles import MemoryLog

from footplate.domain.agents.agents_and_config import CustomTool
from footplate.domain.agents.mcp_servers import McpServer
from footplate.domain.errors import HandOver, Temporary, Unavailable
from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import Entry, SteerMessage
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event, Usage
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.harness.claude.permissions.custom_tool_names import CustomTools
from footplate.harness.claude.recovery import NOT_STARTED
from footplate.harness.claude.session.cli_connection import CliConnection
from footplate.harness.recovery_text import CLIENT_RESULT_INTERRUPTED, NO_CLIENT_RESULT, UNKNOWN
from footplate.testing import replies, text, tool

pytestmark = pytest.mark.timing

TOOL_NAME = "mcp__custom__ask"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
SLOW = "echo x >> ran; sleep 0.5"
SCRIPTS = {
    "ask": replies([text("Let me ask."), tool(TOOL_NAME, {"q": 1})], [text("Thanks.")]),
    "mixed": replies(
        [tool(TOOL_NAME, {"q": 1}), tool("Bash", {"command": SLOW}), tool(TOOL_NAME, {"q": 2})], [text("Thanks.")]
    ),
    "bash-last": replies([tool(TOOL_NAME, {"q": 1}), tool("Bash", {"command": SLOW})], [text("Thanks.")]),
    "wait": replies(
        [tool(TOOL_NAME, {"q": 1}), tool("Bash", {"command": "echo x >> ran; sleep 30"})], [text("Thanks.")]
    ),
    "wrong": replies(
        [tool(TOOL_NAME, {"q": 1}), tool("Read", {}), tool("mcp__custom__gone", {"q": 2})], [text("Thanks.")]
    ),
    "twice": replies(
        [tool(TOOL_NAME, {"q": 1})], [tool("Bash", {"command": SLOW})], [tool(TOOL_NAME, {"q": 2})], [text("Thanks.")]
    ),
    "bash": replies([tool("Bash", {"command": SLOW})], [text("Heard.")]),
    "short": replies([text("Short.")]),
}


@dataclass
class StallingLog(MemoryLog):
    """One append does not return: the worker is lost and appends nothing more."""

    stalls_at: int = 0
    after_commit: bool = False
    stalled: asyncio.Event = field(default_factory=asyncio.Event)

    async def append(
        self, events: Sequence[Event] = (), *, entries: Sequence[Entry] = (), usage: Usage | None = None
    ) -> None:
        if self.stalled.is_set():
            raise Unavailable("this worker is lost")
        if self.appends + 1 != self.stalls_at or self.after_commit:
            await super().append(events, entries=entries, usage=usage)
        else:
            self.appends += 1
        if self.appends == self.stalls_at:
            self.stalled.set()
            self.stalls_at = 0
            await asyncio.get_running_loop().create_future()


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[SessionRunner]:
    async with open_with_custom_tool(SCRIPTS, tmp_path) as runner:
        yield runner


def last_request_body(runner: SessionRunner) -> dict[str, Any]:
    """Returns the body of the last request."""
    found = runner.model.requests()[-1].body
    assert found is not None
    return found


def list_tool_calls(runner: SessionRunner) -> list[str]:
    return [event.id for event in runner.turn_events() if event.type == ev.AGENT_CUSTOM_TOOL_USE]


def list_results(runner: SessionRunner) -> list[tuple[str, str, bool]]:
    """Returns tool name, result text and error flag of each call in the last request."""
    contents = [message["content"] for message in last_request_body(runner)["messages"]]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    names = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    return [
        (names[block["tool_use_id"]], _text_of(block["content"]), bool(block.get("is_error")))
        for block in blocks
        if block["type"] == "tool_result"
    ]


def _text_of(content: str | list[Mapping[str, str]]) -> str:
    """Returns the text without the CLI's additions."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = " ".join(block.get("text", block["type"]) for block in blocks)
    return text.partition("<system-reminder>")[0].strip()


async def wait_for_event(runner: SessionRunner, event_type: str, running: "asyncio.Task[TurnOutcome]") -> None:
    async with asyncio.timeout(40):
        while not any(event.type == event_type for event in runner.turn_events()):  # the in-memory log sets no event
            if running.done():
                raise AssertionError(f"it ended before {event_type}: {running.result()}")
            await asyncio.sleep(0.02)


def count_runs(runner: SessionRunner, *hosts: str) -> int:
    files = [runner.folder / host / "work" / "ran" for host in hosts or ("host",)]
    return sum(len(file.read_text().split()) for file in files if file.exists())


async def test_the_clients_response_is_the_result_of_the_call(runner: SessionRunner) -> None:
    outcome = await runner.run_turn("Ask. [[script:ask]]", "one")
    (asked,) = list_tool_calls(runner)
    assert (outcome.status, outcome.pending) == (TurnStatus.AWAITING, (asked,))
    assert [event.type for event in runner.turn_events()] == [
        ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END, ev.AGENT_CUSTOM_TOOL_USE,
    ]  # fmt: skip
    assert (runner.turn_events()[-1].body["name"], runner.turn_events()[-1].body["input"]) == ("ask", {"q": 1})
    assert runner.environment is None, "no process waits for the client"
    assert len(runner.model.requests()) == 1

    runner.send_tool_result(asked, ev.text_block("Blue."), IMAGE)
    outcome = await runner.run_attempt("two")
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "Thanks.")
    assert list_results(runner) == [(TOOL_NAME, "Blue. image", False)]
    assert PIXEL in str(runner.model.requests()[-1].body)
    assert [event.type for event in runner.turn_events()][4:] == [
        ev.USER_CUSTOM_TOOL_RESULT, ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END,
    ]  # fmt: skip
    # The conversation continues from there.
    await runner.run_turn("And now? [[script:short]]", "three")
    assert list_results(runner) == [(TOOL_NAME, "Blue. image", False)]
    assert runner.read_model_input()[-3:] == [
        ("user", "Continue from where you left off."),
        ("assistant", "Thanks."),
        ("user", "And now? [[script:short]]"),
    ]


async def test_other_calls_of_the_response_run_once_and_the_rest_waits(runner: SessionRunner) -> None:
    """Same as in the native harness."""
    outcome = await runner.run_turn("Both. [[script:mixed]]", "one")
    assert [event.type for event in runner.turn_events()] == [
        ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END, ev.AGENT_CUSTOM_TOOL_USE, ev.AGENT_TOOL_USE,
        ev.AGENT_TOOL_RESULT, ev.AGENT_CUSTOM_TOOL_USE,
    ]  # fmt: skip
    first, second = list_tool_calls(runner)
    assert outcome.pending == (first, second)
    runner.send_tool_result(second, ev.text_block("two"))
    partly = await runner.run_attempt("two")
    assert (partly.status, partly.pending) == (TurnStatus.AWAITING, (first,))
    assert len(runner.model.requests()) == 1
    runner.send_tool_result(first, ev.text_block("one"), is_error=True)
    assert (await runner.run_attempt("three")).text == "Thanks."
    assert sorted(list_results(runner)) == [
        ("Bash", "(Bash completed with no output)", False),
        (TOOL_NAME, "one", True),
        (TOOL_NAME, "two", False),
    ]
    assert count_runs(runner, "one", "two", "three") == 1
    await runner.run_turn("And now? [[script:short]]", "four")
    assert len(list_results(runner)) == 3


async def test_a_custom_call_before_a_command(runner: SessionRunner) -> None:
    await runner.run_turn("Both. [[script:bash-last]]", "one")
    (asked,) = list_tool_calls(runner)
    assert len(runner.model.requests()) == 1
    runner.send_tool_result(asked)
    assert (await runner.run_attempt("two")).text == "Thanks."
    assert sorted(list_results(runner)) == [
        ("Bash", "(Bash completed with no output)", False),
        (TOOL_NAME, "(no content)", False),
    ]


async def test_calls_that_the_cli_refuses_start_no_model_request(runner: SessionRunner) -> None:
    outcome = await runner.run_turn("All. [[script:wrong]]", "one")
    assert outcome.status is TurnStatus.AWAITING
    assert len(runner.model.requests()) == 1
    recorded = [(event.type, event.body.get("name")) for event in runner.turn_events()][2:]
    assert sorted(recorded, key=str) == [
        (ev.AGENT_CUSTOM_TOOL_USE, "ask"), (ev.AGENT_TOOL_RESULT, None), (ev.AGENT_TOOL_RESULT, None),
        (ev.AGENT_TOOL_USE, "gone"), (ev.AGENT_TOOL_USE, "read"),
    ]  # fmt: skip
    runner.send_tool_result(list_tool_calls(runner)[0], ev.text_block("Well."))
    assert (await runner.run_attempt("two")).text == "Thanks."
    assert len(list_results(runner)) == 3


async def test_one_custom_call_after_the_other(runner: SessionRunner) -> None:
    await runner.run_turn("Ask. [[script:twice]]", "one")
    runner.send_tool_result(list_tool_calls(runner)[0], ev.text_block("one"))
    again = await runner.run_attempt("two")
    assert (again.status, again.pending) == (TurnStatus.AWAITING, (list_tool_calls(runner)[1],))
    runner.send_tool_result(list_tool_calls(runner)[1], ev.text_block("two"))
    assert (await runner.run_attempt("three")).text == "Thanks."
    assert [text for _, text, _ in list_results(runner)] == ["one", "(Bash completed with no output)", "two"]


async def test_a_new_message_instead_of_a_result_closes_the_call(runner: SessionRunner) -> None:
    await runner.run_turn("Ask. [[script:ask]]", "one")
    assert (await runner.run_turn("Never mind. [[script:short]]", "two")).text == "Short."
    assert list_results(runner) == [(TOOL_NAME, NO_CLIENT_RESULT, True)]


async def test_an_interrupt_during_a_command_ends_the_turn(runner: SessionRunner) -> None:
    runner.begin_turn("Both. [[script:wait]]")
    running = asyncio.create_task(runner.run_attempt("one"))
    await wait_for_event(runner, ev.AGENT_TOOL_USE, running)
    await asyncio.sleep(0.5)
    runner.interrupt.set()
    assert (await asyncio.wait_for(running, 10)).status is TurnStatus.INTERRUPTED
    assert (await runner.run_attempt("one")).status is TurnStatus.INTERRUPTED
    assert (await runner.run_turn("Go on. [[script:short]]", "two")).text == "Short."
    (asked,) = [text for name, text, _ in list_results(runner) if name == TOOL_NAME]
    assert asked == CLIENT_RESULT_INTERRUPTED
    assert len(list_results(runner)) == 2


async def test_a_worker_is_lost_while_the_call_waits(runner: SessionRunner) -> None:
    """The client is not asked again, and the command of the same response is not run again."""
    runner.begin_turn("Both. [[script:wait]]")
    running = asyncio.create_task(runner.run_attempt("one"))
    await wait_for_event(runner, ev.AGENT_TOOL_USE, running)
    async with asyncio.timeout(20):
        while not count_runs(runner, "one"):  # noqa: ASYNC110 - a tool's own file
            await asyncio.sleep(0.02)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    outcome = await runner.run_attempt("two")
    assert (outcome.status, outcome.pending) == (TurnStatus.AWAITING, tuple(list_tool_calls(runner)))
    assert len(list_tool_calls(runner)) == 1
    runner.send_tool_result(list_tool_calls(runner)[0], ev.text_block("Well."))
    assert (await runner.run_attempt("three")).text == "Thanks."
    assert sorted(list_results(runner)) == [("Bash", UNKNOWN, True), (TOOL_NAME, "Well.", False)]
    assert count_runs(runner, "one", "two", "three") == 1


async def test_a_cli_is_lost_while_the_call_waits(runner: SessionRunner) -> None:
    runner.begin_turn("Both. [[script:wait]]")
    running = asyncio.create_task(runner.run_attempt())
    await wait_for_event(runner, ev.AGENT_TOOL_USE, running)
    assert runner.environment is not None
    await runner.environment.run(["sh", "-c", "kill -9 $(pgrep -f _bundled/claude | head -1)"])
    with pytest.raises(Temporary):
        await running
    assert (await runner.run_attempt()).pending == tuple(list_tool_calls(runner))
    assert len(runner.model.requests()) == 1


@pytest.mark.parametrize(
    ("crash_at", "after_commit"),
    [(3, False), (3, True), (6, False), (6, True)],
    ids=["before-asking", "asked", "before-asking-again", "asked-again"],
)
async def test_a_worker_is_lost_at_an_append(runner: SessionRunner, crash_at: int, *, after_commit: bool) -> None:
    runner.log = log = StallingLog(stalls_at=crash_at, after_commit=after_commit)
    runner.begin_turn("Both. [[script:mixed]]")
    running = asyncio.create_task(runner.run_attempt("one"))
    await asyncio.wait_for(log.stalled.wait(), 40)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    log.stalled.clear()
    outcome, hosts = await runner.run_attempt("two"), ["one", "two"]
    while outcome.status is TurnStatus.AWAITING:
        for asked in outcome.pending:
            runner.send_tool_result(asked, ev.text_block("Well."))
        hosts.append(f"host {len(hosts)}")
        outcome = await runner.run_attempt(hosts[-1])
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "Thanks.")
    assert count_runs(runner, *hosts) <= 1
    result_texts = [text for name, text, _ in list_results(runner) if name == TOOL_NAME]
    assert len(result_texts) == 2
    assert {*result_texts} <= {"Well.", NOT_STARTED}
    assert len(list_tool_calls(runner)) == result_texts.count("Well.")
    starts = [event.id for event in runner.turn_events() if event.type == ev.MODEL_REQUEST_START]
    ends = [
        event.body["model_request_start_id"] for event in runner.turn_events() if event.type == ev.MODEL_REQUEST_END
    ]
    assert starts == ends
    assert len(runner.model.requests()) == 2


async def test_a_stopping_worker_hands_the_turn_over_or_lets_it_wait(runner: SessionRunner) -> None:
    runner.begin_turn("Both. [[script:bash-last]]")
    running = asyncio.create_task(runner.run_attempt("one"))
    await wait_for_event(runner, ev.AGENT_TOOL_USE, running)
    runner.handover.set()
    with contextlib.suppress(HandOver):
        assert (await running).status is TurnStatus.AWAITING
    runner.handover.clear()
    assert (await runner.run_attempt("two")).pending == tuple(list_tool_calls(runner))
    assert [event.body["is_error"] for event in runner.turn_events() if event.type == ev.AGENT_TOOL_RESULT] == [False]
    assert len(runner.model.requests()) == 1


async def test_a_message_during_a_custom_call_stays_in_the_queue(runner: SessionRunner) -> None:
    """Same as in the native harness: the message replaces the tool result."""
    runner.begin_turn("Both. [[script:bash-last]]")
    running = asyncio.create_task(runner.run_attempt())
    await wait_for_event(runner, ev.AGENT_TOOL_USE, running)
    runner.steering.append(SteerMessage("sevt_7", [ev.text_block("Hurry up.")]))
    assert (await running).status is TurnStatus.AWAITING
    assert [message.event_id for message in runner.steering] == ["sevt_7"]


async def test_a_message_during_a_command_joins_the_turn(runner: SessionRunner) -> None:
    runner.begin_turn("Run. [[script:bash]]")
    running = asyncio.create_task(runner.run_attempt())
    await wait_for_event(runner, ev.AGENT_TOOL_USE, running)
    runner.steering.append(SteerMessage("sevt_7", [ev.text_block("Hurry up.")]))
    assert (await running).text == "Heard."
    assert len(runner.model.requests()) == 2
    assert str(runner.model.requests()[-1].body).count("Hurry up.") == 1


async def test_the_iteration_limit_counts_the_custom_call(runner: SessionRunner) -> None:
    runner.max_iterations = 1
    assert (await runner.run_turn("Ask. [[script:ask]]", "one")).status is TurnStatus.AWAITING
    runner.send_tool_result(list_tool_calls(runner)[0], ev.text_block("Well."))
    assert (await runner.run_attempt("two")).status is TurnStatus.LIMIT_REACHED
    assert len(runner.model.requests()) == 1


async def test_a_warm_cli_calls_a_custom_tool_in_its_next_turn(runner: SessionRunner) -> None:
    runner.keeps_warm = True
    await runner.prewarm()
    warm = runner.warm_process
    assert isinstance(warm, CliConnection)
    await runner.run_turn("Short. [[script:short]]")
    assert runner.warm_process is warm
    assert (await runner.run_turn("Ask. [[script:ask]]")).pending == tuple(list_tool_calls(runner))
    assert runner.warm_process is not warm
    runner.send_tool_result(list_tool_calls(runner)[0], ev.text_block("Blue."))
    assert (await runner.run_attempt("two")).text == "Thanks."
    assert list_results(runner) == [(TOOL_NAME, "Blue.", False)]


async def test_the_model_sees_the_tools_description_and_schema(runner: SessionRunner) -> None:
    schema: JsonObject = {"type": "object", "properties": {"q": {"type": "integer", "minimum": 1}}, "required": ["q"]}
    long = CustomTool(name="b" * 128, description="d" * 10_000, input_schema=schema)
    runner.custom_tools = (ASK_TOOL, long)
    await runner.run_turn("Short. [[script:short]]")
    offered = {item["name"]: item for item in last_request_body(runner)["tools"] if item["name"].startswith("mcp__")}
    assert set(offered) == {TOOL_NAME, f"mcp__custom__{'b' * 109}_0"}
    (other,) = (item for name, item in offered.items() if name != TOOL_NAME)
    assert (other["description"], other["input_schema"]) == (long.description, schema)


@pytest.mark.parametrize(
    ("servers", "names", "model_names"),
    [
        ([], ["ask"], [TOOL_NAME]),
        (["custom", "custom_"], ["ask"], ["mcp__custom____ask"]),
        ([], ["a" * 116, "a" * 128], [f"mcp__custom__{'a' * 109}_{number}" for number in (0, 1)]),
    ],
    ids=["plain", "beside servers of that name", "long"],
)
def test_tool_names_are_valid_and_unique(
    servers: Sequence[str], names: Sequence[str], model_names: Sequence[str]
) -> None:
    config = replace(
        CONFIG,
        custom_tools=tuple(CustomTool(name=name, description="", input_schema={}) for name in names),
        mcp_servers=tuple(McpServer(name=name, url="http://localhost") for name in servers),
    )
    tools = CustomTools(config)
    assert all(tools.is_custom(name) and len(name) <= 128 for name in model_names)
    assert [tools.own_name(name) for name in model_names] == list(names)
    assert not tools.is_custom("Bash")
    assert not tools.is_custom("mcp__custom__other")
