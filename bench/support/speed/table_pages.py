"""Counts the pages that PostgreSQL reads of each table, including its indexes."""

import asyncio
from collections.abc import Awaitable
from typing import Final

import asyncpg

_REPORT_SECONDS: Final = 1.5
"""An idle PostgreSQL connection reports its statistics within a second."""
_PAGES: Final = """
select regexp_replace(relname, '_[0-9]+$', '') as name,
       sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)
           + coalesce(toast_blks_read + toast_blks_hit + tidx_blks_read + tidx_blks_hit, 0))::bigint as pages
from pg_statio_user_tables group by 1
"""


async def pages_read(database: asyncpg.Connection, work: Awaitable[None]) -> dict[str, int]:
    """Awaits `work` and returns the pages read meanwhile, by table. Pages in memory count as well."""
    before = await _pages(database)
    await work
    after = await _pages(database)
    return {name: count - before.get(name, 0) for name, count in sorted(after.items()) if count > before.get(name, 0)}


async def _pages(database: asyncpg.Connection) -> dict[str, int]:
    await asyncio.sleep(_REPORT_SECONDS)
    return {row["name"]: row["pages"] for row in await database.fetch(_PAGES)}
