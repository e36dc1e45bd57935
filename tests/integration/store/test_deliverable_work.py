"""The work of a session that can be delivered, and the deliveries recorded before it, in the real database."""

from dataclasses import replace

import pytest

from footplate.domain.errors import Conflict, Fenced, InvalidRequest, NotFound
from footplate.domain.files.delivery import DeliveryRequest, NothingToDeliver
from footplate.domain.files.snapshots import Snapshot, StoredSnapshot, TreeSnapshot
from footplate.domain.organisations.principals import Principal
from footplate.domain.projects.project import BaseCommit, ProjectSelection
from footplate.store.log.files.deliverable_work import Deliveries

from .cell import COMPLETED, Cell, new_principal
from .test_projects import claim_turn, create_project, start_session

ASKED = DeliveryRequest()


def stored(number: int) -> StoredSnapshot:
    return StoredSnapshot(number, Snapshot(f"{number:040d}", None, (("HEAD", "c" * 40),), "d" * 40), base="b" * 40)


async def turn(cell: Cell, principal: Principal, session_id: str, project_id: str, number: int) -> None:
    claim = await claim_turn(cell, principal, session_id)
    await cell.turns.decide_base(claim, project_id, BaseCommit("1" * 40, "main", "app"))
    await cell.turns.finish(claim, COMPLETED, [TreeSnapshot(project_id, stored(number))])


async def test_a_delivery_has_the_newest_snapshot_and_the_earlier_deliveries(cell: Cell) -> None:
    principal = new_principal()
    project = await create_project(cell, principal)
    session_id = await start_session(cell, principal, ProjectSelection(project_ids=[project.id]))
    await turn(cell, principal, session_id, project.id, 1)
    departures = Deliveries(cell.database)
    found = await departures.find_delivery(principal.organisation, session_id, DeliveryRequest(message="First"))
    assert (found.project.path, found.project.base) == ("app", BaseCommit("1" * 40, "main", "app"))
    assert (found.diff.new, found.diff.tree, found.diff.is_additional) == (stored(1), project.id, False)
    (step,) = found.steps
    assert (step.snapshot, step.message) == (stored(1).snapshot, f"First\n\nFootplate-Session: {session_id}\n")
    with pytest.raises(Conflict):
        async with departures.record_delivery(
            await departures.find_delivery(principal.organisation, session_id, DeliveryRequest(message="Refused"))
        ):
            raise Conflict("The branch is checked out.")
    async with departures.record_delivery(found) as known:
        assert known.steps == found.steps
    with pytest.raises(Conflict):
        async with departures.record_delivery(
            await departures.find_delivery(principal.organisation, session_id, DeliveryRequest(message="Other"))
        ):
            raise Conflict("What left once has left.")
    assert (await departures.find_delivery(principal.organisation, session_id, ASKED)).steps == found.steps
    for number in (2, 3):  # the second was not delivered, and is no step
        await cell.send(principal, session_id, "go on")
        await turn(cell, principal, session_id, project.id, number)
    now = await departures.find_delivery(principal.organisation, session_id, ASKED)
    assert [step.snapshot for step in now.steps] == [stored(1).snapshot, stored(3).snapshot]
    assert now.steps[1].message.startswith("Work of the session")


async def test_a_fork_continues_from_the_earlier_deliveries_of_its_parent(cell: Cell) -> None:
    principal = new_principal()
    project = await create_project(cell, principal)
    session_id = await start_session(cell, principal, ProjectSelection(project_ids=[project.id]))
    await turn(cell, principal, session_id, project.id, 1)
    departures = Deliveries(cell.database)
    async with departures.record_delivery(await departures.find_delivery(principal.organisation, session_id, ASKED)):
        pass
    fork = await cell.fork(principal, session_id)
    await cell.send(principal, session_id, "go on")
    await turn(cell, principal, session_id, project.id, 2)
    async with departures.record_delivery(await departures.find_delivery(principal.organisation, session_id, ASKED)):
        pass
    await cell.send(principal, fork.id, "otherwise")
    await turn(cell, principal, fork.id, project.id, 7)
    found = await departures.find_delivery(principal.organisation, fork.id, ASKED)
    assert [step.snapshot for step in found.steps] == [stored(1).snapshot, stored(7).snapshot]
    assert found.diff.ancestors == (session_id,)


