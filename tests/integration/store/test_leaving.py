"""The work of a session that can be delivered, and the deliveries recorded before it, in the real database."""

from dataclasses import replace

import pytest

from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.leaving import DepartureAsked, NothingToLeave
from footplate.domain.principals import Principal
from footplate.domain.projects import Base, Choice
from footplate.domain.snapshots import KeptSnapshot, Snapshot, TreeSnapshot
from footplate.store.leaving import Departures

from .cell import ANSWERED, Cell, somebody
from .test_projects import begin, claimed, create

ASKED = DepartureAsked()


def kept(number: int) -> KeptSnapshot:
    return KeptSnapshot(number, Snapshot(f"{number:040d}", None, (("HEAD", "c" * 40),), "d" * 40), base="b" * 40)


async def turn(cell: Cell, who: Principal, session_id: str, project_id: str, number: int) -> None:
    claim = await claimed(cell, who, session_id)
    await cell.turns.decide_base(claim, project_id, Base("1" * 40, "main", "app"))
    await cell.turns.finish(claim, ANSWERED, [TreeSnapshot(project_id, kept(number))])


async def test_it_is_the_newest_and_what_left_before(cell: Cell) -> None:
    who = somebody()
    project = await create(cell, who)
    session_id = await begin(cell, who, Choice(project_ids=[project.id]))
    await turn(cell, who, session_id, project.id, 1)
    departures = Departures(cell.database)
    found = await departures.find(who, session_id, DepartureAsked(message="First"))
    assert (found.project.path, found.project.base) == ("app", Base("1" * 40, "main", "app"))
    assert (found.files.new, found.files.tree, found.files.beside) == (kept(1), project.id, False)
    (step,) = found.steps
    assert (step.snapshot, step.message) == (kept(1).snapshot, f"First\n\nFootplate-Session: {session_id}\n")
    with pytest.raises(Conflict):
        async with departures.leaving(await departures.find(who, session_id, DepartureAsked(message="Refused"))):
            raise Conflict("The branch is checked out.")
    async with departures.leaving(found) as known:
        assert known.steps == found.steps
    with pytest.raises(Conflict):
        async with departures.leaving(await departures.find(who, session_id, DepartureAsked(message="Other"))):
            raise Conflict("What left once has left.")
    assert (await departures.find(who, session_id, ASKED)).steps == found.steps
    for number in (2, 3):  # the second was not delivered, and is no step
        await cell.send(who, session_id, "go on")
        await turn(cell, who, session_id, project.id, number)
    now = await departures.find(who, session_id, ASKED)
    assert [step.snapshot for step in now.steps] == [kept(1).snapshot, kept(3).snapshot]
    assert now.steps[1].message.startswith("Work of the session")


async def test_a_fork_goes_on_from_what_its_parent_let_out_before(cell: Cell) -> None:
    who = somebody()
    project = await create(cell, who)
    session_id = await begin(cell, who, Choice(project_ids=[project.id]))
    await turn(cell, who, session_id, project.id, 1)
    departures = Departures(cell.database)
    async with departures.leaving(await departures.find(who, session_id, ASKED)):
        pass
    fork = await cell.fork(who, session_id)
    await cell.send(who, session_id, "go on")
    await turn(cell, who, session_id, project.id, 2)
    async with departures.leaving(await departures.find(who, session_id, ASKED)):
        pass
    await cell.send(who, fork.id, "otherwise")
    await turn(cell, who, fork.id, project.id, 7)
    found = await departures.find(who, fork.id, ASKED)
    assert [step.snapshot for step in found.steps] == [kept(1).snapshot, kept(7).snapshot]
    assert found.files.owners == (session_id,)


