"""Finds the position at which a session is forked. Reads only a few rows there, however long the session is.

A fork starts with the log up to an event, and with the conversation as it was when that event was logged. The log may
already contain a message that a turn has started to process but that is not in the conversation yet. The fork carries
such a message and passes it to the model together with its own first message. Messages that are only queued in the
parent stay there.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from footplate.domain import events
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject, clean_object
from footplate.domain.principals import Principal
from footplate.domain.services import ForkPoint
from footplate.domain.turns import Session
from footplate.store.archives import Archives
from footplate.store.database import SQL, Connection
from footplate.store.lineage import Row, Stretch, backwards, stretch
from footplate.store.records import Row as Record

_LEFT_OUT: Final = {"from": "the files as they began"}
"""The meaning of an omitted point, by its field prefix, where that is not the newest event."""


@dataclass(frozen=True, slots=True)
class Place:
    session_id: str
    stretches: Sequence[Stretch] = ()
    """The log segments that the fork starts with. The last one ends at the event."""
    event_id: str | None = None
    carried: Sequence[int] = ()

    @property
    def seq(self) -> int:
        return (self.stretches[-1].last_seq or 0) if self.stretches else 0

    @property
    def entries(self) -> int:
        return (self.stretches[-1].entries or 0) if self.stretches else 0

    @property
    def record(self) -> JsonObject:
        """The JSON object that is stored with the fork."""
        return {
            "session_id": self.session_id,
            "event_id": self.event_id,
            "position": self.seq,
            "carried": [*self.carried],
        }


async def find_position(
    connection: Connection, archives: Archives, head: Record, point: ForkPoint, *, field: str
) -> int:
    """Returns the position of an event, inherited events included. `field_prefix` is for error messages."""
    rows = await connection.fetch(SQL["stretches"], head["id"])
    return await _position(connection, archives, _whole(rows, head), point, field)


def _whole(rows: Sequence[Record], head: Record) -> list[Stretch]:
    return [*map(stretch, rows), Stretch(head["id"], head["seq"], head["entries"])]


async def find_place(connection: Connection, archives: Archives, head: Record, point: ForkPoint) -> Place:
    """Finds where the fork starts. `head` is the parent's, locked against deletion."""
    session_id = head["id"]
    whole = _whole(await connection.fetch(SQL["stretches"], session_id), head)
    seq = await _position(connection, archives, whole, point, "at")
    if seq == 0:
        return Place(session_id)
    index = next(n for n, part in enumerate(whole) if seq <= (part.last_seq or 0))
    at = await anext(backwards(connection, archives, whole[index].owner, seq))
    entries = await _entries(connection, archives, whole[index].owner, at)
    begins = [*whole[:index], Stretch(whole[index].owner, seq, entries)]
    carried = [row["ref_seq"] async for row in _unheard(connection, archives, begins, entries)]
    return Place(session_id, begins, at["event_id"], carried[::-1])


async def insert_fork(
    connection: Connection,
    principal: Principal,
    fork_id: str,
    place: Place,
    wanted: Session,
    environment_id: str | None,
) -> Record | None:
    """Inserts the fork and its references to the parent's rows. `attributes` has its title, agent and metadata.
    Returns None if the environment does not exist.
    """
    return await connection.fetchrow(
        SQL["insert_fork"],
        fork_id,
        principal.organisation,
        wanted.agent["id"],
        wanted.agent["version"],
        clean_object(wanted.agent),
        environment_id,
        wanted.title,
        wanted.metadata,
        principal.id,
        place.record,
        place.session_id,
        place.seq,
        place.entries,
        [part.owner for part in place.stretches],
        [part.last_seq for part in place.stretches],
        [part.entries for part in place.stretches],
    )


async def _position(
    connection: Connection, archives: Archives, whole: Sequence[Stretch], point: ForkPoint, name: str
) -> int:
    last = whole[-1].last_seq or 0
    if point.event_id is None:
        seq = last if point.position is None else point.position
        if seq > last:
            raise InvalidRequest(
                f"{name}_position: the log of session {whole[-1].owner!r} ends at position {last}",
                field=f"{name}_position",
                help_text=f"Use a lower position, or omit it for {_LEFT_OUT.get(name, 'the newest event')}.",
            )
        return seq
    for part in reversed(whole):
        found = await connection.fetchval(SQL["event_of"], part.owner, point.event_id, part.last_seq)
        if found is None:
            found = await _archived_event(connection, archives, part, point.event_id)
        if found is not None:
            return int(found)
    raise InvalidRequest(
        f"{name}_event_id: session {whole[-1].owner!r} has no event {point.event_id!r}",
        field=f"{name}_event_id",
        help_text="List the session's event ids with `footplate logs --json`, or omit the field for "
        f"{_LEFT_OUT.get(name, 'the newest event')}.",
    )


async def _archived_event(connection: Connection, archives: Archives, part: Stretch, event_id: str) -> int | None:
    archive = await archives.find(part.owner, connection)
    last = part.last_seq or 0
    if archive is None:
        return None
    async for line in archives.lines(archive, "events", before=last + 1):
        if line["event_id"] == event_id:
            taken = line.get("taken_seq") or 0
            return taken if 0 < taken <= last else int(line["seq"])
    return None


async def _entries(connection: Connection, archives: Archives, owner: str, at: Row) -> int:
    """Returns the conversation's length at an event. Logs of older versions lack it; there, timestamps decide."""
    known = at.get("entries")
    if known is not None:
        return int(known)
    archive = await archives.find(owner, connection)
    if isinstance(at, dict):
        assert archive is not None
        moment = datetime.fromisoformat(at["created_at"])
        lines = archives.lines(archive, "entries")
        return sum([datetime.fromisoformat(line["created_at"]) <= moment async for line in lines])
    count = int(await connection.fetchval(SQL["entries_by_time"], owner, at["created_at"]))
    return count if archive is None else max(count, archive.entries)


async def _unheard(
    connection: Connection, archives: Archives, begins: Sequence[Stretch], entries: int
) -> AsyncIterator[Row]:
    """Yields the messages that a turn started to process after the conversation last grew, newest first. Stops at the
    end of a turn, because an ended turn adds nothing more to the conversation.
    """
    for part in reversed(begins):
        async for row in backwards(connection, archives, part.owner, part.last_seq or 0):
            known = row.get("entries")
            ended = row["type"] == events.STATUS_IDLE and row["turn_id"] is not None
            if ended or known is None or known < entries:
                return
            if row["type"] == events.USER_MESSAGE and row["ref_seq"] is not None:
                yield row
