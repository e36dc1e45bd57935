"""Creates inactive sessions by copying the rows of one that ran, and measures how fast they are archived."""

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import asyncpg

_TABLES: Final = ("sessions", "session_heads", "events", "entries", "steps", "turns")
_AGE: Final = timedelta(days=2)
_COLUMNS: Final = """
select attname from pg_attribute
where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum
"""
_ARCHIVED: Final = "select count(*) from archives where pruned and session_id like $1 || '%'"


async def copy_session(database: asyncpg.Connection, session_id: str, copies: int) -> str:
    """Copies a session and returns the prefix of the copies' ids. The copies' times are two days in the past."""
    prefix = f"{session_id}_copy"
    async with database.transaction():
        for table in _TABLES:
            columns = [row["attname"] for row in await database.fetch(_COLUMNS, table)]
            key = "id" if table == "sessions" else "session_id"
            chosen = ", ".join(_value(column, key) for column in columns)
            await database.execute(
                f"insert into {table} ({', '.join(columns)}) select {chosen} from {table} t, generate_series(1, $3) n "
                f"where t.{key} = $1",
                session_id,
                prefix,
                copies,
            )
    return prefix


def _value(column: str, key: str) -> str:
    if column == key:
        return "$2 || n"
    if column.endswith("_at") and column not in {"archived_at", "wake_at", "deadline_at"}:
        return f"t.{column} - interval '{_AGE.days} days'"
    return f"t.{column}"


async def await_archives(database: asyncpg.Connection, prefix: str, copies: int, *, patience: float) -> Sequence[float]:
    """Waits until all copies are archived and their rows deleted. Returns the time of every hundredth."""
    begun = time.monotonic()
    times: list[float] = []
    while len(times) * 100 < copies:
        done = await database.fetchval(_ARCHIVED, prefix)
        times += [time.monotonic()] * (done // 100 - len(times))
        if time.monotonic() - begun > patience:
            break
        await asyncio.sleep(0.1)
    return times
