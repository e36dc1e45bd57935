"""Custom tools with the real CLI: the client is asked once, no CLI waits, and the response is the call's result."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.harness.claude.desk import ASK, CONFIG, Desk, asking_desk
from tests.integration.harness.twins import MemoryLog

from footplate.domain import events as ev
from footplate.domain.agents import CustomTool
from footplate.domain.errors import HandOver, Temporary, Unavailable
from footplate.domain.events import Event, Usage
from footplate.domain.json import JsonObject
from footplate.domain.mcp import McpServer
from footplate.domain.ports import Entry, SteerMessage
from footplate.domain.turns import Outcome, TurnStatus
from footplate.harness.claude.connection import Connection
from footplate.harness.claude.custom_tools import CustomTools
from footplate.harness.claude.recovery import NOT_STARTED
from footplate.harness.leftovers import STOPPED, UNANSWERED, UNKNOWN
from footplate.testing import replies, text, tool

pytestmark = pytest.mark.timing

NAME = "mcp__custom__ask"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
SLOW = "echo x >> ran; sleep 0.5"
SCRIPTS = {
    "ask": replies([text("Let me ask."), tool(NAME, {"q": 1})], [text("Thanks.")]),
    "mixed": replies([tool(NAME, {"q": 1}), tool("Bash", {"command": SLOW}), tool(NAME, {"q": 2})], [text("Thanks.")]),
    "bash-last": replies([tool(NAME, {"q": 1}), tool("Bash", {"command": SLOW})], [text("Thanks.")]),
    "wait": replies([tool(NAME, {"q": 1}), tool("Bash", {"command": "echo x >> ran; sleep 30"})], [text("Thanks.")]),
    "wrong": replies([tool(NAME, {"q": 1}), tool("Read", {}), tool("mcp__custom__gone", {"q": 2})], [text("Thanks.")]),
    "twice": replies(
        [tool(NAME, {"q": 1})], [tool("Bash", {"command": SLOW})], [tool(NAME, {"q": 2})], [text("Thanks.")]
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
async def runner(tmp_path: Path) -> AsyncIterator[Desk]:
    async with asking_desk(SCRIPTS, tmp_path) as runner:
        yield runner


def body(runner: Desk) -> dict[str, Any]:
    """Returns the body of the last request."""
    found = runner.model.requests()[-1].body
    assert found is not None
    return found


def asks(runner: Desk) -> list[str]:
    return [event.id for event in runner.told() if event.type == ev.AGENT_CUSTOM_TOOL_USE]


def results(runner: Desk) -> list[tuple[str, str, bool]]:
    """Returns tool name, result text and error flag of each call in the last request."""
    said = [message["content"] for message in body(runner)["messages"]]
    blocks = [block for content in said if isinstance(content, list) for block in content]
    names = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    return [
        (names[block["tool_use_id"]], _words(block["content"]), bool(block.get("is_error")))
        for block in blocks
        if block["type"] == "tool_result"
    ]


def _words(content: str | list[Mapping[str, str]]) -> str:
    """Returns the text without the CLI's additions."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    words = " ".join(block.get("text", block["type"]) for block in blocks)
    return words.partition("<system-reminder>")[0].strip()


async def until(runner: Desk, event_type: str, running: "asyncio.Task[Outcome]") -> None:
    async with asyncio.timeout(40):
        while not any(event.type == event_type for event in runner.told()):  # the in-memory log sets no event
            if running.done():
                raise AssertionError(f"it ended before {event_type}: {running.result()}")
            await asyncio.sleep(0.02)


def ran(runner: Desk, *hosts: str) -> int:
    files = [runner.folder / host / "work" / "ran" for host in hosts or ("host",)]
    return sum(len(file.read_text().split()) for file in files if file.exists())


