"""An inactive session is archived as one object, and reads return the same as before."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from footplate import failpoints
from footplate.domain import events
from footplate.domain.errors import Permanent
from footplate.domain.events import Position
from footplate.domain.ports import Entry
from footplate.domain.principals import Principal
from footplate.domain.services import Cursor, EventPage
from footplate.domain.usage import UsageQuestion
from footplate.engine.conversations import Conversations
from footplate.stack import Stack
from footplate.stack.leftovers import wait_until
from footplate.store import archives_format, archives_reads, archives_writing
from footplate.store.usage import UsageReader
from footplate.stream.hub import Hub

from .archiving import BATCH, Rester, rester
from .cell import ANSWERED, Cell, answer_to, ask, somebody, waits_for

pytestmark = pytest.mark.timing


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes blocks small, so that a session of a few dozen events has many."""
    monkeypatch.setattr(archives_format, "BLOCK_BYTES", 3000)
    monkeypatch.setattr(archives_writing, "_PAGE", 7)


async def test_all_that_can_be_read_is_the_same(cell: Cell, principal: Principal) -> None:
    session = await rester(cell, principal)
    await session.grow_old()
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
async def test_it_goes_on_after_it_was_archived_and_is_archived_again(cell: Cell, principal: Principal) -> None:
    session = await rester(cell, principal)
    last: dict[str, Any] = {"seq": 0}
    for number in range(3):
        await session.archive()
        (only,) = session.archives
        row = await session.row()
        assert row is not None
        assert (row["last_seq"], row["replaced"], await session.rows_left()) == ((await session.read())["seq"], None, 0)

        await cell.send(principal, session.id, "more")
        claim = await cell.claim(session.id, principal)
        positions = [*await cell.positions(session.id, principal)]
        assert [item.seq for item in positions] == [*range(1, row["last_seq"] + 4)]
        conversation = await Conversations(cell.turns, max_bytes=1 << 20, max_idle_seconds=300).load(claim)
        assert len(conversation) == claim.entries == row["entries"]
        assert conversation[-1] == Entry("end", {})
        await cell.turns.append(
            claim, [events.message("yes")], entries=[Entry("more", {"n": number}), Entry("end", {})]
        )
        assert [entry.kind for entry in await cell.turns.entries(claim, 0)][-2:] == ["more", "end"]
        await cell.turns.finish(claim, ANSWERED)
        await session.had(claim)

        now = await session.read()
        assert now["seq"] > last["seq"]
        assert only in session.archives
        last = now
    await session.grow_old()
    before = await session.read()
    await session.archive()
    assert await session.read() == before
    assert len(session.archives) == 1


@pytest.mark.parametrize("state", ["new", "empty", "queued", "running", "rescheduling", "parked", "answered"])
async def test_what_waits_is_never_touched(cell: Cell, principal: Principal, state: str) -> None:
    session = Rester(cell, principal, await cell.session(principal))
    if state != "empty":
        await session.turn("go")
    if state in {"queued", "running", "rescheduling", "parked", "answered"}:
        await cell.send(principal, session.id, "next")
    if state in {"running", "rescheduling", "parked", "answered"}:
        claim = await cell.claim(session.id, principal)
    if state == "rescheduling":
        await cell.turns.reschedule(claim, "unknown_error", "later")
    if state in {"parked", "answered"}:
        question = ask()
        await cell.turns.append(claim, [question])
        await cell.turns.finish(claim, waits_for(question))
    if state == "answered":
        await cell.send(principal, session.id, answer_to(question.id))
    if state != "new":
        await session.grow_old()
    before = await cell.everything(session.id)

    await session.retention().archive(principal.organisation, session.id)
    await session.retention().run()

    assert await cell.everything(session.id) == before
    assert await session.row() is None
    assert session.archives == []


@pytest.mark.requirement("C5")
async def test_a_sweep_finds_what_rests(cell: Cell, principal: Principal) -> None:
    old, young = await rester(cell, principal, 1), await rester(cell, principal, 1)
    await old.grow_old()
    before = await old.read()
    await old.retention().run()
    assert await old.row() is not None
    assert await old.read() == before
    assert await young.row() is None


