"""Deletes the rows of a session in the caller's transaction, except rows that existing forks need.

The remaining rows are the start of the forks' history, and are deleted with the last fork that needs them. If two
deletions ran at the same time, each could assume that the other one deletes the shared rows. Each deletion therefore
first locks the sessions that own the rows.
"""

from footplate.store.database import SQL, Connection


async def delete_session_rows(connection: Connection, organisation: str, session_id: str) -> bool:
    """Deletes the session; the caller holds the head's lock. Returns whether forks or children need some of it."""
    await connection.fetch(SQL["lock_owners"], session_id)
    await connection.execute(SQL["lock_usage"], session_id)
    group_id = await connection.fetchval(SQL["lock_group_of_session"], session_id)
    await connection.execute(SQL["delete_session"], session_id)
    await connection.execute(SQL["delete_unused_groups"], session_id, group_id)
    pinned = await _delete_rows(connection, organisation, session_id)
    for row in await connection.fetch(SQL["leave_stretches"], session_id):
        await _delete_rows(connection, row["organisation"], row["owner"])
    return pinned


async def _delete_rows(connection: Connection, organisation: str, owner: str) -> bool:
    pins = await connection.fetchrow(SQL["pins"], owner)
    assert pins is not None
    await connection.execute(SQL["delete_rows"], owner, organisation, pins["seq"], pins["entries"], pins["files_seq"])
    return bool(pins["files_seq"])
