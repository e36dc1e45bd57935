"""Steps that deliver, without a server: results, errors, interrupts, and attempts that are lost."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from footplate.domain.errors import Conflict, HandOver, Permanent
from footplate.domain.files.delivery import BranchCheckedOut, DeliveryResult, FileConflict, MergeConflict
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import steps
from footplate.domain.sessions.steps import ClaimedStep, StepDefinition, StepDelivery, StepKind
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.harness.steps.delivery import DeliveryHarness

from .doubles import Crash, World

MERGED = DeliveryResult(status="merged", branch="main", commit="1a2b3c4" + "0" * 33, before="b" * 40)
MERGE = StepDefinition(kind=StepKind.MERGE, name="deliver", delivery=StepDelivery(branch="main"))


@dataclass
class Branch:
    """A branch that each delivery updates. It survives a crash."""

    failure: Exception | None = None
    crash: str = ""
    """`before` or `after` the update."""
    is_busy: bool = False
    commits: list[str] = field(default_factory=list)
    waits: asyncio.Event = field(default_factory=asyncio.Event)
    begins: asyncio.Event = field(default_factory=asyncio.Event)
    may_finish: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_finish.set()

    async def deliver(
        self, updates: Sequence[DeliveryResult], record_update: Callable[[DeliveryResult], Awaitable[None]]
    ) -> DeliveryResult:
        if self.failure is not None:
            raise self.failure
        if self.is_busy:
            self.waits.set()
            await asyncio.Event().wait()
        for update in updates:
            if update.commit in self.commits:
                return update
        commit = f"{len(updates)}" + MERGED.commit[1:]
        await record_update(replace(MERGED, commit=commit))
        if self.crash == "before":
            raise Crash
        self.begins.set()
        await self.may_finish.wait()
        self.commits.append(commit)
        if self.crash == "after":
            raise Crash
        return replace(MERGED, commit=commit)


async def run(world: World, branch: Branch | None, definition: StepDefinition = MERGE) -> TurnOutcome:
    world.content = [ev.text_block("All done")]
    step = ClaimedStep(id="step_1", position=1, definition=definition, attempt=1)
    return await DeliveryHarness().run(replace(world.context(), step=step, delivery=branch))


def types(world: World) -> list[str]:
    return [event.type for event in world.log.events]


async def test_a_delivery_is_a_call_with_the_commit_as_its_output(world: World) -> None:
    branch = Branch()
    outcome = await run(world, branch)
    assert (outcome.status, outcome.step_failed) == (TurnStatus.COMPLETED, False)
    assert outcome.text == f"merged into main: {branch.commits[0][:7]}"
    command = outcome.data["command"]
    assert isinstance(command, dict)
    assert steps.stream_text(command["stdout"]) == branch.commits[0]
    assert types(world) == [ev.AGENT_TOOL_USE, "step.call_started", ev.AGENT_TOOL_RESULT]
    use, _, result = world.log.events
    assert (use.body["name"], use.body["step_id"], use.body["evaluated_permission"]) == (
        "merge_branch",
        "step_1",
        "allow",
    )
    assert use.body["input"] == {"into": "main", "message": "All done"}
    assert (result.body["tool_use_id"], result.body["is_error"]) == (use.id, False)


@pytest.mark.parametrize("crash", ["before", "after"])
async def test_a_lost_attempt_is_continued_and_its_update_reported(world: World, crash: str) -> None:
    branch = Branch(crash=crash)
    with pytest.raises(Crash):
        await run(world, branch)
    branch.crash = ""
    outcome = await run(world, branch)
    assert outcome.text == f"merged into main: {branch.commits[0][:7]}"
    assert len(branch.commits) == 1
    assert types(world).count(ev.AGENT_TOOL_USE) == types(world).count(ev.AGENT_TOOL_RESULT) == 1
    assert await run(world, Branch(failure=AssertionError("a recorded result is final"))) == outcome


@pytest.mark.parametrize(
    ("failure", "text", "may_retry"),
    [
        (MergeConflict("main", [FileConflict(path="a.py", reason="changed on both sides")]), "a.py: changed", False),
        (BranchCheckedOut("main", "app"), "is checked out", True),
        (Conflict("The branch is busy.", help_text="Try again later."), "Try again later.", True),
    ],
)
async def test_a_refused_delivery_fails_the_step_with_the_reason(
    world: World, failure: Exception, text: str, *, may_retry: bool
) -> None:
    outcome = await run(world, Branch(failure=failure))
    assert (outcome.status, outcome.step_failed, outcome.may_retry) == (TurnStatus.COMPLETED, True, may_retry)
    assert text in str(outcome.error_message)
    assert await run(world, Branch()) == outcome


async def test_an_interrupt_ends_the_wait_for_the_branch(world: World) -> None:
    branch = Branch(is_busy=True)
    running = asyncio.create_task(run(world, branch))
    await branch.waits.wait()
    world.interrupt.set()
    assert (await running).status is TurnStatus.INTERRUPTED
    assert "Nothing was changed" in str(world.log.of_type(ev.AGENT_TOOL_RESULT)[0].body["content"])
    assert (await run(world, Branch())).status is TurnStatus.INTERRUPTED


async def test_an_update_that_has_begun_is_finished_despite_an_interrupt(world: World) -> None:
    branch = Branch()
    branch.may_finish.clear()
    running = asyncio.create_task(run(world, branch))
    await branch.begins.wait()
    world.interrupt.set()
    await asyncio.wait({running}, timeout=0.05)
    branch.may_finish.set()
    outcome = await running
    assert (outcome.status, len(branch.commits)) == (TurnStatus.COMPLETED, 1)


async def test_nothing_begins_when_the_worker_stops_or_the_turn_is_interrupted(world: World) -> None:
    world.log.handover.set()
    with pytest.raises(HandOver):
        await run(world, Branch())
    world.interrupt.set()
    assert (await run(world, Branch())).status is TurnStatus.INTERRUPTED
    assert not world.log.events


async def test_only_steps_that_deliver_can_deliver(world: World) -> None:
    shell = StepDefinition(kind=StepKind.SHELL, command="true")
    for branch, definition in ((Branch(), shell), (None, MERGE)):
        with pytest.raises(Permanent):
            await run(world, branch, definition)
