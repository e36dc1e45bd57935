"""Alembic's entry: opens one connection, holds a lock so that two migrating processes take turns, runs what is new.

It refuses what would break processes that run (`compatibility.py`), unless it is forced.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any
from uuid import uuid4

from alembic import context  # pyrefly: ignore[implicit-reexport]  # its public name
from alembic.runtime.migration import MigrationContext, MigrationInfo
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from footplate.store.database import connect
from footplate.store.migrations import compatibility

_LOCK = 7_036_874_417  # any number, as long as it never changes


def _run(connection: Connection) -> None:
    connection.execute(text(f"select pg_advisory_xact_lock({_LOCK})"))
    context.configure(connection=connection, transaction_per_migration=False, on_version_apply=_record_needed_code)
    current = context.get_context().get_current_revision()
    if current is not None and not context.config.attributes.get("force"):
        pending = [*context.script.iterate_revisions(context.get_revision_argument(), current)]
        if needed := compatibility.find_needed_code(pending):
            compatibility.refuse_while_older_code_runs(connection, needed)
    with context.begin_transaction():
        context.run_migrations()


def _record_needed_code(
    ctx: MigrationContext, step: MigrationInfo, heads: Collection[Any], run_args: Mapping[str, Any]
) -> None:
    """Records what the migration needs, so that older code does not start from now on."""
    del heads, run_args
    script = step.up_revision
    if script is not None and (needed := compatibility.find_needed_code([script])) and ctx.connection is not None:
        statement = text("insert into schema_requirements (revision, needs_code) values (:revision, :needs_code)")
        ctx.connection.execute(statement, {"revision": script.revision, "needs_code": needed})


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
