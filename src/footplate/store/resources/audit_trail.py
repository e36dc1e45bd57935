"""The audit trail in the database. An entry is written in the transaction that it describes.

A background job seals new entries in batches, which form a hash chain. Entries may be committed in another order than
their numbers. A batch is therefore not a range of numbers, but all entries that were not sealed yet, in order.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import structlog

from footplate.domain import audit
from footplate.domain.audit import AuditEntry, AuditUnit, AuditVerification
from footplate.domain.errors import Temporary
from footplate.domain.organisations.fair_limiter import OrganisationLimiter
from footplate.domain.organisations.principals import Principal
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.row_mapping import Row

log = structlog.get_logger(__name__)

_MAX_ORGANISATIONS: Final = 100
_MAX_BATCH_ENTRIES: Final = 5000
_BATCHES_PER_READ: Final = 1000
_MAX_FAULTS: Final = 1000
_VERIFICATION_LIMITER: Final = OrganisationLimiter(2, max_per_organisation=1)
"""Limits concurrent verifications per process, because reading a whole trail is expensive. Other callers wait."""
_MAX_UNSEALED_AGE: Final = timedelta(minutes=1)
"""An older entry that is not sealed is a fault, because the sweep seals every few seconds."""


def load_entry(row: Row) -> AuditEntry:
    call_input = row.get("call_input")
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
        principal_name=row.get("principal_name"),
        session_title=row.get("session_title"),
        call_input=call_input if isinstance(call_input, dict) else None,
    )


async def add_entry(
    connection: Connection,
    organisation: str,
    new: AuditEntry,
    *,
    principal: str | None = None,
    session: str | None = None,
    turn: str | None = None,
) -> None:
    await connection.execute(
        *bind(
            "add_audit",
            id=new.id,
            organisation=organisation,
            kind=new.kind,
            session=session,
            turn=turn,
            event=new.event,
            principal=principal,
            outcome=new.outcome,
            tool=new.tool,
            layer=new.layer,
            input_hash=new.input_hash,
            content=new.content,
            content_hash=new.content_hash,
        )
    )


class AuditUnitOfWork(AuditUnit):
    """The methods of a unit of work that add audit entries."""

    _connection: Connection

    async def record(self, principal: Principal, entry: AuditEntry) -> None:
        await add_entry(self._connection, principal.organisation, entry, principal=principal.id, session=entry.session)


class HookRunRecorder:
    """Records hook runs. It is not fenced: a worker that has lost its turn still records the hooks that it ran."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, organisation: str, session_id: str, turn_id: str, runs: Sequence[AuditEntry]) -> None:
        async with self._database.transaction() as connection:
            for run in runs:
                await add_entry(
                    connection, organisation, run, principal=run.principal, session=session_id, turn=turn_id
                )


class AuditSealing:
    """Background job that seals new entries in batches, each chained to the previous batch by its hash."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> None:
        for row in await self._database.fetch("audit_unsealed", _MAX_ORGANISATIONS):
            try:
                await self._seal(row["organisation"])
            except Temporary as error:  # the next sweep retries; continue with the other organisations
                log.warning(
                    "audit entries could not be sealed; will retry", action="audit.not_sealed", reason=error.message
                )

    async def _seal(self, organisation: str) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(SQL["lock_audit"], organisation)
            rows = await connection.fetch(SQL["audit_to_seal"], organisation, _MAX_BATCH_ENTRIES)
            if not rows:
                return
            last = await connection.fetchrow(SQL["last_batch"], organisation)
            number, previous = (last["number"] + 1, last["hash"]) if last is not None else (1, audit.GENESIS_HASH)
            found = audit.seal_batch(previous, [load_entry(row).compute_hash(organisation) for row in rows])
            await connection.execute(SQL["add_batch"], organisation, number, len(rows), previous, found)
            await connection.execute(SQL["seal_audit"], [row["id"] for row in rows], number)


async def verify_trail(database: Database, organisation: str, head: str | None = None) -> AuditVerification:
    """Reads the whole trail batch by batch and recomputes every hash in a thread.

    `head` is a hash that was saved outside of Footplate. If no batch has it, the end of the trail was removed or
    rewritten.
    """
    chain = _ChainVerifier(organisation, head)
    async with _VERIFICATION_LIMITER.acquire_slot(organisation):
        while batches := await database.fetch("audit_batches", organisation, chain.expected, _BATCHES_PER_READ):
            for batch in batches:
                rows = await database.fetch("audit_of_batch", organisation, batch["number"])
                await asyncio.to_thread(chain.check_batch, batch, rows)
        strays = await database.fetchrow("audit_strays", organisation, _MAX_UNSEALED_AGE)
    assert strays is not None
    faults = chain.faults
    if strays["lost"]:
        faults.append(f"{strays['lost']} entries belong to batches that are missing")
    if not chain.has_head:
        faults.append(
            f"no batch has the saved hash {head}: the end of the trail was removed or changed after the hash was saved"
        )
    if strays["overdue"]:
        faults.append(
            f"{strays['overdue']} entries are not sealed, the oldest since {strays['oldest'].isoformat()}, so "
            "changes to them cannot be detected. Check that a worker is running and that the sweep is not paused"
        )
    return AuditVerification(chain.entries, chain.expected - 1, strays["unsealed"], chain.previous, faults)


class _ChainVerifier:
    """Checks the chain of one organisation's batches in order."""

    def __init__(self, organisation: str, head: str | None) -> None:
        self._organisation = organisation
        self._head = head
        self.has_head = head is None or head == audit.GENESIS_HASH
        self.faults: list[str] = []
        self.entries = 0
        self.expected = 1
        self.previous = audit.GENESIS_HASH

    def check_batch(self, batch: Row, rows: Sequence[Row]) -> None:
        name = f"batch {batch['number']}"
        entries = [load_entry(row) for row in rows]
        self.entries += len(entries)
        if batch["number"] != self.expected:
            self.faults.append(f"batch {self.expected} is missing")
        elif batch["previous"] != self.previous:
            self.faults.append(f"{name} does not contain the hash of the previous batch")
        if len(entries) != batch["entries"]:
            self.faults.append(f"{name} had {batch['entries']} entries when it was sealed, but has {len(entries)} now")
        elif (
            audit.seal_batch(batch["previous"], [one.compute_hash(self._organisation) for one in entries])
            != batch["hash"]
        ):
            self.faults.append(f"{name}: an entry or the order of entries was changed")
        self.faults += [f"{name}: the content of {one.id} was changed" for one in entries if not one.is_intact]
        del self.faults[_MAX_FAULTS:]
        self.has_head |= batch["hash"] == self._head
        self.expected, self.previous = batch["number"] + 1, batch["hash"]
