"""Creates a fork of a session: finds the fork's position in the parent's log and inserts the new session.

Only a few rows are read, even if the parent is long. A fork starts with the parent's log up to an event, and with the
conversation at that time. A message that a turn has started to process may not be in the conversation yet. Such a
message is sent to the model together with the fork's first message.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject, clean_object
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import ForkPoint
from footplate.domain.sessions import events
from footplate.domain.sessions.turns import Session
from footplate.store.archive.reader import ArchiveReader
from footplate.store.database import SQL, Connection, bind
from footplate.store.log.fork_history import LogSegment, RowOrLine, load_segment, read_backwards
from footplate.store.row_mapping import Row as Record

_OMITTED_MEANING: Final = {"from": "the files at the session's start"}
"""The meaning of an omitted point, by its field prefix, where that is not the newest event."""


@dataclass(frozen=True, slots=True)
class ForkOrigin:
    session_id: str
    segments: Sequence[LogSegment] = ()
    """The log segments that the fork starts with. The last one ends at the event."""
    event_id: str | None = None
    carried: Sequence[int] = ()

    @property
    def seq(self) -> int:
        return (self.segments[-1].last_seq or 0) if self.segments else 0

    @property
    def entries(self) -> int:
        return (self.segments[-1].entries or 0) if self.segments else 0

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
    connection: Connection, archives: ArchiveReader, head: Record, point: ForkPoint, *, field_prefix: str
) -> int:
    """Returns the position of an event, inherited events included. `field_prefix` is for error messages."""
    rows = await connection.fetch(SQL["stretches"], head["id"])
    return await _resolve_point(connection, archives, _all_segments(rows, head), point, field_prefix)


def _all_segments(rows: Sequence[Record], head: Record) -> list[LogSegment]:
    return [*map(load_segment, rows), LogSegment(head["id"], head["seq"], head["entries"])]


async def find_fork_origin(
    connection: Connection, archives: ArchiveReader, head: Record, point: ForkPoint
) -> ForkOrigin:
    """Finds where the fork starts. `head` is the parent's, locked against deletion. Messages that are only queued in
    the parent are not part of the fork.
    """
    session_id = head["id"]
    whole = _all_segments(await connection.fetch(SQL["stretches"], session_id), head)
    seq = await _resolve_point(connection, archives, whole, point, "at")
    if seq == 0:
        return ForkOrigin(session_id)
    index = next(n for n, segment in enumerate(whole) if seq <= (segment.last_seq or 0))
    event_row = await anext(read_backwards(connection, archives, whole[index].owner, seq))
    entries = await _count_entries(connection, archives, whole[index].owner, event_row)
    inherited = [*whole[:index], LogSegment(whole[index].owner, seq, entries)]
    carried = [row["ref_seq"] async for row in _find_unseen_messages(connection, archives, inherited, entries)]
    return ForkOrigin(session_id, inherited, event_row["event_id"], carried[::-1])


async def insert_fork(
    connection: Connection,
    principal: Principal,
    fork_id: str,
    origin: ForkOrigin,
    attributes: Session,
    environment_id: str | None,
) -> Record | None:
    """Inserts the fork and its references to the parent's rows. `attributes` has its title, agent and metadata.
    Returns None if the environment does not exist.
    """
    return await connection.fetchrow(
        *bind(
            "insert_fork",
            id=fork_id,
            organisation=principal.organisation,
            agent_id=attributes.agent["id"],
            agent_version=attributes.agent["version"],
            agent=clean_object(attributes.agent),
            environment_id=environment_id,
            title=attributes.title,
            metadata=attributes.metadata,
            principal=principal.id,
            fork=origin.record,
            parent_id=origin.session_id,
            seq=origin.seq,
            entries=origin.entries,
            owners=[part.owner for part in origin.segments],
            last_seqs=[part.last_seq for part in origin.segments],
            entry_counts=[part.entries for part in origin.segments],
            ends_when_done=attributes.ends_when_done,
        )
    )


async def _resolve_point(
    connection: Connection, archives: ArchiveReader, whole: Sequence[LogSegment], point: ForkPoint, field_prefix: str
) -> int:
    last = whole[-1].last_seq or 0
    if point.event_id is None:
        seq = last if point.position is None else point.position
        if seq > last:
            raise InvalidRequest(
                f"{field_prefix}_position: the log of session {whole[-1].owner!r} ends at position {last}",
                field=f"{field_prefix}_position",
                help_text=f"Use a lower position, or omit it to use "
                f"{_OMITTED_MEANING.get(field_prefix, 'the newest event')}.",
            )
        return seq
    for segment in reversed(whole):
        found = await connection.fetchval(SQL["event_of"], segment.owner, point.event_id, segment.last_seq)
        if found is None:
            found = await _find_archived_event(connection, archives, segment, point.event_id)
        if found is not None:
            return int(found)
    raise InvalidRequest(
        f"{field_prefix}_event_id: session {whole[-1].owner!r} has no event {point.event_id!r}",
        field=f"{field_prefix}_event_id",
        help_text="List the session's event IDs with `footplate logs --json`, or omit the field to use "
        f"{_OMITTED_MEANING.get(field_prefix, 'the newest event')}.",
    )


async def _find_archived_event(
    connection: Connection, archives: ArchiveReader, part: LogSegment, event_id: str
) -> int | None:
    archive = await archives.find_archive(part.owner, connection)
    last = part.last_seq or 0
    if archive is None:
        return None
    async for line in archives.read_lines(archive, "events", before=last + 1):
        if line["event_id"] == event_id:
            processed_seq = line.get("taken_seq") or 0
            return processed_seq if 0 < processed_seq <= last else int(line["seq"])
    return None


async def _count_entries(connection: Connection, archives: ArchiveReader, owner: str, event_row: RowOrLine) -> int:
    """Returns the conversation's length at an event. Logs of older versions lack it; there, timestamps decide."""
    recorded = event_row.get("entries")
    if recorded is not None:
        return int(recorded)
    archive = await archives.find_archive(owner, connection)
    if isinstance(event_row, dict):
        assert archive is not None
        event_time = datetime.fromisoformat(event_row["created_at"])
        lines = archives.read_lines(archive, "entries")
        return sum([datetime.fromisoformat(line["created_at"]) <= event_time async for line in lines])
    count = int(await connection.fetchval(SQL["entries_by_time"], owner, event_row["created_at"]))
    return count if archive is None else max(count, archive.entries)


async def _find_unseen_messages(
    connection: Connection, archives: ArchiveReader, segments: Sequence[LogSegment], entries: int
) -> AsyncIterator[RowOrLine]:
    """Yields the messages that a turn started to process after the conversation last grew, newest first. Stops at the
    end of a turn, because an ended turn adds nothing more to the conversation.
    """
    for part in reversed(segments):
        async for row in read_backwards(connection, archives, part.owner, part.last_seq or 0):
            known = row.get("entries")
            ended = row["type"] == events.STATUS_IDLE and row["turn_id"] is not None
            if ended or known is None or known < entries:
                return
            if row["type"] == events.USER_MESSAGE and row["ref_seq"] is not None:
                yield row
