"""A deleted session has no row in any table, no object and no key in Redis."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import RequestAttempt, StoredResponse
from footplate.domain.sessions.events import Position
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until
from footplate.store.archive import writer
from footplate.store.retention.deletion_cleanup import DeletionCleanup
from footplate.stream import redis_keys
from footplate.stream.live_publisher import LivePublisher
from footplate.stream.session_cleanup import SessionCleaner
from footplate.stream.turn_publisher import TurnPublisher

from .archivable_session import ArchivableSession, create_archivable_session
from .cell import Cell

pytestmark = pytest.mark.timing

_NOW = timedelta(0)


async def _rows(cell: Cell, session_id: str) -> dict[str, int]:
    """Returns the number of rows of the session by table. All tables of the schema are searched, except the feed, which
    has ids and types only, and deletes them after its own retention.
    """
    found = {}
    async with cell.database.connection() as connection:
        columns = await connection.fetch(
            "select c.table_name as name, c.column_name as key from information_schema.columns c"
            " join pg_class t on t.relname = c.table_name and not t.relispartition"
            " where c.table_schema = 'public' and (c.column_name = 'session_id' or c.table_name = 'sessions' and"
            " c.column_name = 'id') and c.table_name not in ('feed', 'feed_pending')"
        )
        assert {"sessions", "events", "archives", "answers"} <= {row["name"] for row in columns}
        for row in columns:
            query = f"select count(*) from {row['name']} where {row['key']} = $1"
            if count := await connection.fetchval(query, session_id):
                found[row["name"]] = count
    return found


async def _in_redis(redis: Redis, session_id: str) -> list[Any]:
    named = [key async for key in redis.scan_iter(match=f"*{session_id}*")]
    entries: Any = await redis.xrange(redis_keys.stream_key(redis_keys.shard_of(session_id)))
    return [*named, *[number for number, fields in entries if session_id.encode() in fields.values()]]


async def _delete(session: ArchivableSession) -> None:
    async with session.cell.units.unit(session.principal, None) as unit:
        await unit.delete_session(session.principal, session.id)


async def _forget_nothing(organisation: str, session_id: str) -> None: ...


async def _archived_session_with_rows(cell: Cell, principal: Principal) -> ArchivableSession:
    """Creates a session that was archived twice, with newer rows and a response that is stored for retries."""
    session = await create_archivable_session(cell, principal, 1)
    for _ in range(2):
        await session.archive()
        await session.turn("more")
    async with cell.database.connection() as connection:
        await connection.execute("insert into shell_states values ($1, $2, '{}')", session.id, principal.organisation)
    attempt = RequestAttempt(method="POST", path="/p", body_hash=b"h", idempotency_key=session.id)
    async with cell.units.unit(principal, attempt) as unit:
        await unit.update_session(principal, session.id, lambda old: old)
        await unit.store_response(StoredResponse(200, {}))
    return session


async def test_a_deletion_removes_everything(cell: Cell, principal: Principal, stack: Stack, tmp_path: Path) -> None:
    session, other = (
        await _archived_session_with_rows(cell, principal),
        await create_archivable_session(cell, principal, 1),
    )
    url = stack.settings.redis_url
    positions: list[Position] = [*await cell.positions(session.id, principal)]
    redis = Redis.from_url(url)
    async with LivePublisher(url) as live:
        for item in (session, other):
            turn = TurnPublisher(live, principal.organisation, item.id)
            turn.preview("agent.message").write("half of a")
            await live.publish(principal.organisation, item.id, positions[:2])
        assert await live.wait_until_sent()

        async def shown() -> bool:
            return len(await _in_redis(redis, session.id)) >= 3

        assert await wait_until(shown, 30)
    forgetter = SessionCleaner(url)
    assert {"events", "archives", "answers", "shell_states"} <= (await _rows(cell, session.id)).keys()

    await _delete(session)
    assert await _rows(cell, session.id) == {"deletions": 1}
    assert session.files == []

    first = DeletionCleanup(cell.database, cell.objects, forgetter.delete_session_data)
    await first.run()
    assert await _in_redis(redis, session.id) == []
    # An object that a fenced worker writes later is deleted as well, and then the deletion record.
    session.folder.mkdir(parents=True)
    (session.folder / "body_late.json").write_text("{}")
    await first.run()
    assert session.files == ["body_late.json"]
    await DeletionCleanup(cell.database, cell.objects, forgetter.delete_session_data, second_pass_after=_NOW).run()
    assert await _rows(cell, session.id) == {}
    assert not session.folder.exists()
    assert len(await _in_redis(redis, other.id)) >= 2
    assert other.files
    await forgetter.aclose()
    await redis.aclose()


@pytest.mark.parametrize(("point", "action"), [("deletion_committed", "delete"), ("deletion_objects", "purge")])
async def test_the_sweep_finishes_a_killed_deletion(
    cell: Cell, principal: Principal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, point: str, action: str
) -> None:
    session = await _archived_session_with_rows(cell, principal)
    if action == "purge":
        with monkeypatch.context() as patched:
            patched.setattr(cell.objects, "delete_session", _forget_nothing)  # as if the API had died after its commit
            await _delete(session)
    await session.run_until_killed(tmp_path, point, action)
    assert await _rows(cell, session.id) == {"deletions": 1}
    assert bool(session.files) is (action == "delete")

    forgotten: list[tuple[str, str]] = []

    async def forget(organisation: str, session_id: str) -> None:
        forgotten.append((organisation, session_id))

    async def finished() -> bool:
        await DeletionCleanup(cell.database, cell.objects, forget, second_pass_after=_NOW).run()
        return "deletions" not in await _rows(cell, session.id)

    assert await wait_until(finished, 20)
    assert session.files == []
    assert (principal.organisation, session.id) in forgotten


async def test_a_session_can_be_deleted_while_it_is_archived(
    cell: Cell, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await create_archivable_session(cell, principal)
    real = writer.ArchiveWriter.write_archive

    async def write(self: writer.ArchiveWriter, *args: Any) -> Any:
        archive = await real(self, *args)
        assert session.archives
        await _delete(session)
        return archive

    monkeypatch.setattr(writer.ArchiveWriter, "write_archive", write)
    await session.archive()
    assert session.files == []
    assert await _rows(cell, session.id) == {"deletions": 1}


async def test_objects_that_cannot_be_deleted_now_are_deleted_later(
    cell: Cell, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await create_archivable_session(cell, principal)
    with monkeypatch.context() as patched:

        async def down(*_: object) -> None:
            raise OSError("the store is down")

        patched.setattr(cell.objects, "delete_session", down)
        await _delete(session)
    assert session.files

    await DeletionCleanup(cell.database, cell.objects, _forget_nothing).run()
    assert session.files == []
    assert await _rows(cell, session.id) == {"deletions": 1}
