"""Subagents of the `native` harness: each has its own thread and conversation, and survives the loss of its worker."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from footplate.domain.agents.agents_and_config import CustomTool, Subagent
from footplate.domain.errors import HandOver, ModelRefused
from footplate.domain.json import as_object
from footplate.domain.policy.hooks import HookEvent
from footplate.domain.policy.permissions import PermissionOutcome as Gated
from footplate.domain.ports.harness import Endpoint
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event, Position
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.harness.native import subagent_runner
from footplate.harness.native.harness import NativeHarness
from footplate.harness.native.requests.model_resolver import AnyModel
from footplate.harness.recovery_text import UNKNOWN
from footplate.testing.sdk_validation import assert_valid_event

from .doubles import Chunk, Crash, World, call, text_of

pytestmark = pytest.mark.requirement("K10")

SCOUT = Subagent(name="scout", description="Looks.", model="small", system="You look.", tools=("bash",))
COOK = Subagent(
    name="The Cook",
    description="",
    model="small",
    system="You cook.",
    custom_tools=(CustomTool(name="taste", description="Taste it", input_schema={"type": "object"}),),
)


def delegate(name: str, call_id: str, index: int = 0, more: str = "") -> Chunk:
    return call("Agent", f'{{"prompt": "Go.", "subagent_type": "{name}"{more}}}', call_id, index)


def bash(command: str, call_id: str, index: int = 0) -> Chunk:
    return call("bash", f'{{"command": "{command}"}}', call_id, index)


@dataclass
class Agents:
    """Runs turns with a script for each agent: the responses by the number of the request."""

    world: World
    scripts: dict[str, Sequence[Sequence[Chunk]]]
    requests: list[tuple[str, list[ModelMessage], list[str]]] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    refused: str = ""
    base: int = 0

    async def run(self) -> TurnOutcome:
        outcome = await NativeHarness(self._resolve, self.world.web).run(self.world.context())
        self.world.parked = outcome.status is TurnStatus.AWAITING
        return outcome

    def _resolve(self, model: str, _endpoints: Mapping[str, Endpoint]) -> AnyModel:
        if model == self.refused:
            raise ModelRefused(f"There is no model {model!r}.")
        self.models.append(model)
        return FunctionModel(stream_function=self._stream)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Chunk]:
        name = str(info.instructions)
        self.requests.append((name, [*messages], [tool.name for tool in info.function_tools]))
        number = sum(isinstance(message, ModelResponse) for message in messages)
        if name == self.world.config.system:
            number -= self.base
        for chunk in self.scripts[name][number]:
            yield chunk

    def count(self, name: str) -> int:
        return sum(asked == name for asked, _, _ in self.requests)


LEAD = "Be brief."
ASK: Sequence[Sequence[Chunk]] = [["I ask.", delegate("scout", "c1")], ["It looked."]]
LOOK: Sequence[Sequence[Chunk]] = [["On it.", bash("echo 1 >> log", "c1")], ["All quiet."]]


@pytest.fixture
def agents(world: World) -> Agents:
    world.config = replace(world.config, subagents=(SCOUT, COOK))
    return Agents(world, {LEAD: ASK, SCOUT.system: LOOK})


def list_thread_events(world: World, thread_id: str | None) -> list[Event]:
    return [event for event in world.log.events if threads.is_visible(event.type, event.body, thread_id)]


def thread_ids(world: World) -> list[str]:
    return [str(event.body[threads.THREAD_ID]) for event in world.log.of_type(threads.CREATED)]


def list_types(events: list[Event]) -> list[str]:
    return [event.type for event in events]


def results(events: list[Event]) -> list[str]:
    return [text_of(event) for event in events if event.type == ev.AGENT_TOOL_RESULT]


def statuses(world: World, thread_id: str) -> list[str]:
    changed = [event for event in list_thread_events(world, thread_id) if event.type in threads.LIFECYCLE_EVENTS]
    reasons = [as_object(event.body.get("stop_reason")).get("type") for event in changed]
    return [str(reason or event.type) for event, reason in zip(changed, reasons, strict=True)]


async def test_a_subagent_has_its_own_thread(agents: Agents) -> None:
    """The events are those that Claude Code's subagents have."""
    world = agents.world
    outcome = await agents.run()
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "It looked.")
    (thread_id,) = thread_ids(world)
    assert list_types(list_thread_events(world, None)) == [
        ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END, ev.AGENT_TOOL_USE,
        threads.CREATED, threads.RUNNING, threads.MESSAGE_SENT, threads.MESSAGE_RECEIVED, threads.IDLE,
        ev.AGENT_TOOL_RESULT, ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END,
    ]  # fmt: skip
    own = list_thread_events(world, thread_id)
    assert list_types(own) == [
        threads.RUNNING, threads.MESSAGE_RECEIVED, ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END,
        ev.AGENT_TOOL_USE, ev.AGENT_TOOL_RESULT, ev.MODEL_REQUEST_START, ev.AGENT_MESSAGE, ev.MODEL_REQUEST_END,
        threads.MESSAGE_SENT, threads.IDLE,
    ]  # fmt: skip
    assert results(list_thread_events(world, None)) == ["All quiet."]
    for number, event in enumerate(world.log.events):
        now = datetime.now(UTC)
        assert_valid_event(ev.to_wire(Position(number, event, now, now)))
    assert sum(used.requests for used in world.log.usage) == 4
    assert own[-1].body["usage"]["requests"] == 2  # pyrefly: ignore[bad-index, unsupported-operation]
    assert not any("On it." in preview.text for preview in world.log.previews)
    assert [event for event, _ in world.gate.hook_events if event is HookEvent.SUBAGENT_STOP] == [
        HookEvent.SUBAGENT_STOP
    ]


