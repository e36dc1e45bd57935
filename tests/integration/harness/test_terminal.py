"""The `terminal` harness: a shell for a person that ends, is interrupted, moves to another worker, or is lost."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from footplate.domain.errors import HandOver, Permanent
from footplate.domain.ports.harness import CommandResult, TurnContext
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.steps import TERMINAL, ClaimedStep, StepDefinition, StepKind
from footplate.domain.sessions.turns import TurnStatus
from footplate.harness.steps.terminal import TerminalHarness

from .doubles import World, text_of

pytestmark = pytest.mark.timing

STEP = ClaimedStep(id="step_1", position=1, definition=TERMINAL, attempt=1)


@dataclass
class FakeTerminal:
    """A program that runs until it is ended."""

    ended: asyncio.Event = field(default_factory=asyncio.Event)
    reasons: list[str] = field(default_factory=list)
    was_used: bool = True
    idle_seconds: float = 0.0
    size: int = 4

    @property
    def recording(self) -> "FakeTerminal":
        return self

    def pieces(self) -> Iterator[bytes]:
        yield b"cast"

    async def run_to_end(self) -> CommandResult:
        await self.ended.wait()
        return CommandResult(exit_code=1, stdout=b"", stderr=b"", duration=1)

    async def stop(self, reason: str, *, timed_out: bool = False) -> CommandResult:
        self.reasons.append(reason)
        return CommandResult(exit_code=None, stdout=b"", stderr=b"", duration=1, timed_out=timed_out)


@dataclass
class FakeTerminals:
    opened: list[FakeTerminal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    next: FakeTerminal = field(default_factory=FakeTerminal)

    async def open_terminal(self, terminal_id: str, *, command: str | None = None, note: str = "") -> FakeTerminal:
        assert (terminal_id[:5], command) == ("sevt_", None)
        self.opened.append(self.next)
        self.notes.append(note)
        return self.next


def context(world: World, terminals: FakeTerminals | None, step: ClaimedStep | None = STEP) -> TurnContext:
    return replace(world.context(), terminals=terminals, step=step)


def results(world: World) -> list[object]:
    return [event.body["terminal"] for event in world.log.of_type(ev.AGENT_TOOL_RESULT)]


@pytest.mark.requirement("O3")
async def test_a_shell_that_ends_completes_the_step_and_is_recorded(world: World) -> None:
    terminals = FakeTerminals()
    terminals.next.ended.set()
    outcome = await TerminalHarness().run(context(world, terminals))
    assert (outcome.status, outcome.step_failed) == (TurnStatus.COMPLETED, False)  # whatever the exit code is
    (use,) = world.log.of_type(ev.AGENT_TOOL_USE)
    assert results(world) == [{"status": "closed", "recording": f"recordings/{use.id}.cast"}]
    assert world.log.outputs == [b"cast"]
    again = await TerminalHarness().run(context(world, terminals))  # the end of the turn was lost
    assert (again.status, len(terminals.opened)) == (TurnStatus.COMPLETED, 1)


async def test_an_interrupt_and_a_terminal_that_no_person_uses_close_it(world: World) -> None:
    terminals = FakeTerminals()
    running = asyncio.create_task(TerminalHarness().run(context(world, terminals)))
    await asyncio.sleep(0)
    world.interrupt.set()
    assert (await running).status is TurnStatus.INTERRUPTED
    world.next_turn("turn_2", "")
    unused = FakeTerminals(next=FakeTerminal(was_used=False, idle_seconds=121))
    assert (await TerminalHarness().run(context(world, unused))).status is TurnStatus.COMPLETED
    assert "not used" in unused.next.reasons[0]


@pytest.mark.requirement("O3")
async def test_a_stopping_worker_and_a_lost_one_are_reported_and_another_terminal_is_opened(world: World) -> None:
    terminals = FakeTerminals()
    running = asyncio.create_task(TerminalHarness().run(context(world, terminals)))
    await asyncio.sleep(0)
    world.log.handover.set()
    with pytest.raises(HandOver):
        await running
    world.log.handover.clear()
    lost = asyncio.create_task(TerminalHarness().run(context(world, terminals)))
    await asyncio.sleep(0.05)
    lost.cancel()
    await asyncio.gather(lost, return_exceptions=True)
    terminals.next.ended.set()
    await TerminalHarness().run(context(world, terminals))
    assert [str(dict(each)["status"]) for each in results(world) if isinstance(each, dict)] == [
        "moved",
        "lost",
        "closed",
    ]
    assert ["" if not note else note.split(".")[0] for note in terminals.notes] == [
        "",
        "The worker stopped",
        "The worker was lost, and the terminal with it",
    ]
    assert "last snapshot" in text_of(world.log.of_type(ev.AGENT_TOOL_RESULT)[1])


async def test_a_terminal_that_is_opened_again_stays_open_although_no_person_types(world: World) -> None:
    first = asyncio.create_task(TerminalHarness().run(context(world, FakeTerminals())))
    await asyncio.sleep(0)
    world.log.handover.set()
    with pytest.raises(HandOver):
        await first
    world.log.handover.clear()
    unused = FakeTerminals(next=FakeTerminal(was_used=False, idle_seconds=1799))
    reopened = asyncio.create_task(TerminalHarness().run(context(world, unused)))
    await asyncio.sleep(0.05)
    assert unused.opened
    assert not unused.next.reasons
    world.interrupt.set()
    await reopened
    world.interrupt.clear()


@pytest.mark.parametrize("kind", [None, StepKind.PROMPT])
async def test_only_a_step_that_was_opened_as_a_terminal_is_one(world: World, kind: StepKind | None) -> None:
    """An agent may choose any harness, but a message must not open a terminal."""
    step = None if kind is None else replace(STEP, definition=StepDefinition(kind=kind))
    with pytest.raises(Permanent):
        await TerminalHarness().run(context(world, FakeTerminals(), step))
    assert world.log.events == []