async def test_a_later_delivery_of_the_parent_changes_no_commit_of_its_fork(cell: Cell) -> None:
    principal = new_principal()
    project = await create_project(cell, principal)
    session_id = await start_session(cell, principal, ProjectSelection(project_ids=[project.id]))
    await turn(cell, principal, session_id, project.id, 1)
    departures = Deliveries(cell.database)
    fork = await cell.fork(principal, session_id)
    await cell.send(principal, fork.id, "otherwise")
    await turn(cell, principal, fork.id, project.id, 7)
    before = await departures.find_delivery(principal.organisation, fork.id, ASKED)
    assert [step.snapshot for step in before.steps] == [stored(7).snapshot]
    async with departures.record_delivery(before):
        pass
    async with departures.record_delivery(
        await departures.find_delivery(principal.organisation, session_id, DeliveryRequest(message="Later"))
    ):
        pass
    assert (await departures.find_delivery(principal.organisation, fork.id, ASKED)).steps == before.steps
    of_fork = await cell.fork(principal, fork.id)  # created after it, but from a fork that was created before
    assert [step.seq for step in (await departures.find_delivery(principal.organisation, of_fork.id, ASKED)).steps] == [
        before.steps[0].seq
    ]
    late = await cell.fork(principal, session_id)
    assert [
        step.message[:5] for step in (await departures.find_delivery(principal.organisation, late.id, ASKED)).steps
    ] == ["Later"]
    await cell.delete(principal, late.id)
    await cell.delete(principal, session_id)  # the first fork needs its snapshot, but no later delivery
    assert await cell.rows("departures", session_id) == []
    assert (await departures.find_delivery(principal.organisation, fork.id, ASKED)).steps == before.steps


async def test_a_fork_delivers_its_initial_snapshot_with_its_own_message(cell: Cell) -> None:
    principal = new_principal()
    project = await create_project(cell, principal)
    session_id = await start_session(cell, principal, ProjectSelection(project_ids=[project.id]))
    await turn(cell, principal, session_id, project.id, 1)
    departures = Deliveries(cell.database)
    fork, other = await cell.fork(principal, session_id), await cell.fork(principal, session_id)
    with pytest.raises(Conflict):
        async with departures.record_delivery(
            await departures.find_delivery(principal.organisation, fork.id, DeliveryRequest(message="Refused"))
        ):
            raise Conflict("The branch is checked out.")
    async with departures.record_delivery(
        await departures.find_delivery(principal.organisation, fork.id, DeliveryRequest(message="Forked"))
    ):
        pass
    for session in (session_id, other.id):
        (step,) = (await departures.find_delivery(principal.organisation, session, ASKED)).steps
        assert step.message.startswith(f"Work of the session {session}")
    await cell.send(principal, fork.id, "go on")
    await turn(cell, principal, fork.id, project.id, 2)
    steps = (await departures.find_delivery(principal.organisation, fork.id, ASKED)).steps
    assert [(step.snapshot, step.message[:6]) for step in steps] == [
        (stored(1).snapshot, "Forked"),
        (stored(2).snapshot, "Work o"),
    ]
    await cell.delete(principal, fork.id)
    assert await cell.rows("departures", fork.id) == []


async def test_a_snapshot_that_is_written_again_counts_as_not_delivered(cell: Cell) -> None:
    principal = new_principal()
    project = await create_project(cell, principal)
    session_id = await start_session(cell, principal, ProjectSelection(project_ids=[project.id]))
    claim = await claim_turn(cell, principal, session_id)
    await cell.turns.decide_base(claim, project.id, BaseCommit("1" * 40, "main", "app"))
    departures = Deliveries(cell.database)
    asked = DeliveryRequest(message="First", writes=False)
    for number, message in ((1, "First"), (1, "First"), (2, "Work ")):  # without an event, so at the same position
        await cell.turns.append(claim, (), files=[TreeSnapshot(project.id, stored(number))])
        found = await departures.find_delivery(
            principal.organisation, session_id, replace(asked, message=None if number > 1 else "First")
        )
        assert [step.message[:5] for step in found.steps] == [message]
        if number == 1:
            async with departures.record_delivery(found):
                pass


async def test_work_that_cannot_be_delivered_is_refused_with_the_reason(cell: Cell) -> None:
    principal = new_principal()
    one, two = await create_project(cell, principal, "one"), await create_project(cell, principal, "two")
    departures = Deliveries(cell.database)
    scratch = await start_session(cell, principal, ProjectSelection())
    with pytest.raises(NothingToDeliver, match="has no project"):
        await departures.find_delivery(principal.organisation, scratch, ASKED)
    session_id = await start_session(cell, principal, ProjectSelection(project_ids=[one.id, two.id]))
    with pytest.raises(InvalidRequest, match="has 2 projects"):
        await departures.find_delivery(principal.organisation, session_id, ASKED)
    with pytest.raises(InvalidRequest, match="is not a project of session"):
        await departures.find_delivery(principal.organisation, session_id, DeliveryRequest(project_id="proj_x"))
    of_one = DeliveryRequest(project_id=one.id)
    with pytest.raises(NotFound):
        await departures.find_delivery(new_principal().organisation, session_id, of_one)
    with pytest.raises(NothingToDeliver, match="has not changed any files"):
        await departures.find_delivery(principal.organisation, session_id, of_one)
    claim = await claim_turn(cell, principal, session_id)
    with pytest.raises(Conflict, match="is running a turn"):
        await departures.find_delivery(principal.organisation, session_id, of_one)
    await cell.turns.append(claim, (), files=[TreeSnapshot(one.id, stored(1))])
    for accepted in (replace(of_one, writes=False), replace(of_one, epoch=claim.epoch)):
        found = await departures.find_delivery(principal.organisation, session_id, accepted)
        assert found.diff.new == stored(1)
    with pytest.raises(Fenced):
        await departures.find_delivery(principal.organisation, session_id, replace(of_one, epoch=claim.epoch - 1))