async def test_the_client_is_asked_and_its_answer_is_the_result(runner: Desk) -> None:
    outcome = await runner.turn("Ask. [[script:ask]]", "one")
    (asked,) = asks(runner)
    assert (outcome.status, outcome.pending) == (TurnStatus.AWAITING, (asked,))
    assert [event.type for event in runner.told()] == [
        ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END, ev.AGENT_CUSTOM_TOOL_USE,
    ]  # fmt: skip
    assert (runner.told()[-1].body["name"], runner.told()[-1].body["input"]) == ("ask", {"q": 1})
    assert runner.environment is None, "no process waits for the client"
    assert len(runner.model.requests()) == 1

    runner.answer(asked, ev.text_block("Blue."), IMAGE)
    outcome = await runner.try_it("two")
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "Thanks.")
    assert results(runner) == [(NAME, "Blue. image", False)]
    assert PIXEL in str(runner.model.requests()[-1].body)
    assert [event.type for event in runner.told()][4:] == [
        ev.USER_CUSTOM_TOOL_RESULT, ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END,
    ]  # fmt: skip
    # The conversation continues from there.
    await runner.turn("And now? [[script:short]]", "three")
    assert results(runner) == [(NAME, "Blue. image", False)]
    assert runner.said_to_model()[-3:] == [
        ("user", "Continue from where you left off."),
        ("assistant", "Thanks."),
        ("user", "And now? [[script:short]]"),
    ]


async def test_other_calls_of_the_answer_run_once_and_the_rest_waits(runner: Desk) -> None:
    """Same as in the native harness."""
    outcome = await runner.turn("Both. [[script:mixed]]", "one")
    assert [event.type for event in runner.told()] == [
        ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END, ev.AGENT_CUSTOM_TOOL_USE, ev.AGENT_TOOL_USE,
        ev.AGENT_TOOL_RESULT, ev.AGENT_CUSTOM_TOOL_USE,
    ]  # fmt: skip
    first, second = asks(runner)
    assert outcome.pending == (first, second)
    runner.answer(second, ev.text_block("two"))
    partly = await runner.try_it("two")
    assert (partly.status, partly.pending) == (TurnStatus.AWAITING, (first,))
    assert len(runner.model.requests()) == 1
    runner.answer(first, ev.text_block("one"), is_error=True)
    assert (await runner.try_it("three")).text == "Thanks."
    assert sorted(results(runner)) == [
        ("Bash", "(Bash completed with no output)", False),
        (NAME, "one", True),
        (NAME, "two", False),
    ]
    assert ran(runner, "one", "two", "three") == 1
    await runner.turn("And now? [[script:short]]", "four")
    assert len(results(runner)) == 3


async def test_a_call_before_a_command(runner: Desk) -> None:
    await runner.turn("Both. [[script:bash-last]]", "one")
    (asked,) = asks(runner)
    assert len(runner.model.requests()) == 1
    runner.answer(asked)
    assert (await runner.try_it("two")).text == "Thanks."
    assert sorted(results(runner)) == [
        ("Bash", "(Bash completed with no output)", False),
        (NAME, "(no content)", False),
    ]


async def test_calls_that_the_cli_refuses_do_not_lead_on(runner: Desk) -> None:
    outcome = await runner.turn("All. [[script:wrong]]", "one")
    assert outcome.status is TurnStatus.AWAITING
    assert len(runner.model.requests()) == 1
    told = [(event.type, event.body.get("name")) for event in runner.told()][2:]
    assert sorted(told, key=str) == [
        (ev.AGENT_CUSTOM_TOOL_USE, "ask"), (ev.AGENT_TOOL_RESULT, None), (ev.AGENT_TOOL_RESULT, None),
        (ev.AGENT_TOOL_USE, "gone"), (ev.AGENT_TOOL_USE, "read"),
    ]  # fmt: skip
    runner.answer(asks(runner)[0], ev.text_block("Well."))
    assert (await runner.try_it("two")).text == "Thanks."
    assert len(results(runner)) == 3


async def test_one_question_after_the_other(runner: Desk) -> None:
    await runner.turn("Ask. [[script:twice]]", "one")
    runner.answer(asks(runner)[0], ev.text_block("one"))
    again = await runner.try_it("two")
    assert (again.status, again.pending) == (TurnStatus.AWAITING, (asks(runner)[1],))
    runner.answer(asks(runner)[1], ev.text_block("two"))
    assert (await runner.try_it("three")).text == "Thanks."
    assert [said for _, said, _ in results(runner)] == ["one", "(Bash completed with no output)", "two"]


async def test_a_new_message_instead_of_an_answer_closes_the_call(runner: Desk) -> None:
    await runner.turn("Ask. [[script:ask]]", "one")
    assert (await runner.turn("Never mind. [[script:short]]", "two")).text == "Short."
    assert results(runner) == [(NAME, UNANSWERED, True)]


