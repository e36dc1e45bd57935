"""Uploaded files are complete or gone, even after a kill, and visible only to their organisation."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from footplate.domain import ids
from footplate.domain.errors import NotFound, Unavailable
from footplate.domain.files import uploaded_files as domain
from footplate.domain.files.uploaded_files import StoredFile
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.engine import Claim
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.store.resources import files
from footplate.store.resources.files import FileCleanup, FileContents

from .cell import Cell, new_principal


async def in_chunks(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def _objects_of(cell: Cell, principal: Principal, file_id: str) -> list[Path]:
    folder = cell.folder / principal.organisation / "files" / file_id
    return sorted(folder.iterdir()) if folder.is_dir() else []


async def upload(cell: Cell, principal: Principal, *chunks: bytes, expires_in: int | None = None) -> StoredFile:
    file_id = ids.new_id(ids.FILE)
    await FileContents(cell.database, cell.objects).store(principal.organisation, file_id, in_chunks(*chunks))
    async with cell.units.unit(principal, None) as unit:
        return await unit.create_file(
            principal,
            file_id=file_id,
            filename="a.txt",
            mime_type="text/plain",
            size_bytes=sum(map(len, chunks)),
            expires_in=expires_in,
        )


async def _read(cell: Cell, principal: Principal, file_id: str) -> bytes:
    return (await FileContents(cell.database, cell.objects).read(principal.organisation, file_id))[1]


async def _sweep(cell: Cell) -> None:
    await FileCleanup(cell.database, cell.objects).run()


async def test_an_uploaded_file_is_read_back(cell: Cell, principal: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "OBJECT_PART_BYTES", 4)
    made = await upload(cell, principal, b"abc", b"defghij")
    assert len(_objects_of(cell, principal, made.id)) == 3
    assert await _read(cell, principal, made.id) == b"abcdefghij"
    empty = await upload(cell, principal)
    assert await _read(cell, principal, empty.id) == b""
    assert await cell.reads.file(principal, made.id) == made
    assert await cell.reads.files(principal, Page(limit=5)) == [empty, made]
    assert await cell.reads.files(principal, Page(limit=5), ids=[made.id, "file_none"]) == [made]
    await _sweep(cell)
    assert await _read(cell, principal, made.id) == b"abcdefghij"


async def test_a_deleted_file_is_gone_from_everywhere(cell: Cell, principal: Principal) -> None:
    made = await upload(cell, principal, b"abc")
    async with cell.units.unit(principal, None) as unit:
        await unit.delete_file(principal, made.id)
    with pytest.raises(NotFound):
        await _read(cell, principal, made.id)
    await _sweep(cell)
    assert _objects_of(cell, principal, made.id) == []
    assert await cell.database.fetch("removals_due", 100) == []
    with pytest.raises(NotFound):
        async with cell.units.unit(principal, None) as unit:
            await unit.delete_file(principal, made.id)


async def test_a_killed_upload_is_removed(cell: Cell, principal: Principal) -> None:
    file_id = ids.new_id(ids.FILE)
    await FileContents(cell.database, cell.objects).store(principal.organisation, file_id, in_chunks(b"abc"))
    await _sweep(cell)
    assert _objects_of(cell, principal, file_id), "it may still be going on"
    await _expire_upload(cell, file_id)
    await _sweep(cell)
    assert _objects_of(cell, principal, file_id) == []
    with pytest.raises(Unavailable, match="longer than an hour"):
        async with cell.units.unit(principal, None) as unit:
            await unit.create_file(
                principal, file_id=file_id, filename="a", mime_type="text/plain", size_bytes=3, expires_in=None
            )


async def test_a_file_expires_with_its_bytes(cell: Cell, principal: Principal) -> None:
    made = await upload(cell, principal, b"abc", expires_in=3600)
    async with cell.database.connection() as connection:
        await connection.execute("update files set expires_at = now() where id = $1", made.id)
    with pytest.raises(NotFound):
        await cell.reads.file(principal, made.id)
    assert await cell.reads.files(principal, Page(limit=5)) == []
    await _sweep(cell)
    assert _objects_of(cell, principal, made.id) == []


async def test_a_file_is_not_visible_to_another_organisation(cell: Cell, principal: Principal) -> None:
    made, other = await upload(cell, principal, b"abc"), new_principal()
    with pytest.raises(NotFound):
        await cell.reads.file(other, made.id)
    with pytest.raises(NotFound):
        await _read(cell, other, made.id)
    assert await cell.reads.files(other, Page(limit=5), ids=[made.id]) == []
    with pytest.raises(NotFound):
        async with cell.units.unit(other, None) as unit:
            await unit.delete_file(other, made.id)
    assert domain.object_prefix(principal.organisation, made.id).startswith(principal.organisation)


async def _expire_upload(cell: Cell, file_id: str) -> None:
    async with cell.database.connection() as connection:
        await connection.execute("update file_removals set due = now() where file_id = $1", file_id)


async def test_a_turn_knows_the_sessions_files_and_a_fork_has_them_too(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "hello")
    resource: JsonObject = {"id": "sesrsc_1", "type": "file", "file_id": "file_1", "mount_path": "a"}
    async with cell.units.unit(principal, None) as unit:
        assert await unit.change_resources(principal, session_id, lambda known: [*known, resource]) == [resource]
    assert (await cell.reads.session(principal, session_id)).resources == [resource]
    claim = await cell.claims.claim(principal.organisation, session_id, "wrkr_1")
    assert isinstance(claim, Claim)
    assert claim.resources == [resource]
    again = await cell.claims.claim(principal.organisation, session_id, "wrkr_2")
    assert isinstance(again, Claim)
    assert again.resources == [resource]
    assert await cell.turns.last_completed(again) is None
    await cell.turns.finish(again, TurnOutcome(status=TurnStatus.COMPLETED))
    completed = await cell.turns.last_completed(again)
    assert completed is not None
    assert completed < datetime.now(UTC)
    assert again.forked_at is None
    fork = await cell.fork(principal, session_id)
    await cell.send(principal, fork.id, "otherwise")
    for worker in ("wrkr_1", "wrkr_2"):
        claim = await cell.claim(fork.id, principal, worker)
        assert (claim.resources, claim.forked_at) == ([resource], fork.created_at)
    for wrong in (new_principal(), principal):
        with pytest.raises(NotFound):
            async with cell.units.unit(wrong, None) as unit:
                await unit.change_resources(wrong, session_id if wrong != principal else "sesn_none", lambda _: [])
