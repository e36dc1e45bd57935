"""Stores which caches of projects exist."""

from collections.abc import Sequence
from typing import Final

from footplate.domain.projects.setup import CacheEntry, CacheIndex, CacheKey
from footplate.store.database import SQL, Database

_INSERTED: Final = "INSERT 0 1"


class ProjectCaches(CacheIndex):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_cache(self, key: CacheKey) -> CacheEntry | None:
        row = await self._database.fetchrow("find_cache", key.organisation, key.project_id, key.digest)
        return None if row is None else CacheEntry(key, row["sha256"], row["size"])

    async def add_cache(self, entry: CacheEntry, max_project_bytes: int) -> Sequence[CacheEntry]:
        organisation, project_id, digest = entry.key.organisation, entry.key.project_id, entry.key.digest
        async with self._database.transaction() as connection:
            status = await connection.execute(
                SQL["add_cache"], organisation, project_id, digest, entry.sha256, entry.size
            )
            if status != _INSERTED:
                rows = await connection.fetch(SQL["caches_of_project"], organisation, project_id)
                # Equal content has one object, which must stay.
                return [] if (digest, entry.sha256) in {(row["digest"], row["sha256"]) for row in rows} else [entry]
            rows = await connection.fetch(SQL["evict_caches"], organisation, project_id, max_project_bytes)
        return [
            CacheEntry(CacheKey(organisation, project_id, row["digest"]), row["sha256"], row["size"]) for row in rows
        ]

    async def remove_cache(self, entry: CacheEntry) -> None:
        key = entry.key
        await self._database.fetch("remove_cache", key.organisation, key.project_id, key.digest, entry.sha256)