async def test_an_interrupt_beside_a_command_ends_the_turn(runner: Desk) -> None:
    runner.next_turn("Both. [[script:wait]]")
    running = asyncio.create_task(runner.try_it("one"))
    await until(runner, ev.AGENT_TOOL_USE, running)
    await asyncio.sleep(0.5)
    runner.interrupt.set()
    assert (await asyncio.wait_for(running, 10)).status is TurnStatus.INTERRUPTED
    assert (await runner.try_it("one")).status is TurnStatus.INTERRUPTED
    assert (await runner.turn("Go on. [[script:short]]", "two")).text == "Short."
    (asked,) = [said for name, said, _ in results(runner) if name == NAME]
    assert asked == STOPPED
    assert len(results(runner)) == 2


async def test_a_worker_that_is_lost_while_the_call_waits(runner: Desk) -> None:
    """The client is not asked again, and the command of the same response is not run again."""
    runner.next_turn("Both. [[script:wait]]")
    running = asyncio.create_task(runner.try_it("one"))
    await until(runner, ev.AGENT_TOOL_USE, running)
    async with asyncio.timeout(20):
        while not ran(runner, "one"):  # noqa: ASYNC110 - a tool's own file
            await asyncio.sleep(0.02)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    outcome = await runner.try_it("two")
    assert (outcome.status, outcome.pending) == (TurnStatus.AWAITING, tuple(asks(runner)))
    assert len(asks(runner)) == 1
    runner.answer(asks(runner)[0], ev.text_block("Well."))
    assert (await runner.try_it("three")).text == "Thanks."
    assert sorted(results(runner)) == [("Bash", UNKNOWN, True), (NAME, "Well.", False)]
    assert ran(runner, "one", "two", "three") == 1


async def test_a_cli_that_is_lost_while_the_call_waits(runner: Desk) -> None:
    runner.next_turn("Both. [[script:wait]]")
    running = asyncio.create_task(runner.try_it())
    await until(runner, ev.AGENT_TOOL_USE, running)
    assert runner.environment is not None
    await runner.environment.run(["sh", "-c", "kill -9 $(pgrep -f _bundled/claude | head -1)"])
    with pytest.raises(Temporary):
        await running
    assert (await runner.try_it()).pending == tuple(asks(runner))
    assert len(runner.model.requests()) == 1


@pytest.mark.parametrize(
    ("crash_at", "after_commit"),
    [(3, False), (3, True), (6, False), (6, True)],
    ids=["before-asking", "asked", "before-asking-again", "asked-again"],
)
async def test_a_worker_that_is_lost_at_an_append(runner: Desk, crash_at: int, *, after_commit: bool) -> None:
    runner.log = log = StallingLog(stalls_at=crash_at, after_commit=after_commit)
    runner.next_turn("Both. [[script:mixed]]")
    running = asyncio.create_task(runner.try_it("one"))
    await asyncio.wait_for(log.stalled.wait(), 40)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    log.stalled.clear()
    outcome, hosts = await runner.try_it("two"), ["one", "two"]
    while outcome.status is TurnStatus.AWAITING:
        for asked in outcome.pending:
            runner.answer(asked, ev.text_block("Well."))
        hosts.append(f"host {len(hosts)}")
        outcome = await runner.try_it(hosts[-1])
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "Thanks.")
    assert ran(runner, *hosts) <= 1
    answered = [said for name, said, _ in results(runner) if name == NAME]
    assert len(answered) == 2
    assert {*answered} <= {"Well.", NOT_STARTED}
    assert len(asks(runner)) == answered.count("Well.")
    starts = [event.id for event in runner.told() if event.type == ev.MODEL_REQUEST_START]
    ends = [event.body["model_request_start_id"] for event in runner.told() if event.type == ev.MODEL_REQUEST_END]
    assert starts == ends
    assert len(runner.model.requests()) == 2