async def test_what_a_parent_lets_out_later_changes_no_commit_of_its_fork(cell: Cell) -> None:
    who = somebody()
    project = await create(cell, who)
    session_id = await begin(cell, who, Choice(project_ids=[project.id]))
    await turn(cell, who, session_id, project.id, 1)
    departures = Departures(cell.database)
    fork = await cell.fork(who, session_id)
    await cell.send(who, fork.id, "otherwise")
    await turn(cell, who, fork.id, project.id, 7)
    before = await departures.find(who, fork.id, ASKED)
    assert [step.snapshot for step in before.steps] == [kept(7).snapshot]
    async with departures.leaving(before):
        pass
    async with departures.leaving(await departures.find(who, session_id, DepartureAsked(message="Later"))):
        pass
    assert (await departures.find(who, fork.id, ASKED)).steps == before.steps
    of_fork = await cell.fork(who, fork.id)  # created after it, but from a fork that was created before
    assert [step.seq for step in (await departures.find(who, of_fork.id, ASKED)).steps] == [before.steps[0].seq]
    late = await cell.fork(who, session_id)
    assert [step.message[:5] for step in (await departures.find(who, late.id, ASKED)).steps] == ["Later"]
    await cell.delete(who, late.id)
    await cell.delete(who, session_id)  # the first fork needs its snapshot, but no later delivery
    assert await cell.rows("departures", session_id) == []
    assert (await departures.find(who, fork.id, ASKED)).steps == before.steps


async def test_what_a_fork_lets_out_of_its_beginning_is_its_own_word(cell: Cell) -> None:
    who = somebody()
    project = await create(cell, who)
    session_id = await begin(cell, who, Choice(project_ids=[project.id]))
    await turn(cell, who, session_id, project.id, 1)
    departures = Departures(cell.database)
    fork, other = await cell.fork(who, session_id), await cell.fork(who, session_id)
    with pytest.raises(Conflict):
        async with departures.leaving(await departures.find(who, fork.id, DepartureAsked(message="Refused"))):
            raise Conflict("The branch is checked out.")
    async with departures.leaving(await departures.find(who, fork.id, DepartureAsked(message="Forked"))):
        pass
    for session in (session_id, other.id):
        (step,) = (await departures.find(who, session, ASKED)).steps
        assert step.message.startswith(f"Work of the session {session}")
    await cell.send(who, fork.id, "go on")
    await turn(cell, who, fork.id, project.id, 2)
    steps = (await departures.find(who, fork.id, ASKED)).steps
    assert [(step.snapshot, step.message[:6]) for step in steps] == [
        (kept(1).snapshot, "Forked"),
        (kept(2).snapshot, "Work o"),
    ]
    await cell.delete(who, fork.id)
    assert await cell.rows("departures", fork.id) == []


async def test_a_snapshot_that_is_written_again_has_not_left(cell: Cell) -> None:
    who = somebody()
    project = await create(cell, who)
    session_id = await begin(cell, who, Choice(project_ids=[project.id]))
    claim = await claimed(cell, who, session_id)
    await cell.turns.decide_base(claim, project.id, Base("1" * 40, "main", "app"))
    departures = Departures(cell.database)
    asked = DepartureAsked(message="First", writes=False)
    for number, message in ((1, "First"), (1, "First"), (2, "Work ")):  # without an event, so at the same position
        await cell.turns.append(claim, (), files=[TreeSnapshot(project.id, kept(number))])
        found = await departures.find(who, session_id, replace(asked, message=None if number > 1 else "First"))
        assert [step.message[:5] for step in found.steps] == [message]
        if number == 1:
            async with departures.leaving(found):
                pass


async def test_what_cannot_leave_says_why(cell: Cell) -> None:
    who = somebody()
    one, two = await create(cell, who, "one"), await create(cell, who, "two")
    departures = Departures(cell.database)
    scratch = await begin(cell, who, Choice())
    with pytest.raises(NothingToLeave, match="has no project"):
        await departures.find(who, scratch, ASKED)
    session_id = await begin(cell, who, Choice(project_ids=[one.id, two.id]))
    with pytest.raises(InvalidRequest, match="has 2 projects"):
        await departures.find(who, session_id, ASKED)
    with pytest.raises(InvalidRequest, match="is not a project of session"):
        await departures.find(who, session_id, DepartureAsked(project_id="proj_x"))
    of_one = DepartureAsked(project_id=one.id)
    with pytest.raises(NotFound):
        await departures.find(somebody(), session_id, of_one)
    with pytest.raises(NothingToLeave, match="has not changed any files"):
        await departures.find(who, session_id, of_one)
    claim = await claimed(cell, who, session_id)
    with pytest.raises(Conflict, match="is running a turn"):
        await departures.find(who, session_id, of_one)
    await cell.turns.append(claim, (), files=[TreeSnapshot(one.id, kept(1))])
    assert (await departures.find(who, session_id, replace(of_one, writes=False))).files.new == kept(1)