async def test_a_subagent_has_its_own_prompt_model_tools_and_rules(agents: Agents) -> None:
    await agents.run()
    assert agents.models == ["test", "small"]
    (_, first, offered), (_, second, of_scout), *_ = agents.requests
    assert "Agent" in offered
    assert of_scout == ["bash"]
    assert len(first) == len(second) == 1
    assert agents.world.gate.agents == [None, "scout"]


async def test_the_conversation_of_the_agent_has_only_the_result(agents: Agents) -> None:
    await agents.run()
    assert [type(message).__name__ for message in agents.world.messages] == [
        "ModelRequest", "ModelResponse", "ModelRequest", "ModelResponse",
    ]  # fmt: skip


async def test_only_the_agents_own_subagents_run_and_only_as_configured(
    agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subagent_runner, "MAX_THREADS", 1)
    agents.scripts = {
        LEAD: [
            [delegate("general-purpose", "c1")],
            [delegate("scout", "c2", more=', "model": "opus"')],
            [delegate("scout", "c3")],
            [delegate("scout", "c4")],
            ["Then not."],
        ],
        SCOUT.system: [["Quiet."]],
    }
    assert (await agents.run()).text == "Then not."
    unknown, overridden, quiet, one_too_many = results(agents.world.log.events)
    assert "scout, The Cook" in unknown
    assert "cannot be set in a call: model. Remove them" in overridden
    assert quiet == "Quiet."
    assert "which is the limit" in one_too_many
    assert len(thread_ids(agents.world)) == 1


async def test_a_failed_subagent_is_a_tool_result(agents: Agents) -> None:
    agents.refused = "small"
    assert (await agents.run()).text == "It looked."
    (thread_id,) = thread_ids(agents.world)
    assert "There is no model" in results(list_thread_events(agents.world, None))[0]
    assert statuses(agents.world, thread_id) == [threads.RUNNING, "end_turn"]


async def run_to_the_end(agents: Agents) -> TurnOutcome:
    world = agents.world
    for _ in range(10):
        try:
            outcome = await agents.run()
        except (Crash, HandOver):
            world.log.crash_at = None
            world.log.handover.clear()
            continue
        if outcome.status is not TurnStatus.AWAITING:
            return outcome
        for event_id in outcome.pending:
            world.confirm(event_id, "allow")
    raise AssertionError("the turn never ended")


APPENDS = 10
"""Appends of an undisturbed turn without approvals. With an approval there are 14."""