async def test_a_worker_that_stops_hands_over_or_lets_the_turn_wait(runner: Desk) -> None:
    runner.next_turn("Both. [[script:bash-last]]")
    running = asyncio.create_task(runner.try_it("one"))
    await until(runner, ev.AGENT_TOOL_USE, running)
    runner.handover.set()
    with contextlib.suppress(HandOver):
        assert (await running).status is TurnStatus.AWAITING
    runner.handover.clear()
    assert (await runner.try_it("two")).pending == tuple(asks(runner))
    assert [event.body["is_error"] for event in runner.told() if event.type == ev.AGENT_TOOL_RESULT] == [False]
    assert len(runner.model.requests()) == 1


async def test_what_is_said_while_the_model_asks_is_left_to_the_queue(runner: Desk) -> None:
    """Same as in the native harness: the message replaces the tool result."""
    runner.next_turn("Both. [[script:bash-last]]")
    running = asyncio.create_task(runner.try_it())
    await until(runner, ev.AGENT_TOOL_USE, running)
    runner.steering.append(SteerMessage("sevt_7", [ev.text_block("Hurry up.")]))
    assert (await running).status is TurnStatus.AWAITING
    assert [message.event_id for message in runner.steering] == ["sevt_7"]


async def test_what_is_said_beside_a_command_joins_the_turn(runner: Desk) -> None:
    runner.next_turn("Run. [[script:bash]]")
    running = asyncio.create_task(runner.try_it())
    await until(runner, ev.AGENT_TOOL_USE, running)
    runner.steering.append(SteerMessage("sevt_7", [ev.text_block("Hurry up.")]))
    assert (await running).text == "Heard."
    assert len(runner.model.requests()) == 2
    assert str(runner.model.requests()[-1].body).count("Hurry up.") == 1


async def test_the_limit_of_iterations_counts_the_question(runner: Desk) -> None:
    runner.max_iterations = 1
    assert (await runner.turn("Ask. [[script:ask]]", "one")).status is TurnStatus.AWAITING
    runner.answer(asks(runner)[0], ev.text_block("Well."))
    assert (await runner.try_it("two")).status is TurnStatus.LIMIT_REACHED
    assert len(runner.model.requests()) == 1


async def test_a_connected_cli_asks_in_its_next_turn(runner: Desk) -> None:
    runner.keeps = True
    await runner.prepare()
    kept = runner.kept
    assert isinstance(kept, Connection)
    await runner.turn("Short. [[script:short]]")
    assert runner.kept is kept
    assert (await runner.turn("Ask. [[script:ask]]")).pending == tuple(asks(runner))
    assert runner.kept is not kept
    runner.answer(asks(runner)[0], ev.text_block("Blue."))
    assert (await runner.try_it("two")).text == "Thanks."
    assert results(runner) == [(NAME, "Blue.", False)]


async def test_what_the_model_is_told_of_a_tool(runner: Desk) -> None:
    schema: JsonObject = {"type": "object", "properties": {"q": {"type": "integer", "minimum": 1}}, "required": ["q"]}
    long = CustomTool(name="b" * 128, description="d" * 10_000, input_schema=schema)
    runner.custom_tools = (ASK, long)
    await runner.turn("Short. [[script:short]]")
    told = {item["name"]: item for item in body(runner)["tools"] if item["name"].startswith("mcp__")}
    assert set(told) == {NAME, f"mcp__custom__{'b' * 109}_0"}
    (other,) = (item for name, item in told.items() if name != NAME)
    assert (other["description"], other["input_schema"]) == (long.description, schema)


@pytest.mark.parametrize(
    ("servers", "names", "model_names"),
    [
        ([], ["ask"], [NAME]),
        (["custom", "custom_"], ["ask"], ["mcp__custom____ask"]),
        ([], ["a" * 116, "a" * 128], [f"mcp__custom__{'a' * 109}_{number}" for number in (0, 1)]),
    ],
    ids=["plain", "beside servers of that name", "long"],
)
def test_names(servers: Sequence[str], names: Sequence[str], model_names: Sequence[str]) -> None:
    config = replace(
        CONFIG,
        custom_tools=tuple(CustomTool(name=name, description="", input_schema={}) for name in names),
        mcp_servers=tuple(McpServer(name=name, url="http://localhost") for name in servers),
    )
    tools = CustomTools(config)
    assert all(tools.has(name) and len(name) <= 128 for name in model_names)
    assert [tools.own(name) for name in model_names] == list(names)
    assert not tools.has("Bash")
    assert not tools.has("mcp__custom__other")
