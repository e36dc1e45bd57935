"""Deletes a session's rows, in the transaction of whoever asked for it; what living forks need of them stays.

Those rows are the forks' own beginning by now, and can be reached through them alone. They go with the last fork that
needs them. The race: two deletions that concern the same rows, each of which sees the other's session and leaves the
rows to it. So they wait for each other, by a lock on each owner.
"""

from footplate.store.database import SQL, Connection


async def delete_session(connection: Connection, organisation: str, session_id: str) -> bool:
    """The caller holds the head's lock. Says whether something of it is still needed."""
    await connection.fetch(SQL["lock_owners"], session_id)
    await connection.execute(SQL["lock_usage"], session_id)
    await connection.execute(SQL["delete_session"], session_id)
    pinned = await _delete_rows(connection, organisation, session_id)
    for row in await connection.fetch(SQL["leave_stretches"], session_id):
        await _delete_rows(connection, row["organisation"], row["owner"])
    return pinned


async def _delete_rows(connection: Connection, organisation: str, owner: str) -> bool:
    pins = await connection.fetchrow(SQL["pins"], owner)
    assert pins is not None
    await connection.execute(SQL["delete_rows"], owner, organisation, pins["seq"], pins["entries"])
    return bool(pins["seq"])
