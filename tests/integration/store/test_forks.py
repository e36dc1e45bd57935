"""A fork has its parent's log and conversation up to an event, whatever happens to the parent later."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from footplate.domain import events
from footplate.domain.errors import InvalidRequest, NotFound
from footplate.domain.events import Event, Position
from footplate.domain.json import JsonObject
from footplate.domain.permissions import Layer
from footplate.domain.ports import Entry
from footplate.domain.principals import Principal
from footplate.domain.services import EventPage, ForkPoint
from footplate.domain.turns import WhenBusy
from footplate.store.policies import Rules
from footplate.store.retention_deletions import Deletions

from .archiving import Rester, rester
from .cell import ANSWERED, Cell, message, somebody, text_of, types

_ALL = EventPage(limit=1000)


async def _nothing(organisation: str, session_id: str) -> None: ...


@dataclass(slots=True)
class Story:
    """A session, and the length of its conversation after each step, recorded while it was written."""

    cell: Cell
    principal: Principal
    id: str
    steps: list[tuple[int, int]] = field(default_factory=list)

    async def note(self) -> None:
        head = await self.cell.head(self.id)
        self.steps.append((head["seq"], head["entries"]))

    def entries_at(self, seq: int) -> int:
        return next(entries for last, entries in self.steps if seq <= last)

    async def turn(self, text: str) -> None:
        cell, who = self.cell, self.principal
        await cell.send(who, self.id, text)
        await self.note()
        claim = await cell.claim(self.id, who)
        await self.note()
        for number in range(3):
            batch = [events.model_request_start(), events.message(f"{text} {number}")]
            entries = [Entry("k", {"text": text, "n": number}), Entry("k", {"more": number})][: number + 1]
            await cell.turns.append(claim, batch, entries=entries)
            await self.note()
        await cell.turns.append(claim, [], entries=[Entry("alone", {"text": text})])
        await self.note()
        large: list[Any] = [events.text_block(text * 40_000)]
        result = events.tool_result("sevt_1", large, is_error=False, call_id="toolu_1")
        await cell.turns.append(claim, [result], entries=[Entry("large", {"output": text * 40_000})])
        await self.note()
        await cell.turns.finish(claim, ANSWERED)
        await self.note()


async def _story(cell: Cell, principal: Principal) -> Story:
    story = Story(cell, principal, await cell.session(principal))
    await story.turn("one")
    await story.turn("two")
    return story


async def _conversation(cell: Cell, principal: Principal, session_id: str, *, after: int = 0) -> list[Entry]:
    """Loads the conversation as a worker does for the next turn, and completes that turn."""
    await cell.send(principal, session_id, "go on")
    claim = await cell.claim(session_id, principal)
    found = await cell.turns.entries(claim, after)
    await cell.turns.finish(claim, ANSWERED)
    return found


def _listed(rows: list[dict[str, Any]], last: int) -> list[tuple[object, ...]]:
    """Returns the first `last` positions as a list shows them."""
    taken = {row["ref_seq"]: row for row in rows if row["ref_seq"] and row["seq"] <= last}
    return [
        (row["seq"], row["event_id"], taken.get(row["seq"], row)["processed_at"])
        for row in rows
        if row["ref_seq"] is None and row["seq"] <= last
    ]


def _shown(found: Any) -> list[tuple[object, ...]]:
    return [(item.seq, item.event.id, item.processed_at) for item in found]


@pytest.mark.requirement("S4")
async def test_at_each_position_it_has_what_was_there(cell: Cell, principal: Principal) -> None:
    story = await _story(cell, principal)
    before = await cell.everything(story.id)
    rows, entries = before["events"], before["entries"]
    whole = await cell.positions(story.id, principal)
    for at in range(1, len(rows) + 1):
        fork = await cell.fork(principal, story.id, at)
        assert fork.forked_from is not None
        assert (fork.forked_from.session_id, fork.forked_from.position) == (story.id, at)
        *old, begun = await cell.reads.events(principal, fork.id, _ALL)
        assert _shown(old) == _listed(rows, at)
        assert (begun.seq, begun.event.type) == (at + 1, events.STATUS_IDLE)
        assert await cell.positions(fork.id, principal) == [*whole[:at], begun]
        head = await cell.head(fork.id)
        assert (head["seq"], head["entries"]) == (at + 1, story.entries_at(at))
        assert [row["seq"] for row in await cell.rows("events", fork.id)] == [at + 1]
        loaded = await _conversation(cell, principal, fork.id)
        assert [entry.kind for entry in loaded] == [row["kind"] for row in entries[: story.entries_at(at)]]
        assert await cell.rows("entries", fork.id) == []
    assert await cell.everything(story.id) == before


async def test_every_page_of_its_history_reads_on(cell: Cell, principal: Principal) -> None:
    story = await _story(cell, principal)
    first = await cell.fork(principal, story.id, 9)
    await Story(cell, principal, first.id).turn("three")
    second = await cell.fork(principal, first.id, 15)
    rester_like = Rester(cell, principal, second.id)
    whole = [*await cell.reads.events(principal, second.id, _ALL)]
    assert [item.seq for item in whole][-1] == 16
    found = await rester_like.read(thorough=True)
    for limit in (1, 4, 1000):
        for after in (None, 0, 2, 8, 10, 14):
            forward = [item for item in whole if item.seq > (after or 0)][:limit]
            assert found[f"events all asc {after} {limit}"] == forward
            back = [item for item in reversed(whole) if after is None or item.seq < after][:limit]
            assert found[f"events all desc {after} {limit}"] == back
    assert [item.seq for item in await cell.positions(second.id, principal)] == [*range(1, 17)]


async def test_a_fork_of_a_fork_may_begin_in_either(cell: Cell, principal: Principal) -> None:
    story = await _story(cell, principal)
    first = await cell.fork(principal, story.id, 9)
    child = Story(cell, principal, first.id)
    await child.turn("three")
    whole = await cell.positions(first.id, principal)
    conversation = await _conversation(cell, principal, first.id)
    for at in (3, 9, 10, 12, 16, len(whole)):
        second = await cell.fork(principal, first.id, at)
        assert (await cell.positions(second.id, principal))[:-1] == whole[:at]
        count = story.entries_at(at) if at <= 9 else child.entries_at(at) if at > 10 else story.entries_at(9)
        assert await _conversation(cell, principal, second.id) == conversation[:count]
        owners = [row["owner"] for row in await cell.rows("stretches", second.id)]
        assert owners == ([story.id] if at <= 9 else [story.id, first.id])


async def test_it_is_named_by_event_position_or_not_at_all(cell: Cell, principal: Principal) -> None:
    story = await _story(cell, principal)
    rows = await cell.rows("events", story.id)
    for row in rows:
        fork = await cell.fork(principal, story.id, row["event_id"])
        assert fork.forked_from is not None
        # A queued message counts from the position at which a turn claimed it.
        taken = [other["seq"] for other in rows if other["event_id"] == row["event_id"]]
        assert fork.forked_from.position == max(taken)
    newest = await cell.fork(principal, story.id)
    assert newest.forked_from is not None
    assert newest.forked_from.event_id == rows[-1]["event_id"]
    empty = await cell.fork(principal, await cell.session(principal))
    assert empty.forked_from is not None
    assert (empty.forked_from.event_id, empty.forked_from.position) == (None, 0)
    assert types(await cell.positions(empty.id, principal)) == [events.STATUS_IDLE]
    for place in (len(rows) + 1, "sevt_none"):
        with pytest.raises(InvalidRequest):
            await cell.fork(principal, story.id, place)
    with pytest.raises(NotFound):
        await cell.fork(somebody(), story.id)


async def test_a_message_that_the_model_has_not_heard_is_carried(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "first")
    claim = await cell.claim(session_id, principal)  # 1 first, 2 claimed, 3 running
    queued = await cell.send(principal, session_id, "queued")  # 4
    early = [await cell.fork(principal, session_id, at) for at in (1, 2, 3, 4)]
    await cell.turns.append(claim, [events.model_request_start()], entries=[Entry("k", {"prompt": "first"})])  # 5
    await cell.send(principal, session_id, message("steered", WhenBusy.QUEUE))
    later = await cell.fork(principal, session_id, 5)

    async def told(fork_id: str, text: str) -> str:
        await cell.send(principal, fork_id, text)
        claim = await cell.claim(fork_id, principal)
        again = await cell.claim(fork_id, principal, "wrkr_2")
        assert again.content == claim.content
        await cell.turns.append(again, [], entries=[Entry("k", {"prompt": text})])
        assert (await cell.claim(fork_id, principal, "wrkr_3")).content == claim.content
        await cell.turns.finish(replace(again, epoch=again.epoch + 1), ANSWERED)
        return " ".join(str(block["text"]) for block in claim.content)

    assert [await told(fork.id, "mine") for fork in early] == ["mine", "first mine", "first mine", "first mine"]
    assert await told(later.id, "mine") == "mine"
    assert await told(early[1].id, "then") == "then"
    # A fork of the fork carries it too, as long as the model has not received it.
    untold = await cell.fork(principal, session_id, 3)
    assert await told((await cell.fork(principal, untold.id)).id, "mine") == "first mine"
    assert text_of(queued.positions[0]) == "queued"


async def test_what_a_turn_that_failed_was_asked_is_not_carried(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "first")
    await cell.turns.finish(await cell.claim(session_id, principal), ANSWERED)
    fork = await cell.fork(principal, session_id)
    await cell.send(principal, fork.id, "mine")
    assert len((await cell.claim(fork.id, principal)).content) == 1


async def test_an_older_log_that_counts_no_entries(cell: Cell, principal: Principal) -> None:
    story = await _story(cell, principal)
    async with cell.database.connection() as connection:
        await connection.execute("update events set entries = null where session_id = $1", story.id)
    for at in range(1, 17):
        fork = await cell.fork(principal, story.id, at)
        assert (await cell.head(fork.id))["entries"] == story.entries_at(at)


async def _pinned(cell: Cell, principal: Principal) -> tuple[Story, list[str], dict[str, Any]]:
    """Creates a parent with two forks and a fork of a fork, and returns what they show."""
    story = await _story(cell, principal)
    first, second = await cell.fork(principal, story.id, 4), await cell.fork(principal, story.id, 10)
    await Story(cell, principal, second.id).turn("three")
    third = await cell.fork(principal, second.id, 14)
    forks = [first.id, second.id, third.id]
    return story, forks, {fork_id: await _seen(cell, principal, fork_id) for fork_id in forks}


async def _seen(cell: Cell, principal: Principal, session_id: str) -> tuple[list[Position], list[Entry]]:
    """Reads a session through a temporary fork, so that the session is unchanged."""
    fork = await cell.fork(principal, session_id)
    entries = await _conversation(cell, principal, fork.id)
    await cell.delete(principal, fork.id)
    return [*await cell.positions(session_id, principal)], entries


async def _purge(cell: Cell) -> None:
    await Deletions(cell.database, cell.objects, _nothing, late=timedelta(0)).run()


def _files(cell: Cell, principal: Principal, session_id: str) -> int:
    return len([path for path in (cell.folder / principal.organisation / session_id).rglob("*") if path.is_file()])


async def _left(cell: Cell, session_id: str) -> tuple[int, int]:
    return len(await cell.rows("events", session_id)), len(await cell.rows("entries", session_id))


async def test_a_deleted_parent_leaves_what_forks_need_and_nothing_else(cell: Cell, principal: Principal) -> None:
    story, forks, before = await _pinned(cell, principal)
    await cell.delete(principal, story.id)
    await _purge(cell)
    with pytest.raises(NotFound):
        await cell.reads.session(principal, story.id)
    with pytest.raises(NotFound):
        await cell.fork(principal, story.id)
    assert await _left(cell, story.id) == (10, story.entries_at(10))
    assert _files(cell, principal, story.id) == 2  # the event's and the entry's, of the first turn
    assert {fork_id: await _seen(cell, principal, fork_id) for fork_id in forks} == before
    await cell.delete(principal, forks[1])
    await _purge(cell)
    assert await _left(cell, story.id) == (10, story.entries_at(10))
    assert await _seen(cell, principal, forks[2]) == before[forks[2]]
    await cell.delete(principal, forks[2])
    await _purge(cell)
    assert await _left(cell, forks[1]) == (0, 0)
    assert await _left(cell, story.id) == (4, story.entries_at(4))
    assert await _seen(cell, principal, forks[0]) == before[forks[0]]
    assert _files(cell, principal, story.id) == 0
    await cell.delete(principal, forks[0])
    await _purge(cell)
    assert await _left(cell, story.id) == (0, 0)
    assert await cell.rows("stretches", forks[0]) == []


async def test_deletions_at_the_same_time_leave_nothing(cell: Cell, principal: Principal) -> None:
    for _ in range(10):
        story, forks, _ = await _pinned(cell, principal)
        await asyncio.gather(*(cell.delete(principal, each) for each in (story.id, *forks)))
        for each in (story.id, *forks):
            assert await _left(cell, each) == (0, 0)


async def test_forks_and_a_deletion_at_the_same_time(cell: Cell, principal: Principal) -> None:
    for _ in range(10):
        story = await _story(cell, principal)
        whole = await cell.positions(story.id, principal)

        async def try_it(call: Callable[[], Awaitable[Any]]) -> Any:
            try:
                return await call()
            except NotFound:
                return None

        forks = [try_it(lambda at=at, story=story: cell.fork(principal, story.id, at)) for at in (3, 8, 12)]  # type: ignore[misc]
        made = await asyncio.gather(*forks, cell.delete(principal, story.id))
        for fork in [item for item in made if item is not None]:
            assert (await cell.positions(fork.id, principal))[:-1] == whole[: fork.forked_from.position]


async def test_a_session_with_living_forks_does_not_rest(cell: Cell, principal: Principal) -> None:
    parent = await rester(cell, principal)
    fork = await cell.fork(principal, parent.id, 5)
    await parent.archive()
    assert await parent.row() is None
    await cell.delete(principal, fork.id)
    await parent.archive()
    assert await parent.row() is not None


async def test_an_archived_parent_is_forked_as_any_other(cell: Cell, principal: Principal) -> None:
    parent = await rester(cell, principal)
    points = [3, 8, 13, 20]
    plain = [await _fork_and_read(cell, principal, parent.id, at) for at in points]
    await parent.archive()
    assert (await parent.row() or {})["last_seq"] > 20
    archived = [await _fork_and_read(cell, principal, parent.id, at) for at in points]
    assert [item[1:] for item in archived] == [item[1:] for item in plain]
    ids = [item.event.id for item in await cell.positions(parent.id, principal)]
    named = await cell.fork(principal, parent.id, ids[12])
    assert named.forked_from is not None
    assert named.forked_from.event_id == ids[12]


async def _fork_and_read(cell: Cell, principal: Principal, parent: str, at: int) -> tuple[Any, ...]:
    fork = await cell.fork(principal, parent, at)
    listed = _shown(await cell.reads.events(principal, fork.id, _ALL))[:-1]
    back = _shown(await cell.reads.events(principal, fork.id, replace(_ALL, order="desc")))[1:]
    assert back == listed[::-1]
    positions = (await cell.positions(fork.id, principal))[:-1]
    entries = await _conversation(cell, principal, fork.id)
    await cell.delete(principal, fork.id)
    return fork.id, listed, [_moved(item) for item in positions], entries


def _moved(item: Position) -> tuple[int, str, str]:
    """Omits the time, because tests make sessions old by hand."""
    return item.seq, item.event.id, item.event.type


async def test_a_fork_is_archived_without_what_is_its_parents(cell: Cell, principal: Principal) -> None:
    parent = await rester(cell, principal)
    made = await cell.fork(principal, parent.id, 12)
    fork = Rester(cell, principal, made.id)
    await fork.turn("mine")
    await fork.grow_old()
    before = await fork.read()
    await fork.archive()
    row = await fork.row()
    assert row is not None
    assert row["last_seq"] == before["seq"]
    assert await fork.rows_left() == 0
    assert await fork.read() == before
    await fork.turn("more")
    assert (await cell.positions(fork.id, principal))[11].seq == 12


async def test_deleting_an_archived_parent_gives_forks_their_rows(
    cell: Cell, principal: Principal, tmp_path: Path
) -> None:
    parent = await rester(cell, principal)
    await parent.archive()
    fork = await cell.fork(principal, parent.id, 12)
    before = await _seen(cell, principal, fork.id)
    await _purge(cell)
    await cell.delete(principal, parent.id)
    assert [*await cell.positions(fork.id, principal)] == before[0]
    await parent.in_a_process(tmp_path, "deletion_restored", "purge")
    assert await _seen(cell, principal, fork.id) == before
    assert await parent.row() is None
    await _purge(cell)
    assert await _seen(cell, principal, fork.id) == before
    assert parent.archives == []
    assert (await _left(cell, parent.id))[0] == 12
    await cell.delete(principal, fork.id)
    await _purge(cell)
    assert await _left(cell, parent.id) == (0, 0)
    assert parent.files == []


@pytest.mark.requirement("S9")
async def test_what_it_is_like_may_be_other_than_the_parent(cell: Cell, principal: Principal) -> None:
    story = await _story(cell, principal)
    async with cell.units.unit(principal, None) as unit:
        place = await unit.create_environment(principal, name=story.id, description=None, config={"a": 1}, metadata={})
        fork, accepted = await unit.fork_session(
            principal,
            story.id,
            point=ForkPoint(position=4),
            environment_id=place.id,
            change=lambda parent: replace(parent, title="other", metadata={"k": "v"}),
            inputs=[message("go on")],
        )
    assert (fork.title, fork.metadata, fork.environment_id) == ("other", {"k": "v"}, place.id)
    assert accepted.wake
    assert types(accepted.positions) == [events.STATUS_IDLE, events.USER_MESSAGE]
    assert (await cell.claim(fork.id, principal)).config.environment == {"a": 1}
    with pytest.raises(NotFound):
        async with cell.units.unit(principal, None) as unit:
            await unit.fork_session(
                principal,
                story.id,
                point=ForkPoint(),
                environment_id="env_none",
                change=lambda parent: parent,
                inputs=(),
            )


@pytest.mark.requirement("S9")
async def test_a_fork_has_the_permissions_of_its_parent(cell: Cell, principal: Principal) -> None:
    permissions: JsonObject = {"deny": ["Bash(rm *)"]}
    parent = await cell.session(principal)
    async with cell.units.unit(principal, None) as unit:
        await unit.update_session(principal, parent, lambda session: replace(session, permissions=permissions))
    fork = await cell.fork(principal, parent)
    assert fork.permissions == permissions
    rules = dict(await Rules(cell.database).rules(principal.organisation, fork.id))
    assert rules[Layer.SESSION] == permissions


async def test_its_own_turns_are_its_own(cell: Cell, principal: Principal) -> None:
    story = await _story(cell, principal)
    fork = await cell.fork(principal, story.id, 9)
    claim = None
    await cell.send(principal, fork.id, "go on")
    claim = await cell.claim(fork.id, principal)
    await cell.turns.append(claim, [Event(events.AGENT_MESSAGE, {"content": []})], entries=[Entry("own", {})])
    await cell.turns.finish(claim, ANSWERED)
    assert len(await cell.reads.turns(principal, fork.id, limit=10, before=None)) == 1
    assert len(await cell.reads.turns(principal, story.id, limit=10, before=None)) == 2
    loaded = await _conversation(cell, principal, fork.id)
    assert [entry.kind for entry in loaded][-1] == "own"
    assert len(loaded) == story.entries_at(9) + 1
    assert (await _conversation(cell, principal, fork.id, after=2)) == loaded[2:]
