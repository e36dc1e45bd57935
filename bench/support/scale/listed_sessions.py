"""Fills an organisation with many sessions for the lists of the dashboard, by copying one that ran.

The copies have their own titles and times, a minute apart, and every tenth has failed. They have no events, because
lists do not read them.
"""

from typing import Final

import asyncpg

_TABLES: Final = {"sessions": "id", "session_heads": "session_id"}
_COLUMNS: Final = """
select attname from pg_attribute
where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum
"""
_FAILED_EACH: Final = 10
_VALUES: Final = {
    "title": "'Session ' || n",
    "created_at": "t.created_at - n * interval '1 minute'",
    "has_failed": f"n % {_FAILED_EACH} = 0",
}


async def insert_listed_sessions(database_url: str, session_id: str, count: int) -> None:
    """Inserts copies of the session. `Session 1` is the newest of them."""
    connection = await asyncpg.connect(database_url)
    try:
        for table, key in _TABLES.items():
            columns = [row["attname"] for row in await connection.fetch(_COLUMNS, table)]
            # Ids sort by their time, as the real ones do.
            values = {key: "'sesn_00' || lpad(($2 - n)::text, 24, '0')", **(_VALUES if table == "sessions" else {})}
            chosen = ", ".join(values.get(column, f"t.{column}") for column in columns)
            await connection.execute(
                f"insert into {table} ({', '.join(columns)}) "
                f"select {chosen} from {table} t, generate_series(1, $2::int) n where t.{key} = $1",
                session_id,
                count,
            )
        await connection.execute("vacuum analyze sessions, session_heads")
    finally:
        await connection.close()
