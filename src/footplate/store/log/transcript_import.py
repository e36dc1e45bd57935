"""Stores an imported transcript as the start of a new session, in batches of lines."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Final

import orjson

from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import Audience, ViewFilter
from footplate.domain.ports.transcript_exchange import ImportedLine
from footplate.store.database import SQL, Connection, bind
from footplate.store.object_store import Objects

_MAX_PIECES: Final = 200
_MAX_BYTES: Final = 4 << 20


async def find_imported_session(
    connection: Connection, principal: Principal, digest: bytes, audience: Audience
) -> str | None:
    """Returns the session of an earlier import of the same transcript. Waits for a concurrent import of it."""
    await connection.execute(SQL["lock_answer"], int.from_bytes(digest[:8], "big", signed=True))
    audiences = ViewFilter.of(principal).audiences
    found = await connection.fetchval(
        SQL["imported"], principal.organisation, digest, audiences, principal.id, audience.dump()
    )
    return None if found is None else str(found)


async def store_transcript(
    connection: Connection,
    objects: Objects,
    principal: Principal,
    session_id: str,
    digest: bytes,
    pieces: Iterator[ImportedLine],
) -> None:
    """Stores the transcript in a new, empty session."""
    seq = index = 0
    while batch_pieces := await asyncio.to_thread(_next_pieces, pieces):
        batch = await _ImportColumns.from_pieces(objects, principal, session_id, batch_pieces, index)
        await connection.execute(
            *bind(
                "import_rows",
                session_id=session_id,
                organisation=principal.organisation,
                principal=principal.id,
                index=index,
                seq=seq,
                **batch.columns,
            )
        )
        index, seq = index + len(batch.columns["entry_kinds"]), seq + len(batch.columns["event_ids"])
    await connection.execute(SQL["import_head"], session_id, seq, index)
    await connection.execute(SQL["insert_import"], principal.organisation, digest, session_id)


def _next_pieces(pieces: Iterator[ImportedLine]) -> list[ImportedLine]:
    """Returns the next pieces for one statement, limited by count and size. Runs in a thread, as it parses them."""
    found: list[ImportedLine] = []
    size = 0
    for piece in islice(pieces, _MAX_PIECES):
        found.append(piece)
        bodies = [*(entry.body for entry in piece.entries), *(event.body for event in piece.events)]
        size += sum(len(orjson.dumps(body, default=str)) for body in bodies)
        if size >= _MAX_BYTES:
            break
    return found


class _ImportColumns:
    """The columns of one `import_rows` statement, by the names of its parameters."""

    def __init__(self) -> None:
        entries = ("entry_kinds", "entry_bodies", "entry_object_keys")
        events = ("event_ids", "event_types", "event_bodies", "event_object_keys", "times", "entry_counts")
        self.columns: dict[str, list[object]] = {name: [] for name in (*entries, *events)}

    @classmethod
    async def from_pieces(
        cls, objects: Objects, principal: Principal, session_id: str, pieces: list[ImportedLine], index: int
    ) -> "_ImportColumns":
        columns = cls()
        organisation = principal.organisation
        for piece in pieces:
            for entry in piece.entries:
                text, key = await objects.fit_body(organisation, session_id, entry.body)
                columns._append_row(entry_kinds=entry.kind, entry_bodies=text, entry_object_keys=key)
            count = index + len(columns.columns["entry_kinds"])
            for event in piece.events:
                text, key = await objects.fit_body(organisation, session_id, event.body)
                columns._append_row(
                    event_ids=event.id,
                    event_types=event.type,
                    event_bodies=text,
                    event_object_keys=key,
                    times=piece.happened_at,
                    entry_counts=count,
                )
        return columns

    def _append_row(self, **values: object) -> None:
        for name, value in values.items():
            self.columns[name].append(value)