async def test_a_message_that_comes_while_it_is_archived(
    cell: Cell, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await rester(cell, principal)
    _meanwhile(monkeypatch, lambda: cell.send(principal, session.id, "wait"))
    await session.archive()
    assert await session.row() is None
    assert session.archives == []
    assert (await cell.claim(session.id, principal)).content == [events.text_block("wait")]


async def test_readers_notice_nothing_while_it_happens(cell: Cell, principal: Principal) -> None:
    """The session is archived, continued and archived again, in tiny batches, while readers run."""
    session = await rester(cell, principal)
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


async def test_a_stream_from_an_old_place_crosses_into_the_rows(cell: Cell, principal: Principal, stack: Stack) -> None:
    session = await rester(cell, principal)
    await session.archive()
    await session.turn("later")
    last = (await cell.head(session.id))["seq"]
    frames = b""
    async with Hub(stack.settings.redis_url, cell.reads) as hub:
        async for chunk in hub.frames(principal.organisation, session.id, cursor=Cursor(3)):
            frames += chunk
            if b"id: %d\n" % last in frames:
                break
    ids = [int(line[4:]) for line in frames.decode().splitlines() if line.startswith("id: ")]
    assert ids == [*range(4, last + 1)]


async def test_usage_by_key_outlives_the_rows(cell: Cell, principal: Principal) -> None:
    session = await rester(cell, principal)
    now = datetime.now(UTC)
    question = UsageQuestion(
        start=now - timedelta(days=2), end=now + timedelta(days=1), group_by=frozenset({"key", "session"}), limit=10
    )
    before = await UsageReader(cell.database).usage(principal, question)
    await session.archive()
    assert await UsageReader(cell.database).usage(principal, question) == before
    assert [line.group["key"] for line in before] == [principal.id]


async def test_another_organisation_finds_nothing(cell: Cell, principal: Principal) -> None:
    session = await rester(cell, principal)
    await session.archive()
    assert await cell.reads.positions(somebody().organisation, session.id, 0, 100) == []


async def test_who_is_not_archived_pays_no_query(
    cell: Cell, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await rester(cell, principal, 1)
    asked: list[str] = []
    for name in ("fetch", "fetchrow"):
        real = getattr(cell.database, name)

        def counted(query: str, *args: Any, _real: Any = real) -> Any:
            asked.append(query)
            return _real(query, *args)

        monkeypatch.setattr(cell.database, name, counted)
    assert session.claim is not None
    await cell.reads.positions(principal.organisation, session.id, 0, 10)
    await cell.turns.entries(session.claim, 0)
    await cell.reads.events(principal, session.id, EventPage(limit=5))
    assert asked == ["positions", "entries", "events_ascending", "head_seq"]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("point", failpoints.ARCHIVE_POINTS)
async def test_killed_anywhere_it_loses_nothing(
    cell: Cell, principal: Principal, tmp_path: Path, point: str, times: int
) -> None:
    if point == "archive_replaced" and times == 1:
        return  # a first archive replaces nothing
    session = await rester(cell, principal)
    if times == 2:
        await session.archive()
        await session.turn("again")
    await session.grow_old()
    before = await session.read()

    await session.in_a_process(tmp_path, point, "archive")

    assert await session.read() == before
    if point == "archive_pruning":
        assert await session.rows_left() > BATCH

    async def finished() -> bool:
        await session.retention().run()  # the killed process holds the lock until its connection is closed
        row = await session.row()
        return row is not None and row["pruned"] and row["last_seq"] == before["seq"]

    assert await wait_until(finished, 20)
    assert await session.read() == before
    assert await session.rows_left() == 0
    row = await session.row()
    assert row is not None
    assert session.archives == [Path(row["object_key"]).name]


@pytest.mark.parametrize("harm", ["damaged", "lost"])
async def test_what_the_object_store_lost_is_said(
    cell: Cell, principal: Principal, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    session = await rester(cell, principal)
    await session.archive()
    (path,) = session.folder.rglob("*.gz")
    monkeypatch.setattr(archives_reads, "_PATIENCE_SECONDS", 0.1)
    if harm == "lost":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[500] ^= 1
        path.write_bytes(content)
    with pytest.raises(Permanent) as told:
        await cell.positions(session.id, principal)
    assert session.id in told.value.message
    assert path.name in told.value.help_text


def _meanwhile(monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """Runs an action between the writing of the object and its record."""
    real = archives_writing.ArchiveWriter.write

    async def write(self: archives_writing.ArchiveWriter, *args: Any) -> Any:
        archive = await real(self, *args)
        await act()
        return archive

    monkeypatch.setattr(archives_writing.ArchiveWriter, "write", write)
