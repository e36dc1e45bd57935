"""Creates databases with the current schema on a stack's PostgreSQL, each as a copy of one migrated template."""

import asyncio
from typing import Final
from urllib.parse import urlsplit

import asyncpg

from footplate.stack import Stack
from footplate.store import schema_upgrade

_TEMPLATE: Final = "footplate_template"
_DRAFT: Final = "footplate_template_draft"
_one_at_a_time: Final = asyncio.Lock()
"""Ensures that the template is made once."""


def dsn(stack: Stack, name: str) -> str:
    return urlsplit(stack.settings.database_url)._replace(path=f"/{name}").geturl()


async def create_database(stack: Stack, name: str) -> str:
    """Creates a database with the current schema, and returns its DSN. The first one runs the migrations."""
    async with _one_at_a_time:
        if not await execute(stack, f"SELECT 1 FROM pg_database WHERE datname = '{_TEMPLATE}'"):
            # Renamed when it is complete, so that a killed run leaves no partial template.
            await execute(stack, f"DROP DATABASE IF EXISTS {_DRAFT} WITH (FORCE)")
            await execute(stack, f"CREATE DATABASE {_DRAFT}")
            await schema_upgrade.upgrade_schema(dsn(stack, _DRAFT))
            await execute(stack, f"ALTER DATABASE {_DRAFT} RENAME TO {_TEMPLATE}")
        await execute(stack, f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
    return dsn(stack, name)


async def drop_database(stack: Stack, name: str) -> None:
    await execute(stack, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


async def execute(stack: Stack, statement: str) -> object:
    """Runs one statement outside a transaction, and returns the first value of its result, if any."""
    connection = await asyncpg.connect(stack.settings.database_url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()
