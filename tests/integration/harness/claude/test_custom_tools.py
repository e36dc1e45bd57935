"""Custom tools with the real CLI: the client is asked once, no CLI waits, and the answer is the call's result."""

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
    """One append does not return: its worker is lost, and nothing more comes from it."""

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
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with asking_desk(SCRIPTS, tmp_path) as desk:
        yield desk


def body(desk: Desk) -> dict[str, Any]:
    """Of the last request."""
    found = desk.model.requests()[-1].body
    assert found is not None
    return found


def asks(desk: Desk) -> list[str]:
    return [event.id for event in desk.told() if event.type == ev.AGENT_CUSTOM_TOOL_USE]


def results(desk: Desk) -> list[tuple[str, str, bool]]:
    """Of the calls of the last request: the tool, the first words of its result, and whether that is an error."""
    said = [message["content"] for message in body(desk)["messages"]]
    blocks = [block for content in said if isinstance(content, list) for block in content]
    names = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    return [
        (names[block["tool_use_id"]], _words(block["content"]), bool(block.get("is_error")))
        for block in blocks
        if block["type"] == "tool_result"
    ]


def _words(content: str | list[Mapping[str, str]]) -> str:
    """Without what the CLI adds."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    words = " ".join(block.get("text", block["type"]) for block in blocks)
    return words.partition("<system-reminder>")[0].strip()


async def until(desk: Desk, event_type: str, running: "asyncio.Task[Outcome]") -> None:
    async with asyncio.timeout(40):
        while not any(event.type == event_type for event in desk.told()):  # of a log in memory
            if running.done():
                raise AssertionError(f"it ended before {event_type}: {running.result()}")
            await asyncio.sleep(0.02)


def ran(desk: Desk, *hosts: str) -> int:
    files = [desk.folder / host / "work" / "ran" for host in hosts or ("host",)]
    return sum(len(file.read_text().split()) for file in files if file.exists())


async def test_the_client_is_asked_and_its_answer_is_the_result(desk: Desk) -> None:
    outcome = await desk.turn("Ask. [[script:ask]]", "one")
    (asked,) = asks(desk)
    assert (outcome.status, outcome.pending) == (TurnStatus.AWAITING, (asked,))
    assert [event.type for event in desk.told()] == [
        ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END, ev.AGENT_CUSTOM_TOOL_USE,
    ]  # fmt: skip
    assert (desk.told()[-1].body["name"], desk.told()[-1].body["input"]) == ("ask", {"q": 1})
    assert desk.environment is None, "no process waits for the client"
    assert len(desk.model.requests()) == 1

    desk.answer(asked, ev.text_block("Blue."), IMAGE)
    outcome = await desk.try_it("two")
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "Thanks.")
    assert results(desk) == [(NAME, "Blue. image", False)]
    assert PIXEL in str(desk.model.requests()[-1].body)
    assert [event.type for event in desk.told()][4:] == [
        ev.USER_CUSTOM_TOOL_RESULT, ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END,
    ]  # fmt: skip
    # And the conversation goes on from there.
    await desk.turn("And now? [[script:short]]", "three")
    assert results(desk) == [(NAME, "Blue. image", False)]
    assert desk.said_to_model()[-3:] == [
        ("user", "Continue from where you left off."),
        ("assistant", "Thanks."),
        ("user", "And now? [[script:short]]"),
    ]


async def test_other_calls_of_the_answer_run_once_and_the_rest_waits(desk: Desk) -> None:
    """The same as `native`: tests/integration/harness/test_loop.py."""
    outcome = await desk.turn("Both. [[script:mixed]]", "one")
    assert [event.type for event in desk.told()] == [
        ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END, ev.AGENT_CUSTOM_TOOL_USE, ev.AGENT_TOOL_USE,
        ev.AGENT_TOOL_RESULT, ev.AGENT_CUSTOM_TOOL_USE,
    ]  # fmt: skip
    first, second = asks(desk)
    assert outcome.pending == (first, second)
    desk.answer(second, ev.text_block("two"))
    partly = await desk.try_it("two")
    assert (partly.status, partly.pending) == (TurnStatus.AWAITING, (first,))
    assert len(desk.model.requests()) == 1
    desk.answer(first, ev.text_block("one"), is_error=True)
    assert (await desk.try_it("three")).text == "Thanks."
    assert sorted(results(desk)) == [
        ("Bash", "(Bash completed with no output)", False),
        (NAME, "one", True),
        (NAME, "two", False),
    ]
    assert ran(desk, "one", "two", "three") == 1
    await desk.turn("And now? [[script:short]]", "four")
    assert len(results(desk)) == 3


async def test_a_call_before_a_command(desk: Desk) -> None:
    await desk.turn("Both. [[script:bash-last]]", "one")
    (asked,) = asks(desk)
    assert len(desk.model.requests()) == 1
    desk.answer(asked)
    assert (await desk.try_it("two")).text == "Thanks."
    assert sorted(results(desk)) == [("Bash", "(Bash completed with no output)", False), (NAME, "(no content)", False)]


async def test_calls_that_the_cli_refuses_do_not_lead_on(desk: Desk) -> None:
    outcome = await desk.turn("All. [[script:wrong]]", "one")
    assert outcome.status is TurnStatus.AWAITING
    assert len(desk.model.requests()) == 1
    told = [(event.type, event.body.get("name")) for event in desk.told()][2:]
    assert sorted(told, key=str) == [
        (ev.AGENT_CUSTOM_TOOL_USE, "ask"), (ev.AGENT_TOOL_RESULT, None), (ev.AGENT_TOOL_RESULT, None),
        (ev.AGENT_TOOL_USE, "gone"), (ev.AGENT_TOOL_USE, "read"),
    ]  # fmt: skip
    desk.answer(asks(desk)[0], ev.text_block("Well."))
    assert (await desk.try_it("two")).text == "Thanks."
    assert len(results(desk)) == 3


async def test_one_question_after_the_other(desk: Desk) -> None:
    await desk.turn("Ask. [[script:twice]]", "one")
    desk.answer(asks(desk)[0], ev.text_block("one"))
    again = await desk.try_it("two")
    assert (again.status, again.pending) == (TurnStatus.AWAITING, (asks(desk)[1],))
    desk.answer(asks(desk)[1], ev.text_block("two"))
    assert (await desk.try_it("three")).text == "Thanks."
    assert [said for _, said, _ in results(desk)] == ["one", "(Bash completed with no output)", "two"]


async def test_a_new_message_instead_of_an_answer_closes_the_call(desk: Desk) -> None:
    await desk.turn("Ask. [[script:ask]]", "one")
    assert (await desk.turn("Never mind. [[script:short]]", "two")).text == "Short."
    assert results(desk) == [(NAME, UNANSWERED, True)]


async def test_an_interrupt_beside_a_command_ends_the_turn(desk: Desk) -> None:
    desk.next_turn("Both. [[script:wait]]")
    running = asyncio.create_task(desk.try_it("one"))
    await until(desk, ev.AGENT_TOOL_USE, running)
    await asyncio.sleep(0.5)
    desk.interrupt.set()
    assert (await asyncio.wait_for(running, 10)).status is TurnStatus.INTERRUPTED
    assert (await desk.try_it("one")).status is TurnStatus.INTERRUPTED
    assert (await desk.turn("Go on. [[script:short]]", "two")).text == "Short."
    (asked,) = [said for name, said, _ in results(desk) if name == NAME]
    assert asked == STOPPED
    assert len(results(desk)) == 2


async def test_a_worker_that_is_lost_while_the_call_waits(desk: Desk) -> None:
    """The client is not asked again; the command beside it is not run again."""
    desk.next_turn("Both. [[script:wait]]")
    running = asyncio.create_task(desk.try_it("one"))
    await until(desk, ev.AGENT_TOOL_USE, running)
    async with asyncio.timeout(20):
        while not ran(desk, "one"):  # noqa: ASYNC110 - a tool's own file
            await asyncio.sleep(0.02)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    outcome = await desk.try_it("two")
    assert (outcome.status, outcome.pending) == (TurnStatus.AWAITING, tuple(asks(desk)))
    assert len(asks(desk)) == 1
    desk.answer(asks(desk)[0], ev.text_block("Well."))
    assert (await desk.try_it("three")).text == "Thanks."
    assert sorted(results(desk)) == [("Bash", UNKNOWN, True), (NAME, "Well.", False)]
    assert ran(desk, "one", "two", "three") == 1


async def test_a_cli_that_is_lost_while_the_call_waits(desk: Desk) -> None:
    desk.next_turn("Both. [[script:wait]]")
    running = asyncio.create_task(desk.try_it())
    await until(desk, ev.AGENT_TOOL_USE, running)
    assert desk.environment is not None
    await desk.environment.run(["sh", "-c", "kill -9 $(pgrep -f _bundled/claude | head -1)"])
    with pytest.raises(Temporary):
        await running
    assert (await desk.try_it()).pending == tuple(asks(desk))
    assert len(desk.model.requests()) == 1


@pytest.mark.parametrize(
    ("crash_at", "after_commit"),
    [(3, False), (3, True), (6, False), (6, True)],
    ids=["before-asking", "asked", "before-asking-again", "asked-again"],
)
async def test_a_worker_that_is_lost_at_an_append(desk: Desk, crash_at: int, *, after_commit: bool) -> None:
    desk.log = log = StallingLog(stalls_at=crash_at, after_commit=after_commit)
    desk.next_turn("Both. [[script:mixed]]")
    running = asyncio.create_task(desk.try_it("one"))
    await asyncio.wait_for(log.stalled.wait(), 40)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    log.stalled.clear()
    outcome, hosts = await desk.try_it("two"), ["one", "two"]
    while outcome.status is TurnStatus.AWAITING:
        for asked in outcome.pending:
            desk.answer(asked, ev.text_block("Well."))
        hosts.append(f"host {len(hosts)}")
        outcome = await desk.try_it(hosts[-1])
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "Thanks.")
    assert ran(desk, *hosts) <= 1
    answered = [said for name, said, _ in results(desk) if name == NAME]
    assert len(answered) == 2
    assert {*answered} <= {"Well.", NOT_STARTED}
    assert len(asks(desk)) == answered.count("Well.")
    starts = [event.id for event in desk.told() if event.type == ev.MODEL_REQUEST_START]
    ends = [event.body["model_request_start_id"] for event in desk.told() if event.type == ev.MODEL_REQUEST_END]
    assert starts == ends
    assert len(desk.model.requests()) == 2


async def test_a_worker_that_stops_hands_over_or_lets_the_turn_wait(desk: Desk) -> None:
    desk.next_turn("Both. [[script:bash-last]]")
    running = asyncio.create_task(desk.try_it("one"))
    await until(desk, ev.AGENT_TOOL_USE, running)
    desk.handover.set()
    with contextlib.suppress(HandOver):
        assert (await running).status is TurnStatus.AWAITING
    desk.handover.clear()
    assert (await desk.try_it("two")).pending == tuple(asks(desk))
    assert [event.body["is_error"] for event in desk.told() if event.type == ev.AGENT_TOOL_RESULT] == [False]
    assert len(desk.model.requests()) == 1


async def test_what_is_said_while_the_model_asks_is_left_to_the_queue(desk: Desk) -> None:
    """As with `native`: it comes instead of the answer."""
    desk.next_turn("Both. [[script:bash-last]]")
    running = asyncio.create_task(desk.try_it())
    await until(desk, ev.AGENT_TOOL_USE, running)
    desk.steering.append(SteerMessage("sevt_7", [ev.text_block("Hurry up.")]))
    assert (await running).status is TurnStatus.AWAITING
    assert [message.event_id for message in desk.steering] == ["sevt_7"]


async def test_what_is_said_beside_a_command_joins_the_turn(desk: Desk) -> None:
    desk.next_turn("Run. [[script:bash]]")
    running = asyncio.create_task(desk.try_it())
    await until(desk, ev.AGENT_TOOL_USE, running)
    desk.steering.append(SteerMessage("sevt_7", [ev.text_block("Hurry up.")]))
    assert (await running).text == "Heard."
    assert len(desk.model.requests()) == 2
    assert str(desk.model.requests()[-1].body).count("Hurry up.") == 1


async def test_the_limit_of_iterations_counts_the_question(desk: Desk) -> None:
    desk.max_iterations = 1
    assert (await desk.turn("Ask. [[script:ask]]", "one")).status is TurnStatus.AWAITING
    desk.answer(asks(desk)[0], ev.text_block("Well."))
    assert (await desk.try_it("two")).status is TurnStatus.LIMIT_REACHED
    assert len(desk.model.requests()) == 1


async def test_a_connected_cli_asks_in_its_next_turn(desk: Desk) -> None:
    desk.keeps = True
    await desk.prepare()
    kept = desk.kept
    assert isinstance(kept, Connection)
    await desk.turn("Short. [[script:short]]")
    assert desk.kept is kept
    assert (await desk.turn("Ask. [[script:ask]]")).pending == tuple(asks(desk))
    assert desk.kept is not kept
    desk.answer(asks(desk)[0], ev.text_block("Blue."))
    assert (await desk.try_it("two")).text == "Thanks."
    assert results(desk) == [(NAME, "Blue.", False)]


async def test_what_the_model_is_told_of_a_tool(desk: Desk) -> None:
    schema: JsonObject = {"type": "object", "properties": {"q": {"type": "integer", "minimum": 1}}, "required": ["q"]}
    long = CustomTool(name="b" * 128, description="d" * 10_000, input_schema=schema)
    desk.custom_tools = (ASK, long)
    await desk.turn("Short. [[script:short]]")
    told = {item["name"]: item for item in body(desk)["tools"] if item["name"].startswith("mcp__")}
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