@pytest.mark.parametrize("asks", [False, True], ids=["allowed", "asked"])
@pytest.mark.parametrize("after_commit", [False, True], ids=["before-commit", "after-commit"])
async def test_a_worker_lost_at_any_write(agents: Agents, *, asks: bool, after_commit: bool) -> None:
    """The thread is resumed: no command runs twice, no stored response is paid for twice, and no thread is lost."""
    world = agents.world
    if asks:
        world.gate.outcomes = {"Agent": Gated.ASK, "bash": Gated.ASK}
    world.log.crash_after_commit = after_commit
    for crash_at in itertools.count(1):
        world.log.events, world.log.entries, world.log.usage = [], [], []
        world.attempt, world.log.appends, world.log.crash_at = 0, 0, crash_at
        world.environment.ran.clear()
        agents.requests.clear()
        assert (await run_to_the_end(agents)).text == "It looked."
        (thread_id,) = thread_ids(world)
        assert world.environment.ran["echo 1 >> log"] <= 1
        inside = results(threads.events_of(world.log.events, thread_id))
        assert len(inside) == 1
        assert world.environment.ran["echo 1 >> log"] == 1 or inside == [UNKNOWN]
        assert results(threads.events_of(world.log.events, None)) == ["All quiet."]
        assert statuses(world, thread_id)[-1] == "end_turn"
        starts = [event.id for event in world.log.of_type(ev.MODEL_REQUEST_START)]
        ends = [event.body["model_request_start_id"] for event in world.log.of_type(ev.MODEL_REQUEST_END)]
        assert sorted(starts) == sorted(map(str, ends))
        if after_commit:
            assert (agents.count(LEAD), agents.count(SCOUT.system)) == (2, 2)
        if world.log.crash_at is not None:  # the turn ended before this write
            break
    assert crash_at - 1 == (14 if asks else APPENDS)


@pytest.mark.parametrize("at", range(1, APPENDS + 1))
async def test_a_worker_is_asked_to_stop_at_every_append(agents: Agents, at: int) -> None:
    agents.world.log.hand_over_at = at
    assert (await run_to_the_end(agents)).text == "It looked."
    assert agents.world.environment.ran == {"echo 1 >> log": 1}
    assert (agents.count(LEAD), agents.count(SCOUT.system)) == (2, 2)
    assert UNKNOWN not in results(agents.world.log.events)


@pytest.mark.parametrize("result", ["allow", "deny"])
async def test_a_call_that_requires_approval_parks_the_turn(agents: Agents, result: str) -> None:
    world = agents.world
    world.gate.outcomes = {"bash": Gated.ASK}
    outcome = await agents.run()
    (request,) = [event for event in world.log.events if ev.needs_approval(event)]
    (thread_id,) = thread_ids(world)
    assert (outcome.status, outcome.pending) == (TurnStatus.AWAITING, (request.id,))
    assert (request.body["agent_name"], request.body[threads.THREAD_ID]) == ("scout", thread_id)
    assert statuses(world, thread_id) == [threads.RUNNING, "requires_action"]
    world.confirm(request.id, result)
    assert (await agents.run()).text == "It looked."
    assert world.environment.ran == ({"echo 1 >> log": 1} if result == "allow" else {})
    assert statuses(world, thread_id) == [threads.RUNNING, "requires_action", threads.RUNNING, "end_turn"]


async def test_other_calls_run_while_a_subagent_waits(agents: Agents) -> None:
    world = agents.world
    world.gate.outcomes = {"echo 1 >> log": Gated.ASK}
    agents.scripts[LEAD] = [[delegate("scout", "c1"), bash("echo 2 >> log", "c2", 1)], ["It looked."]]
    outcome = await agents.run()
    assert world.environment.ran == {"echo 2 >> log": 1}
    world.confirm(outcome.pending[0], "allow")
    assert (await agents.run()).text == "It looked."
    assert world.environment.ran == {"echo 2 >> log": 1, "echo 1 >> log": 1}


