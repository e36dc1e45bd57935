"""An inactive session is archived as one object, and reads return the same as before."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from footplate import failpoints
from footplate.domain.errors import Permanent
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import Cursor, EventPage
from footplate.domain.ports.harness import Entry
from footplate.domain.ports.usage_report import UsageQuery
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Position
from footplate.engine.conversation_cache import ConversationCache
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until
from footplate.store.archive import archived_events, writer
from footplate.store.archive import format as archive_format
from footplate.store.resources.usage_report import UsageReader
from footplate.stream.stream_hub import StreamHub

from .archivable_session import BATCH, ArchivableSession, create_archivable_session
from .cell import COMPLETED, Cell, awaiting, custom_tool_call, new_principal, tool_result_for

pytestmark = pytest.mark.timing


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes blocks small, so that a session of a few dozen events has many."""
    monkeypatch.setattr(archive_format, "BLOCK_BYTES", 3000)
    monkeypatch.setattr(writer, "_PAGE_ROWS", 7)


async def test_every_read_of_an_archived_session_is_unchanged(cell: Cell, principal: Principal) -> None:
    session = await create_archivable_session(cell, principal)
    await session.make_old()
    before = await session.read(thorough=True)
    bodies = session.files

    await session.archive()

    row = await session.row()
    assert row is not None
    assert (row["last_seq"], row["entries"], row["pruned"]) == (before["seq"], before["entries"], True)
    assert await cell.rows("events", session.id) == await cell.rows("entries", session.id) == []
    assert session.files == sorted([*bodies, Path(row["object_key"]).name])
    assert await session.read(thorough=True) == before


@pytest.mark.requirement("C5")
async def test_an_archived_session_continues_and_is_archived_again(cell: Cell, principal: Principal) -> None:
    session = await create_archivable_session(cell, principal)
    last: dict[str, Any] = {"seq": 0}
    for number in range(3):
        await session.archive()
        (only,) = session.archives
        row = await session.row()
        assert row is not None
        assert (row["last_seq"], row["replaced"], await session.count_remaining_rows()) == (
            (await session.read())["seq"],
            None,
            0,
        )

        await cell.send(principal, session.id, "more")
        claim = await cell.claim(session.id, principal)
        positions = [*await cell.positions(session.id, principal)]
        assert [item.seq for item in positions] == [*range(1, row["last_seq"] + 4)]
        conversation = await ConversationCache(cell.turns, max_bytes=1 << 20, max_idle_seconds=300).load(claim)
        assert len(conversation) == claim.entries == row["entries"]
        assert conversation[-1] == Entry("end", {})
        await cell.turns.append(
            claim, [events.message("yes")], entries=[Entry("more", {"n": number}), Entry("end", {})]
        )
        assert [entry.kind for entry in await cell.turns.entries(claim, 0)][-2:] == ["more", "end"]
        await cell.turns.finish(claim, COMPLETED)
        await session.remember_claim(claim)

        now = await session.read()
        assert now["seq"] > last["seq"]
        assert only in session.archives
        last = now
    await session.make_old()
    before = await session.read()
    await session.archive()
    assert await session.read() == before
    assert len(session.archives) == 1


@pytest.mark.parametrize("state", ["new", "empty", "queued", "running", "rescheduling", "parked", "answered"])
async def test_a_session_that_waits_is_not_archived(cell: Cell, principal: Principal, state: str) -> None:
    session = ArchivableSession(cell, principal, await cell.session(principal))
    if state != "empty":
        await session.turn("go")
    if state in {"queued", "running", "rescheduling", "parked", "answered"}:
        await cell.send(principal, session.id, "next")
    if state in {"running", "rescheduling", "parked", "answered"}:
        claim = await cell.claim(session.id, principal)
        if state == "rescheduling":
            await cell.turns.reschedule(claim, "unknown_error", "later")
        if state in {"parked", "answered"}:
            question = custom_tool_call()
            await cell.turns.append(claim, [question])
            await cell.turns.finish(claim, awaiting(question))
            if state == "answered":
                await cell.send(principal, session.id, tool_result_for(question.id))
    if state != "new":
        await session.make_old()
    before = await cell.all_rows(session.id)

    await session.retention().archive_if_inactive(principal.organisation, session.id)
    await session.retention().run()

    assert await cell.all_rows(session.id) == before
    assert await session.row() is None
    assert session.archives == []


@pytest.mark.requirement("C5")
async def test_a_sweep_finds_inactive_sessions(cell: Cell, principal: Principal) -> None:
    old, young = (
        await create_archivable_session(cell, principal, 1),
        await create_archivable_session(cell, principal, 1),
    )
    await old.make_old()
    before = await old.read()
    await old.retention().run()
    assert await old.row() is not None
    assert await old.read() == before
    assert await young.row() is None


