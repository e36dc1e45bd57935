"""With the sweep paused, audit entries are not sealed, and verification reports no fault."""

import asyncio
from datetime import timedelta
from typing import Any, Final

import asyncpg

from bench.support.clients import raw_client
from bench.support.cluster import Cluster, open_cluster
from footplate.stack.temporal_connection import connect_temporal

_WAIT: Final = 15.0
_SETTINGS: Final = {"FOOTPLATE_SWEEP_INTERVAL": "1"}


async def attack() -> str | None:
    async with open_cluster(environment=_SETTINGS) as cluster, raw_client(cluster) as http:
        # The worst case is an attacker who can reach Temporal.
        client = await connect_temporal(cluster.settings.temporal_address)
        await client.get_schedule_handle(f"sweep/{cluster.task_queue}").pause(note="by the attacker")
        await asyncio.sleep(1)
        await _add_old_entry(cluster)
        checked: dict[str, Any] = {}
        for _ in range(int(_WAIT)):
            await asyncio.sleep(1)
            checked = (await http.get("/v1/audit/verify")).json()
            if checked["faults"] or not checked["unsealed"]:
                return None
    return f"{checked['unsealed']} audit entry was not sealed for longer than a minute, and verification found no fault"


async def _add_old_entry(cluster: Cluster) -> None:
    """Adds an entry with a creation time in the past."""
    connection = await asyncpg.connect(cluster.settings.database_url)
    try:
        await connection.execute(
            "insert into audit (id, organisation, kind, content_hash, created_at) "
            "values ('audit_attack', 'default', 'policy', '', now() - $1::interval)",
            timedelta(minutes=2),
        )
    finally:
        await connection.close()
