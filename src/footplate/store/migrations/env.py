"""Alembic's entry: opens one connection, holds a lock so that two migrating processes take turns, runs what is new."""

import asyncio
from uuid import uuid4

from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from footplate.store.database import connect

_LOCK = 7_036_874_417  # any number, as long as it never changes


def _run(connection: Connection) -> None:
    connection.execute(text(f"select pg_advisory_xact_lock({_LOCK})"))
    context.configure(connection=connection, transaction_per_migration=False)
    with context.begin_transaction():
        context.run_migrations()


async def _main() -> None:
    # asyncpg parses the URL, as everywhere else: SQLAlchemy does not know `sslmode`.
    dsn: str = context.config.attributes["dsn"]
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=lambda: connect(dsn),
        poolclass=NullPool,
        # Behind a pooler, the statements stay on a connection to the server that others use later.
        connect_args={"prepared_statement_cache_size": 0, "prepared_statement_name_func": lambda: f"migrate_{uuid4()}"},
    )
    async with engine.begin() as connection:
        await connection.run_sync(_run)
    await engine.dispose()


asyncio.run(_main())
