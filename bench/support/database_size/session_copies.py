"""Fills a database with copies of one session that really ran: all its rows, with new ids and organisations.

Every copy has all rows of a real session at their true size. The copies look old: they were created over the last 90
days, and their ids sort before every new one. One in ten belongs to the organisation whose requests are measured.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

import asyncpg

from footplate.wiring import DEFAULT_ORGANISATION

_CHUNK: Final = 5_000
_CONNECTIONS: Final = 3
_TABLES: Final = ("sessions", "session_heads", "events", "entries", "steps", "turns")
_OTHER_ORGANISATIONS: Final = 999
_DAYS: Final = 90


def copy_id(number: int) -> str:
    """Returns the id of a copy, in the format of a real one."""
    return f"sesn_00{number:024d}"


def is_measured(number: int) -> bool:
    """Returns whether the copy belongs to the measured organisation."""
    return number % 10 == 0


async def fill_database(database_url: str, template: str, sessions: int) -> None:
    """Fills the database with copies of the session with the id `template`."""
    connection = await asyncpg.connect(database_url)
    try:
        await _raise_wal_limit(connection)
        statements = [await _copy_statement(connection, table) for table in _TABLES]
        chunks = iter(range(0, sessions, _CHUNK))
        async with asyncio.TaskGroup() as group:
            for _ in range(_CONNECTIONS):
                group.create_task(_copy(database_url, statements, chunks, template, sessions))
        await _vacuum_and_checkpoint(database_url)
    finally:
        await connection.execute("alter system reset max_wal_size")
        await connection.execute("select pg_reload_conf()")
        await connection.close()


async def count_rows(database_url: str) -> tuple[int, int, int]:
    """Returns the numbers of sessions, events and bytes on disk."""
    connection = await asyncpg.connect(database_url)
    try:
        row = await connection.fetchrow(
            "select (select count(*) from sessions), (select count(*) from events),"
            " pg_database_size(current_database())"
        )
        assert row is not None
        return int(row[0]), int(row[1]), int(row[2])
    finally:
        await connection.close()


async def _raise_wal_limit(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Relaxes the WAL limit during the load, which can simply be repeated after a crash."""
    await connection.execute("alter system set max_wal_size = '6GB'")
    await connection.execute("select pg_reload_conf()")


async def _copy_statement(connection: "asyncpg.Connection[asyncpg.Record]", table: str) -> str:
    """Returns an `insert … select` statement that copies the template's rows, for the copies $2 to $3."""
    rows = await connection.fetch(
        "select attname from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped"
        " and attgenerated = '' order by attnum",
        table,
    )
    columns = [row["attname"] for row in rows]
    new = {
        "session_id": "'sesn_00' || lpad(n::text, 24, '0')",
        "organisation": f"case when n % 10 = 0 then '{DEFAULT_ORGANISATION}' else 'org_' || n % "
        f"{_OTHER_ORGANISATIONS} end",
        "event_id": "left(t.event_id, 8) || substr(md5(n::text || t.event_id), 1, 23)",
        "input_event_id": "left(t.input_event_id, 8) || substr(md5(n::text || t.input_event_id), 1, 23)",
        "created_at": f"t.created_at - interval '{_DAYS} days' * (1 - n / $4::float8)",
        "updated_at": f"t.updated_at - interval '{_DAYS} days' * (1 - n / $4::float8)",
    }
    if table == "sessions":
        new["id"] = new["session_id"]
    key = "id" if table == "sessions" else "session_id"
    given = ", ".join(new.get(column, f"t.{column}") for column in columns)
    order = ", ".join(["n", *(f"t.{column}" for column in ("seq", "idx", "position") if column in columns)])
    return (
        f"insert into {table} ({', '.join(columns)}) select {given} from generate_series($2::bigint, $3::bigint) n,"
        f" (select * from {table} where {key} = $1) t where $4::bigint > 0 order by {order}"
    )


async def _copy(database_url: str, statements: list[str], chunks: Iterator[int], template: str, sessions: int) -> None:
    connection = await asyncpg.connect(database_url, command_timeout=600)
    try:
        await connection.execute("set synchronous_commit = off")
        for start in chunks:
            last = min(start + _CHUNK, sessions) - 1
            for statement in statements:
                await connection.execute(statement, template, start, last, sessions)
    finally:
        await connection.close()


async def _vacuum_and_checkpoint(database_url: str) -> None:
    """Vacuums and checkpoints, as autovacuum and the checkpointer would have done over the months."""

    async def vacuum(table: str) -> None:
        connection = await asyncpg.connect(database_url, command_timeout=600)
        try:
            await connection.execute(f"vacuum (analyze) {table}")
        finally:
            await connection.close()

    async with asyncio.TaskGroup() as group:
        for table in _TABLES:
            group.create_task(vacuum(table))
    connection = await asyncpg.connect(database_url, command_timeout=600)
    try:
        await connection.execute("checkpoint")
    finally:
        await connection.close()
