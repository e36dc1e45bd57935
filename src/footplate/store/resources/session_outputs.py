"""Stores the outputs of sessions: files that an agent leaves for clients.

The bytes are in the object store, under a deletion record, before the row is written. The row is written in the same
transaction as the events of a turn. Until the turn ends, clients see the outputs of the last turn.
"""

import mimetypes
from typing import cast

from footplate.domain.errors import Unavailable
from footplate.domain.files.session_outputs import NO_OUTPUTS, OutputChanges, OutputFile, SessionOutputs
from footplate.domain.files.uploaded_files import UNKNOWN_TYPE
from footplate.domain.json import JsonObject
from footplate.domain.organisations.limits import LimitName, OrganisationLimits
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.engine import Claim
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.resources.limits import LimitStore, check_limit


class OutputRoom:
    """Finds how much an organisation may still store."""

    def __init__(self, database: Database, limits: LimitStore) -> None:
        self._database = database
        self._limits = limits

    async def find_room(self, organisation: str, session_id: str) -> int | None:
        """Returns the remaining bytes for outputs of the session. None: there is no limit."""
        limits = await self._limits.load(organisation)
        if not limits.has_limit(LimitName.STORED_BYTES):
            return None
        async with self._database.connection() as connection:
            owner = await _load_owner(connection, organisation, session_id)
        used = await self._limits.count_used(organisation, LimitName.STORED_BYTES)
        applied = limits.find_applied(LimitName.STORED_BYTES, owner)
        return min((max(limit.value - limit.count_used(used), 0) for limit in applied), default=None)


async def load_outputs(connection: Connection, session_id: str, column: JsonObject | None) -> SessionOutputs:
    """`column` is that of the session. It is null if the session never had an output: then no statement is run."""
    if column is None:
        return NO_OUTPUTS
    rows = await connection.fetch(SQL["outputs_of_session"], session_id)
    return SessionOutputs(
        files={
            row["filename"]: OutputFile(
                path=row["filename"], file_id=row["id"], size_bytes=row["size_bytes"], sha256=row["sha256"]
            )
            for row in rows
            if row["output_state"] != "replaced"
        },
        omitted=tuple(cast("list[str]", column["omitted"])),
        is_published=all(row["output_state"] == "current" for row in rows),
    )


async def apply_output_changes(
    connection: Connection, limits: OrganisationLimits, claim: Claim, changes: OutputChanges, *, ends_turn: bool
) -> None:
    """Writes the changes in the caller's transaction, which has checked the claim. Safe to repeat.

    Raises `OrganisationLimitExceeded` if there is no room for the added files.
    """
    session_id, added = claim.session_id, changes.added
    if changes.removed:
        await connection.execute(SQL["replace_outputs"], session_id, [*changes.removed])
    if added:
        if limits.has_limit(LimitName.STORED_BYTES):
            owner = await _load_owner(connection, claim.organisation, session_id)
            size = sum(file.size_bytes for file in added)
            await check_limit(connection, limits, owner, LimitName.STORED_BYTES, adding=size)
        file_ids = [file.file_id for file in added]
        await connection.execute(
            *bind(
                "add_outputs",
                session_id=session_id,
                organisation=claim.organisation,
                ids=file_ids,
                filenames=[file.path for file in added],
                mime_types=[mimetypes.guess_type(file.path)[0] or UNKNOWN_TYPE for file in added],
                sizes=[file.size_bytes for file in added],
                hashes=[file.sha256 for file in added],
            )
        )
        if await connection.fetchval(SQL["count_outputs"], session_id, file_ids) != len(file_ids):
            raise Unavailable("The upload of the session's outputs took longer than an hour.")
    if ends_turn:
        await connection.execute(SQL["publish_outputs"], session_id)
    omitted = None if changes.omitted is None else [*changes.omitted]
    await connection.execute(SQL["note_outputs"], session_id, omitted)


async def _load_owner(connection: Connection, organisation: str, session_id: str) -> Principal:
    owner = await connection.fetchval(SQL["owner_of_session"], session_id) or ""
    return Principal(organisation, owner, owner, frozenset())
