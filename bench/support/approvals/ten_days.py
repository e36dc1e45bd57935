"""Lets ten days pass in a cluster whose sessions wait for a person."""

import asyncpg

from bench.support.cluster import Cluster


async def pass_ten_days(cluster: Cluster) -> None:
    """Stops every process, moves all timestamps back by ten days, and starts the processes again."""
    for number in range(len(cluster.workers)):
        await cluster.kill_worker(number)
    await cluster.kill_api(0)
    await _restart_servers(cluster)
    connection = await asyncpg.connect(cluster.settings.database_url)
    try:
        await connection.execute("set session_replication_role = 'replica'")
        columns = await connection.fetch(
            "select c.table_name as name, array_agg(c.column_name::text) as columns"
            " from information_schema.columns c"
            " join pg_class t on t.relname = c.table_name and t.relkind in ('r', 'p') and not t.relispartition"
            " where c.table_schema = 'public' and c.data_type = 'timestamp with time zone' group by 1"
        )
        for row in columns:
            moved = ", ".join(f"{column} = {column} - interval '10 days'" for column in row["columns"])
            await connection.execute(f"update {row['name']} set {moved}")
    finally:
        await connection.close()
    await cluster.restart_api(0)
    for number in range(len(cluster.workers)):
        await cluster.restart_worker(number)


async def _restart_servers(cluster: Cluster) -> None:
    stack = cluster.stack
    servers = [server for server in (stack.postgres, stack.redis, stack.temporal) if server is not None]
    for part in reversed(servers):
        await part.stop()
    for part in servers:
        await part.start()
