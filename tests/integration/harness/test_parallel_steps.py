"""Parallel steps without a server: what is refused, and what the result of the step says."""

from dataclasses import replace

import pytest

from footplate.domain.json import JsonObject
from footplate.domain.ports.child_sessions import FileMerge
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.ending import EndOutcome
from footplate.domain.sessions.groups import ChildRequest, GroupResult, MemberResult, result_event
from footplate.domain.sessions.steps import Branches, ClaimedStep, ParallelSessions, StepDefinition, StepKind, WaitFor
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.harness.steps.parallel import ParallelHarness

from .doubles import World
from .test_session_tools import MemoryChildren

CHILD = ChildRequest(name="a", steps=(StepDefinition(kind=StepKind.SHELL, command="true"),))
FAILED = "The command exited with code 3.\nmore"
MEMBERS = (
    MemberResult(index=0, session_id="sesn_a", name="a", outcome=EndOutcome.FAILED, error=FAILED),
    MemberResult(index=1, session_id="sesn_b", outcome=EndOutcome.COMPLETED, text="Done."),
    MemberResult(index=2, session_id="sesn_c", name="c", outcome=EndOutcome.CANCELLED),
)


class Children(MemoryChildren):
    async def find_result(self, group_id: str) -> GroupResult:
        return GroupResult(group_id=group_id, members=MEMBERS)

    async def merge_files(self, session_ids: object, branches: Branches) -> list[FileMerge]:
        return [FileMerge(session_id="sesn_b", state="merged")]


async def run(world: World, branches: Branches = Branches.NONE, **context: str) -> TurnOutcome:
    parallel = ParallelSessions(sessions=(CHILD,) * 3, branches=branches, check="true")
    definition = StepDefinition(kind=StepKind.PARALLEL, parallel=parallel)
    step = ClaimedStep(id="step_1", position=1, definition=definition, attempt=1)
    world.content = [ev.text_block("true")] * 3
    given: JsonObject = {**context}
    return await ParallelHarness().run(replace(world.context(), step=step, context=given))


@pytest.mark.requirement("O5")
@pytest.mark.parametrize("branches", [Branches.MERGE, Branches.BEST])
async def test_files_in_a_shared_directory_are_not_merged(world: World, branches: Branches) -> None:
    world.children = children = Children(ended=True)
    outcome = await run(world, branches, directory="/home/user/shop")
    assert (outcome.status, outcome.step_failed, outcome.may_retry) == (TurnStatus.COMPLETED, True, False)
    assert f"`branches: {branches.value}` cannot run in a directory that you named" in str(outcome.error_message)
    assert "--project or --scratch" in str(outcome.error_message)
    assert not children.groups
    await run(world, directory="/home/user/shop")
    assert children.groups


@pytest.mark.requirement("O5")
async def test_the_error_names_the_sessions_that_did_not_complete(world: World) -> None:
    world.children = Children(ended=True)
    outcome = await run(world)
    assert outcome.error_message == "1 of 3 sessions completed. a: The command exited with code 3. c: cancelled."


async def test_the_summary_names_the_chosen_session(world: World) -> None:
    world.children = Children(ended=True)
    outcome = await run(world, Branches.BEST)
    assert outcome.text.startswith("1 of 3 sessions completed. Chosen: 2.\n")
    assert not outcome.step_failed


@pytest.mark.parametrize("members", [MEMBERS, (*MEMBERS[1:2], replace(MEMBERS[0], outcome=None))])
def test_a_group_with_a_chosen_session_succeeds_in_the_log(members: tuple[MemberResult, ...]) -> None:
    """The choice is named when it is final: no other session can complete."""
    chosen = GroupResult(group_id="sgrp_1", wait_for=WaitFor.FIRST_SUCCESS, members=members, picks_one=True)
    body = result_event("sevt_1", chosen).body
    assert not body["is_error"]
    assert ("Chosen: 2." in str(body["content"])) is all(member.outcome for member in members)
    for wait_for, picks_one, succeeded in (("all", True, True), ("all", False, False), ("first_success", False, True)):
        assert replace(chosen, wait_for=WaitFor(wait_for), picks_one=picks_one).succeeded is succeeded
    assert not GroupResult(group_id="sgrp_1", members=MEMBERS[::2], picks_one=True).succeeded


async def test_an_interrupted_step_has_the_results_so_far(world: World) -> None:
    world.children = Children()
    assert (await run(world)).status is TurnStatus.AWAITING
    world.interrupt.set()
    outcome = await run(world)
    assert outcome.status is TurnStatus.INTERRUPTED
    assert outcome.data["sessions"] == [member.dump() for member in MEMBERS]