async def test_a_custom_tool_of_a_subagent_is_run_by_the_client(agents: Agents) -> None:
    world = agents.world
    agents.scripts = {
        LEAD: [[delegate("The Cook", "c1")], ["It tastes."]],
        COOK.system: [[call("taste", "{}", "c1")], ["Salty."]],
    }
    outcome = await agents.run()
    (use,) = world.log.of_type(ev.AGENT_CUSTOM_TOOL_USE)
    assert outcome.pending == (use.id,)
    assert use in list_thread_events(world, None)
    world.send_tool_result(use.id, "Salt")
    assert (await agents.run()).text == "It tastes."
    assert "Salt" in str(agents.requests[-2][1])
    assert agents.requests[-2][2] == ["taste"]


async def test_a_new_message_ends_a_waiting_subagent(agents: Agents) -> None:
    world = agents.world
    world.gate.outcomes = {"bash": Gated.ASK}
    await agents.run()
    world.next_turn("turn_2", "Never mind")
    agents.base = 1
    agents.scripts[LEAD] = [["Fine."]]
    assert (await agents.run()).text == "Fine."
    (thread_id,) = thread_ids(world)
    assert world.environment.ran == {}
    assert "not approved before the user sent a new message" in results(list_thread_events(world, thread_id))[0]
    assert "was stopped" in results(list_thread_events(world, None))[0]
    assert statuses(world, thread_id)[-1] == "end_turn"
    world.next_turn("turn_3", "And?")
    agents.base = 2
    assert (await agents.run()).text == "Fine."


async def interrupt_running_command(agents: Agents, *, thread_only: bool) -> tuple[TurnOutcome, str]:
    world = agents.world
    agents.scripts[SCOUT.system] = [["On it.", bash("sleep 30", "c1")], ["Never."]]
    running = asyncio.create_task(agents.run())
    await asyncio.wait_for(world.environment.started.wait(), 10)
    (thread_id,) = thread_ids(world)
    if thread_only:
        world.thread_interrupts[thread_id].set()
    else:
        world.interrupt.set()
    return await asyncio.wait_for(running, 10), thread_id


async def test_an_interrupt_stops_the_subagent_too(agents: Agents) -> None:
    outcome, thread_id = await interrupt_running_command(agents, thread_only=False)
    assert outcome.status is TurnStatus.INTERRUPTED
    assert "interrupted this call" in results(list_thread_events(agents.world, thread_id))[0]
    assert "interrupted this subagent" in results(list_thread_events(agents.world, None))[0]
    assert statuses(agents.world, thread_id) == [threads.RUNNING, "end_turn"]
    agents.world.next_turn("turn_2", "Go on")
    agents.base, agents.scripts[LEAD] = 1, [["Fine."]]
    assert (await agents.run()).text == "Fine."


async def test_an_interrupt_of_one_thread_stops_only_that_thread(agents: Agents) -> None:
    outcome, thread_id = await interrupt_running_command(agents, thread_only=True)
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "It looked.")
    assert "interrupted this call" in results(list_thread_events(agents.world, thread_id))[0]
    assert "interrupted this subagent" in results(list_thread_events(agents.world, None))[0]
    assert statuses(agents.world, thread_id) == [threads.RUNNING, "end_turn"]


async def test_an_interrupted_thread_stays_interrupted_after_a_crash(agents: Agents) -> None:
    """The interrupt of a waiting thread is in the log, and its call is closed when the turn resumes."""
    world = agents.world
    world.gate.outcomes = {"bash": Gated.ASK}
    await agents.run()
    (thread_id,) = thread_ids(world)
    world.log.events.append(Event(ev.USER_INTERRUPT, {threads.THREAD_ID: thread_id}))
    assert (await agents.run()).text == "It looked."
    assert world.environment.ran == {}
    assert agents.count(SCOUT.system) == 1
    assert "interrupted" in results(list_thread_events(world, thread_id))[0]


async def test_an_interrupt_while_a_subagent_waits_closes_its_calls(agents: Agents) -> None:
    world = agents.world
    world.gate.outcomes = {"bash": Gated.ASK}
    await agents.run()
    world.interrupt.set()
    assert (await agents.run()).status is TurnStatus.INTERRUPTED
    (thread_id,) = thread_ids(world)
    assert len(results(list_thread_events(world, thread_id))) == 1
    assert statuses(world, thread_id)[-1] == "end_turn"
