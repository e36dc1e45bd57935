"""A fork has its parent's log and conversation up to an event, whatever happens to the parent later."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from footplate.domain.errors import InvalidRequest, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.policy.permissions import Layer
from footplate.domain.ports.api import EventPage, ForkPoint, SessionFilter
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event, Position
from footplate.domain.sessions.turns import WhenBusy
from footplate.harness.claude.transcripts.transcript_lines import session_entry
from footplate.store.resources.policies import SessionRuleLoader
from footplate.store.retention.deletion_cleanup import DeletionCleanup

from .archivable_session import ArchivableSession, create_archivable_session
from .cell import COMPLETED, Cell, message, new_principal, text_of, types

_ALL = EventPage(limit=1000)


async def _forget_nothing(organisation: str, session_id: str) -> None: ...


@dataclass(slots=True)
class RecordedSession:
    """A session, and the length of its conversation after each step, recorded while it was written."""

    cell: Cell
    principal: Principal
    id: str
    steps: list[tuple[int, int]] = field(default_factory=list)

    async def record_length(self) -> None:
        head = await self.cell.head(self.id)
        self.steps.append((head["seq"], head["entries"]))

    def entries_at(self, seq: int) -> int:
        return next(entries for last, entries in self.steps if seq <= last)

    async def turn(self, text: str) -> None:
        cell, principal = self.cell, self.principal
        await cell.send(principal, self.id, text)
        await self.record_length()
        claim = await cell.claim(self.id, principal)
        await self.record_length()
        for number in range(3):
            batch = [events.model_request_start(), events.message(f"{text} {number}")]
            entries = [Entry("k", {"text": text, "n": number}), Entry("k", {"more": number})][: number + 1]
            await cell.turns.append(claim, batch, entries=entries)
            await self.record_length()
        await cell.turns.append(claim, [], entries=[Entry("alone", {"text": text})])
        await self.record_length()
        large: list[Any] = [events.text_block(text * 40_000)]
        result = events.tool_result("sevt_1", large, is_error=False, call_id="toolu_1")
        await cell.turns.append(claim, [result], entries=[Entry("large", {"output": text * 40_000})])
        await self.record_length()
        await cell.turns.finish(claim, COMPLETED)
        await self.record_length()


async def _record_session(cell: Cell, principal: Principal) -> RecordedSession:
    recorded = RecordedSession(cell, principal, await cell.session(principal))
    await recorded.turn("one")
    await recorded.turn("two")
    return recorded


async def _load_conversation(cell: Cell, principal: Principal, session_id: str, *, after: int = 0) -> list[Entry]:
    """Loads the conversation as a worker does for the next turn, and completes that turn."""
    await cell.send(principal, session_id, "go on")
    claim = await cell.claim(session_id, principal)
    found = await cell.turns.entries(claim, after)
    await cell.turns.finish(claim, COMPLETED)
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
async def test_a_fork_at_each_position_has_the_log_up_to_it(cell: Cell, principal: Principal) -> None:
    recorded = await _record_session(cell, principal)
    before = await cell.all_rows(recorded.id)
    rows, entries = before["events"], before["entries"]
    whole = await cell.positions(recorded.id, principal)
    for at in range(1, len(rows) + 1):
        fork = await cell.fork(principal, recorded.id, at)
        assert fork.forked_from is not None
        assert (fork.forked_from.session_id, fork.forked_from.position) == (recorded.id, at)
        *old, started = await cell.reads.events(principal, fork.id, _ALL)
        assert _shown(old) == _listed(rows, at)
        assert (started.seq, started.event.type) == (at + 1, events.STATUS_IDLE)
        assert await cell.positions(fork.id, principal) == [*whole[:at], started]
        head = await cell.head(fork.id)
        assert (head["seq"], head["entries"]) == (at + 1, recorded.entries_at(at))
        assert [row["seq"] for row in await cell.rows("events", fork.id)] == [at + 1]
        loaded = await _load_conversation(cell, principal, fork.id)
        assert [entry.kind for entry in loaded] == [row["kind"] for row in entries[: recorded.entries_at(at)]]
        assert await cell.rows("entries", fork.id) == []
    assert await cell.all_rows(recorded.id) == before


async def test_every_page_of_a_forks_history_is_complete(cell: Cell, principal: Principal) -> None:
    recorded = await _record_session(cell, principal)
    first = await cell.fork(principal, recorded.id, 9)
    await RecordedSession(cell, principal, first.id).turn("three")
    second = await cell.fork(principal, first.id, 15)
    reader = ArchivableSession(cell, principal, second.id)
    whole = [*await cell.reads.events(principal, second.id, _ALL)]
    assert [item.seq for item in whole][-1] == 16
    found = await reader.read(thorough=True)
    for limit in (1, 4, 1000):
        for after in (None, 0, 2, 8, 10, 14):
            forward = [item for item in whole if item.seq > (after or 0)][:limit]
            assert found[f"events all asc {after} {limit}"] == forward
            back = [item for item in reversed(whole) if after is None or item.seq < after][:limit]
            assert found[f"events all desc {after} {limit}"] == back
    assert [item.seq for item in await cell.positions(second.id, principal)] == [*range(1, 17)]


async def test_a_fork_of_a_fork_may_start_in_either_segment(cell: Cell, principal: Principal) -> None:
    recorded = await _record_session(cell, principal)
    first = await cell.fork(principal, recorded.id, 9)
    child = RecordedSession(cell, principal, first.id)
    await child.turn("three")
    whole = await cell.positions(first.id, principal)
    conversation = await _load_conversation(cell, principal, first.id)
    for at in (3, 9, 10, 12, 16, len(whole)):
        second = await cell.fork(principal, first.id, at)
        assert (await cell.positions(second.id, principal))[:-1] == whole[:at]
        count = recorded.entries_at(at) if at <= 9 else child.entries_at(at) if at > 10 else recorded.entries_at(9)
        assert await _load_conversation(cell, principal, second.id) == conversation[:count]
        owners = [row["owner"] for row in await cell.rows("stretches", second.id)]
        assert owners == ([recorded.id] if at <= 9 else [recorded.id, first.id])


async def test_a_fork_point_is_an_event_a_position_or_the_newest(cell: Cell, principal: Principal) -> None:
    recorded = await _record_session(cell, principal)
    rows = await cell.rows("events", recorded.id)
    for row in rows:
        fork = await cell.fork(principal, recorded.id, row["event_id"])
        assert fork.forked_from is not None
        # A queued message counts from the position at which a turn claimed it.
        taken = [other["seq"] for other in rows if other["event_id"] == row["event_id"]]
        assert fork.forked_from.position == max(taken)
    newest = await cell.fork(principal, recorded.id)
    assert newest.forked_from is not None
    assert newest.forked_from.event_id == rows[-1]["event_id"]
    empty = await cell.fork(principal, await cell.session(principal))
    assert empty.forked_from is not None
    assert (empty.forked_from.event_id, empty.forked_from.position) == (None, 0)
    assert types(await cell.positions(empty.id, principal)) == [events.STATUS_IDLE]
    for point in (len(rows) + 1, "sevt_none"):
        with pytest.raises(InvalidRequest):
            await cell.fork(principal, recorded.id, point)
    with pytest.raises(NotFound):
        await cell.fork(new_principal(), recorded.id)


async def test_a_message_that_the_model_has_not_received_is_carried(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "first")
    claim = await cell.claim(session_id, principal)  # 1 first, 2 claimed, 3 running
    queued = await cell.send(principal, session_id, "queued")  # 4
    early = [await cell.fork(principal, session_id, at) for at in (1, 2, 3, 4)]
    await cell.turns.append(claim, [events.model_request_start()], entries=[Entry("k", {"prompt": "first"})])  # 5
    await cell.send(principal, session_id, message("steered", WhenBusy.QUEUE))
    later = await cell.fork(principal, session_id, 5)

    async def prompt_of(fork_id: str, text: str) -> str:
        await cell.send(principal, fork_id, text)
        claim = await cell.claim(fork_id, principal)
        again = await cell.claim(fork_id, principal, "wrkr_2")
        assert again.content == claim.content
        await cell.turns.append(again, [], entries=[Entry("k", {"prompt": text})])
        assert (await cell.claim(fork_id, principal, "wrkr_3")).content == claim.content
        await cell.turns.finish(replace(again, epoch=again.epoch + 1), COMPLETED)
        return " ".join(str(block["text"]) for block in claim.content)

    assert [await prompt_of(fork.id, "mine") for fork in early] == ["mine", "first mine", "first mine", "first mine"]
    assert await prompt_of(later.id, "mine") == "mine"
    assert await prompt_of(early[1].id, "then") == "then"
    # A fork of the fork carries it too, as long as the model has not received it.
    unprompted = await cell.fork(principal, session_id, 3)
    assert await prompt_of((await cell.fork(principal, unprompted.id)).id, "mine") == "first mine"
    assert text_of(queued.positions[0]) == "queued"


async def test_the_message_of_an_ended_turn_is_not_carried(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "first")
    await cell.turns.finish(await cell.claim(session_id, principal), COMPLETED)
    fork = await cell.fork(principal, session_id)
    await cell.send(principal, fork.id, "mine")
    assert len((await cell.claim(fork.id, principal)).content) == 1


async def test_a_fork_of_an_older_log_without_entry_counts(cell: Cell, principal: Principal) -> None:
    recorded = await _record_session(cell, principal)
    async with cell.database.connection() as connection:
        await connection.execute("update events set entries = null where session_id = $1", recorded.id)
    for at in range(1, 17):
        fork = await cell.fork(principal, recorded.id, at)
        assert (await cell.head(fork.id))["entries"] == recorded.entries_at(at)


async def _session_with_forks(cell: Cell, principal: Principal) -> tuple[RecordedSession, list[str], dict[str, Any]]:
    """Creates a parent with two forks and a fork of a fork, and returns what they show."""
    recorded = await _record_session(cell, principal)
    first, second = await cell.fork(principal, recorded.id, 4), await cell.fork(principal, recorded.id, 10)
    await RecordedSession(cell, principal, second.id).turn("three")
    third = await cell.fork(principal, second.id, 14)
    forks = [first.id, second.id, third.id]
    return recorded, forks, {fork_id: await _read_session(cell, principal, fork_id) for fork_id in forks}


async def _read_session(cell: Cell, principal: Principal, session_id: str) -> tuple[list[Position], list[Entry]]:
    """Reads a session through a temporary fork, so that the session is unchanged."""
    fork = await cell.fork(principal, session_id)
    entries = await _load_conversation(cell, principal, fork.id)
    await cell.delete(principal, fork.id)
    return [*await cell.positions(session_id, principal)], entries


async def _purge(cell: Cell) -> None:
    await DeletionCleanup(cell.database, cell.objects, _forget_nothing, second_pass_after=timedelta(0)).run()


def _files(cell: Cell, principal: Principal, session_id: str) -> int:
    return len([path for path in (cell.folder / principal.organisation / session_id).rglob("*") if path.is_file()])


async def _count_rows(cell: Cell, session_id: str) -> tuple[int, int]:
    return len(await cell.rows("events", session_id)), len(await cell.rows("entries", session_id))


async def test_a_deleted_parent_retains_only_what_its_forks_need(cell: Cell, principal: Principal) -> None:
    recorded, forks, before = await _session_with_forks(cell, principal)
    await cell.delete(principal, recorded.id)
    await _purge(cell)
    with pytest.raises(NotFound):
        await cell.reads.session(principal, recorded.id)
    with pytest.raises(NotFound):
        await cell.fork(principal, recorded.id)
    assert await _count_rows(cell, recorded.id) == (10, recorded.entries_at(10))
    assert _files(cell, principal, recorded.id) == 2  # the event's and the entry's, of the first turn
    assert {fork_id: await _read_session(cell, principal, fork_id) for fork_id in forks} == before
    await cell.delete(principal, forks[1])
    await _purge(cell)
    assert await _count_rows(cell, recorded.id) == (10, recorded.entries_at(10))
    assert await _read_session(cell, principal, forks[2]) == before[forks[2]]
    await cell.delete(principal, forks[2])
    await _purge(cell)
    assert await _count_rows(cell, forks[1]) == (0, 0)
    assert await _count_rows(cell, recorded.id) == (4, recorded.entries_at(4))
    assert await _read_session(cell, principal, forks[0]) == before[forks[0]]
    assert _files(cell, principal, recorded.id) == 0
    await cell.delete(principal, forks[0])
    await _purge(cell)
    assert await _count_rows(cell, recorded.id) == (0, 0)
    assert await cell.rows("stretches", forks[0]) == []


async def test_concurrent_deletions_remove_everything(cell: Cell, principal: Principal) -> None:
    for _ in range(10):
        recorded, forks, _ = await _session_with_forks(cell, principal)
        await asyncio.gather(*(cell.delete(principal, each) for each in (recorded.id, *forks)))
        for each in (recorded.id, *forks):
            assert await _count_rows(cell, each) == (0, 0)


async def test_a_fork_during_a_deletion_is_complete_or_refused(cell: Cell, principal: Principal) -> None:
    for _ in range(10):
        recorded = await _record_session(cell, principal)
        whole = await cell.positions(recorded.id, principal)

        async def try_it(call: Callable[[], Awaitable[Any]]) -> Any:
            try:
                return await call()
            except NotFound:
                return None

        forks = [try_it(lambda at=at, story=recorded: cell.fork(principal, story.id, at)) for at in (3, 8, 12)]
        made = await asyncio.gather(*forks, cell.delete(principal, recorded.id))
        for fork in [item for item in made if item is not None]:
            assert (await cell.positions(fork.id, principal))[:-1] == whole[: fork.forked_from.position]


async def test_a_session_with_living_forks_is_not_archived(cell: Cell, principal: Principal) -> None:
    parent = await create_archivable_session(cell, principal)
    fork = await cell.fork(principal, parent.id, 5)
    await parent.archive()
    assert await parent.row() is None
    await cell.delete(principal, fork.id)
    await parent.archive()
    assert await parent.row() is not None


async def test_an_archived_parent_is_forked_like_any_other(cell: Cell, principal: Principal) -> None:
    parent = await create_archivable_session(cell, principal)
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
    entries = await _load_conversation(cell, principal, fork.id)
    await cell.delete(principal, fork.id)
    return fork.id, listed, [_without_time(item) for item in positions], entries


def _without_time(item: Position) -> tuple[int, str, str]:
    """Omits the time, because tests make sessions old by hand."""
    return item.seq, item.event.id, item.event.type


async def test_the_archive_of_a_fork_omits_its_parents_log(cell: Cell, principal: Principal) -> None:
    parent = await create_archivable_session(cell, principal)
    made = await cell.fork(principal, parent.id, 12)
    fork = ArchivableSession(cell, principal, made.id)
    await fork.turn("mine")
    await fork.make_old()
    before = await fork.read()
    await fork.archive()
    row = await fork.row()
    assert row is not None
    assert row["last_seq"] == before["seq"]
    assert await fork.count_remaining_rows() == 0
    assert await fork.read() == before
    await fork.turn("more")
    assert (await cell.positions(fork.id, principal))[11].seq == 12


async def test_deleting_an_archived_parent_restores_the_rows_of_its_forks(
    cell: Cell, principal: Principal, tmp_path: Path
) -> None:
    parent = await create_archivable_session(cell, principal)
    await parent.archive()
    fork = await cell.fork(principal, parent.id, 12)
    before = await _read_session(cell, principal, fork.id)
    await _purge(cell)
    await cell.delete(principal, parent.id)
    assert [*await cell.positions(fork.id, principal)] == before[0]
    await parent.run_until_killed(tmp_path, "deletion_restored", "purge")
    assert await _read_session(cell, principal, fork.id) == before
    assert await parent.row() is None
    await _purge(cell)
    assert await _read_session(cell, principal, fork.id) == before
    assert parent.archives == []
    assert (await _count_rows(cell, parent.id))[0] == 12
    await cell.delete(principal, fork.id)
    await _purge(cell)
    assert await _count_rows(cell, parent.id) == (0, 0)
    assert parent.files == []


@pytest.mark.requirement("S9")
async def test_a_fork_may_change_title_metadata_and_environment(cell: Cell, principal: Principal) -> None:
    recorded = await _record_session(cell, principal)
    async with cell.units.unit(principal, None) as unit:
        environment = await unit.create_environment(
            principal, name=recorded.id, description=None, config={"a": 1}, metadata={}
        )
        fork, accepted = await unit.fork_session(
            principal,
            recorded.id,
            point=ForkPoint(position=4),
            environment_id=environment.id,
            change=lambda parent: replace(parent, title="other", metadata={"k": "v"}),
            inputs=[message("go on")],
        )
    assert (fork.title, fork.metadata, fork.environment_id) == ("other", {"k": "v"}, environment.id)
    assert accepted.wake
    assert types(accepted.positions) == [events.STATUS_IDLE, events.USER_MESSAGE]
    assert (await cell.claim(fork.id, principal)).config.environment == {"a": 1}
    with pytest.raises(NotFound):
        async with cell.units.unit(principal, None) as unit:
            await unit.fork_session(
                principal,
                recorded.id,
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
    rules = dict(await SessionRuleLoader(cell.database).rules(principal.organisation, fork.id))
    assert rules[Layer.SESSION] == permissions


async def test_a_forks_turns_belong_to_the_fork_only(cell: Cell, principal: Principal) -> None:
    recorded = await _record_session(cell, principal)
    fork = await cell.fork(principal, recorded.id, 9)
    claim = None
    await cell.send(principal, fork.id, "go on")
    claim = await cell.claim(fork.id, principal)
    await cell.turns.append(claim, [Event(events.AGENT_MESSAGE, {"content": []})], entries=[Entry("own", {})])
    await cell.turns.finish(claim, COMPLETED)
    assert len(await cell.reads.turns(principal, fork.id, limit=10, before=None)) == 1
    assert len(await cell.reads.turns(principal, recorded.id, limit=10, before=None)) == 2
    loaded = await _load_conversation(cell, principal, fork.id)
    assert [entry.kind for entry in loaded][-1] == "own"
    assert len(loaded) == recorded.entries_at(9) + 1
    assert (await _load_conversation(cell, principal, fork.id, after=2)) == loaded[2:]


@pytest.mark.requirement("O7", "R7")
async def test_a_fork_has_the_limits_of_its_parent_and_a_conversation_id_of_its_own(
    cell: Cell, principal: Principal
) -> None:
    parent = await cell.session(principal, "hi", limits={"retry_delay_seconds": 5})
    claim = await cell.claim(parent, principal)
    assert (await cell.reads.session(principal, parent)).conversation_id is None
    message = Event(events.AGENT_MESSAGE, {"content": []})
    await cell.turns.append(claim, [message], entries=[session_entry("turn_1", "uuid-1", "2.1"), Entry("own", {})])
    assert (await cell.reads.session(principal, parent)).conversation_id == "uuid-1"
    await cell.turns.append(claim, [], entries=[session_entry("turn_1", "uuid-2", "2.1")])
    await cell.turns.finish(claim, COMPLETED)
    (listed,) = await cell.reads.sessions(principal, Page(limit=5), SessionFilter())
    assert listed.conversation_id == "uuid-2"
    fork = await cell.fork(principal, parent)
    assert (fork.conversation_id, fork.agent["limits"]) == (None, {"retry_delay_seconds": 5})
    await cell.send(principal, fork.id, "go on")
    claim = await cell.claim(fork.id, principal)
    assert claim.config.retry_delay_seconds == 5
    await cell.turns.append(claim, [], entries=[session_entry(claim.turn_id, "uuid-3", "2.1")])
    found = [(await cell.reads.session(principal, each)).conversation_id for each in (parent, fork.id)]
    assert found == ["uuid-2", "uuid-3"]


async def test_the_forks_of_a_session_are_listed(cell: Cell, principal: Principal) -> None:
    parent = await cell.session(principal, "hi")
    forks = [await cell.fork(principal, parent) for _ in range(2)]
    nested = await cell.fork(principal, forks[0].id)
    for session_id, expected in ((parent, {fork.id for fork in forks}), (forks[0].id, {nested.id}), (nested.id, set())):
        found = await cell.reads.sessions(principal, Page(limit=5), SessionFilter(forked_from=session_id))
        assert {session.id for session in found} == expected
