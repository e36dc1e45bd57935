"""The audit trail: entries come with the transaction that they tell of, and are sealed in batches a moment later.

The race: an entry with a lower number may be committed after one with a higher. So a batch is what was not sealed when
it was made, in order, and not a range of numbers.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from footplate.domain import audit
from footplate.domain.audit import AuditEntry, Verified
from footplate.store.database import SQL, Connection, Database
from footplate.store.records import Row

_ORGANISATIONS: Final = 100
_AT_ONCE: Final = 5000
_SEALED_WITHIN: Final = timedelta(minutes=1)
"""An entry that is older and not sealed is a fault: the sweep seals every few seconds."""


def entry(row: Row) -> AuditEntry:
    return AuditEntry(
        id=row["id"],
        number=row["number"],
        created_at=row["created_at"],
        kind=row["kind"],
        session=row["session"],
        turn=row["turn"],
        event=row["event"],
        principal=row["principal"],
        outcome=row["outcome"],
        tool=row["tool"],
        layer=row["layer"],
        input_hash=row["input_hash"],
        content=row["content"],
        content_hash=row["content_hash"],
    )


async def add(
    connection: Connection,
    organisation: str,
    new: AuditEntry,
    *,
    principal: str | None = None,
    session: str | None = None,
    turn: str | None = None,
) -> None:
    await connection.execute(
        SQL["add_audit"],
        *(new.id, organisation, new.kind, session, turn, new.event, principal, new.outcome, new.tool, new.layer),
        *(new.input_hash, new.content, new.content_hash),
    )


class HookTrail:
    """What hooks did. A worker that has lost the turn meanwhile says so all the same: they ran."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, organisation: str, session_id: str, turn_id: str, runs: Sequence[AuditEntry]) -> None:
        async with self._database.transaction() as connection:
            for run in runs:
                await add(connection, organisation, run, session=session_id, turn=turn_id)


class Sealing:
    """A chore of the sweep."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> None:
        for row in await self._database.fetch("audit_unsealed", _ORGANISATIONS):
            await self._seal(row["organisation"])

    async def _seal(self, organisation: str) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(SQL["lock_audit"], organisation)
            rows = await connection.fetch(SQL["audit_to_seal"], organisation, _AT_ONCE)
            if not rows:
                return
            last = await connection.fetchrow(SQL["last_batch"], organisation)
            number, previous = (last["number"] + 1, last["hash"]) if last is not None else (1, audit.FIRST)
            found = audit.seal(previous, [entry(row).record(organisation) for row in rows])
            await connection.execute(SQL["add_batch"], organisation, number, len(rows), previous, found)
            await connection.execute(SQL["seal_audit"], [row["id"] for row in rows], number)


async def verify(database: Database, organisation: str) -> Verified:
    faults: list[str] = []
    entries, expected, previous = 0, 1, audit.FIRST
    for batch in await database.fetch("audit_batches", organisation):
        name = f"batch {batch['number']}"
        rows = await database.fetch("audit_of_batch", organisation, batch["number"])
        found = [entry(row) for row in rows]
        entries += len(found)
        if batch["number"] != expected:
            faults.append(f"batch {expected} is missing")
        elif batch["previous"] != previous:
            faults.append(f"{name} does not go on from the batch before")
        if len(found) != batch["entries"]:
            faults.append(f"{name} had {batch['entries']} entries when it was sealed, and has {len(found)}")
        elif audit.seal(batch["previous"], [one.record(organisation) for one in found]) != batch["hash"]:
            faults.append(f"{name}: an entry was changed, or they are in another order")
        faults += [f"{name}: the content of {one.id} was changed" for one in found if not one.is_whole]
        expected, previous = batch["number"] + 1, batch["hash"]
    strays = await database.fetchrow("audit_strays", organisation, _SEALED_WITHIN)
    assert strays is not None
    if strays["lost"]:
        faults.append(f"{strays['lost']} entries are of batches that are missing")
    if strays["overdue"]:
        faults.append(
            f"{strays['overdue']} entries are not sealed, the oldest since {strays['oldest'].isoformat()}. "
            "Sealing takes seconds, so no worker is running, or the sweep was stopped; until they are sealed, a change "
            "of them would not be found"
        )
    return Verified(entries, expected - 1, strays["unsealed"], previous, faults)