async def test_a_message_during_archiving_cancels_it(
    cell: Cell, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await create_archivable_session(cell, principal)
    _run_during_archiving(monkeypatch, lambda: cell.send(principal, session.id, "wait"))
    await session.archive()
    assert await session.row() is None
    assert session.archives == []
    assert (await cell.claim(session.id, principal)).content == [events.text_block("wait")]


async def test_readers_are_not_affected_by_archiving(cell: Cell, principal: Principal) -> None:
    """The session is archived, continued and archived again, in tiny batches, while readers run."""
    session = await create_archivable_session(cell, principal)
    done = asyncio.Event()
    reads = 0

    async def follow() -> None:
        nonlocal reads
        seen: list[Position] = []
        while not done.is_set():
            now = [*await cell.positions(session.id, principal)]
            assert [item.seq for item in now] == [*range(1, len(now) + 1)]
            assert [item.event for item in now[: len(seen)]] == [item.event for item in seen]
            listed = [*await cell.reads.events(principal, session.id, EventPage(limit=1000))]
            back = [*await cell.reads.events(principal, session.id, EventPage(limit=1000, order="desc"))]
            assert [item.event for item in back[::-1][: len(listed)]] == [item.event for item in listed]
            assert len(listed) >= len({item.event.id for item in now})
            seen = now
            reads += 1

    readers = [asyncio.create_task(follow()) for _ in range(3)]
    for number in range(4):
        await session.archive()
        assert len(session.archives) == 1
        await session.turn(f"again {number}")
    done.set()
    await asyncio.gather(*readers)
    assert reads > 10


async def test_a_stream_from_an_old_cursor_continues_from_archive_to_rows(
    cell: Cell, principal: Principal, stack: Stack
) -> None:
    session = await create_archivable_session(cell, principal)
    await session.archive()
    await session.turn("later")
    last = (await cell.head(session.id))["seq"]
    frames = b""
    async with StreamHub(stack.settings.redis_url, cell.reads) as hub:
        async for chunk in hub.frames(principal.organisation, session.id, cursor=Cursor(3)):
            frames += chunk
            if b"id: %d\n" % last in frames:
                break
    ids = [int(line[4:]) for line in frames.decode().splitlines() if line.startswith("id: ")]
    assert ids == [*range(4, last + 1)]


async def test_usage_by_key_is_retained_when_rows_are_archived(cell: Cell, principal: Principal) -> None:
    session = await create_archivable_session(cell, principal)
    now = datetime.now(UTC)
    question = UsageQuery(
        start=now - timedelta(days=2), end=now + timedelta(days=1), group_by=frozenset({"key", "session"}), limit=10
    )
    before = await UsageReader(cell.database).query_usage(principal, question)
    await session.archive()
    assert await UsageReader(cell.database).query_usage(principal, question) == before
    assert [line.group["key"] for line in before] == [principal.id]


async def test_an_archived_session_is_not_visible_to_another_organisation(cell: Cell, principal: Principal) -> None:
    session = await create_archivable_session(cell, principal)
    await session.archive()
    assert await cell.reads.positions(new_principal().organisation, session.id, 0, 100) == []


async def test_a_session_that_is_not_archived_costs_no_extra_query(
    cell: Cell, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await create_archivable_session(cell, principal, 1)
    queries: list[str] = []
    for name in ("fetch", "fetchrow"):
        real = getattr(cell.database, name)

        def counted(query: str, *args: Any, _real: Any = real, **values: Any) -> Any:
            queries.append(query)
            return _real(query, *args, **values)

        monkeypatch.setattr(cell.database, name, counted)
    assert session.claim is not None
    await cell.reads.positions(principal.organisation, session.id, 0, 10)
    await cell.turns.entries(session.claim, 0)
    await cell.reads.events(principal, session.id, EventPage(limit=5))
    assert queries == ["positions", "entries", "events_ascending", "head_seq"]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("point", failpoints.ARCHIVE_POINTS)
async def test_archiving_killed_at_any_point_loses_nothing(
    cell: Cell, principal: Principal, tmp_path: Path, point: str, times: int
) -> None:
    if point == "archive_replaced" and times == 1:
        return  # a first archive replaces nothing
    session = await create_archivable_session(cell, principal)
    if times == 2:
        await session.archive()
        await session.turn("again")
    await session.make_old()
    before = await session.read()

    await session.run_until_killed(tmp_path, point, "archive")

    assert await session.read() == before
    if point == "archive_pruning":
        assert await session.count_remaining_rows() > BATCH

    async def finished() -> bool:
        await session.retention().run()  # the killed process holds the lock until its connection is closed
        row = await session.row()
        return row is not None and row["pruned"] and row["last_seq"] == before["seq"]

    assert await wait_until(finished, 20)
    assert await session.read() == before
    assert await session.count_remaining_rows() == 0
    row = await session.row()
    assert row is not None
    assert session.archives == [Path(row["object_key"]).name]


@pytest.mark.parametrize("harm", ["damaged", "lost"])
async def test_a_lost_or_damaged_archive_is_reported(
    cell: Cell, principal: Principal, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    session = await create_archivable_session(cell, principal)
    await session.archive()
    (path,) = session.folder.rglob("*.gz")
    monkeypatch.setattr(archived_events, "_RETRY_SECONDS", 0.1)
    if harm == "lost":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[500] ^= 1
        path.write_bytes(content)
    with pytest.raises(Permanent) as caught:
        await cell.positions(session.id, principal)
    assert session.id in caught.value.message
    assert path.name in caught.value.help_text


def _run_during_archiving(monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """Runs an action between the writing of the object and its record."""
    real = writer.ArchiveWriter.write_archive

    async def write(self: writer.ArchiveWriter, *args: Any) -> Any:
        archive = await real(self, *args)
        await act()
        return archive

    monkeypatch.setattr(writer.ArchiveWriter, "write_archive", write)
