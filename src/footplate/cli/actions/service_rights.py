"""Checks what a process may do in its services, with the commands that it would run."""

from typing import Final

import asyncpg
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from footplate.domain import ids
from footplate.store.object_store import Objects
from footplate.stream import redis_keys

_KEY: Final = "footplate:doctor"
_KEY_SECONDS: Final = 10
_REDIS_COMMANDS: Final = (
    ("XADD", _KEY, "MAXLEN", "~", "1", "*", "field", "value"),
    ("EXPIRE", _KEY, str(_KEY_SECONDS)),
    ("XRANGE", _KEY, "-", "+"),
    ("XREVRANGE", _KEY, "+", "-"),
    ("XREAD", "STREAMS", _KEY, "0"),
    ("XDEL", _KEY, "0-1"),
    ("DEL", _KEY),
    ("SET", _KEY, "value", "EX", str(_KEY_SECONDS)),
    ("GET", _KEY),
    ("DEL", _KEY),
    ("ZADD", _KEY, "1", "member"),
    ("ZREMRANGEBYSCORE", _KEY, "-inf", "0"),
    ("ZREM", _KEY, "other"),
    ("ZCARD", _KEY),
    ("ZCOUNT", _KEY, "0", "1"),
    ("DEL", _KEY),
    ("PUBLISH", redis_keys.NUDGE_CHANNEL, ""),
)
_MISSING_TABLE_RIGHTS: Final = """
    SELECT c.relname, r.name
    FROM pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) WITH ORDINALITY AS r(name, position)
    WHERE c.relnamespace = current_schema()::regnamespace
      AND c.relkind IN ('r', 'p')
      AND NOT has_table_privilege(c.oid, r.name)
    ORDER BY c.relname, r.position
"""


async def find_missing_table_rights(connection: "asyncpg.Connection[asyncpg.Record]") -> list[str]:
    """Returns the rights that the user of the connection does not have on tables, such as `INSERT on sessions`."""
    return [f"{right} on {table}" for table, right in await connection.fetch(_MISSING_TABLE_RIGHTS)]


async def find_refused_redis_commands(client: Redis) -> list[str]:
    """Returns the names of the commands that the user of the client may not run."""
    refused: dict[str, None] = {}
    for command in _REDIS_COMMANDS:
        try:
            await client.execute_command(*command)
        except NoPermissionError:
            refused[command[0]] = None
    try:
        async with client.pubsub() as pubsub:
            await pubsub.subscribe(redis_keys.NUDGE_CHANNEL)
            await pubsub.parse_response(timeout=_KEY_SECONDS)
    except NoPermissionError:
        refused["SUBSCRIBE"] = None
    return list(refused)


async def find_object_store_fault(objects: Objects) -> str:
    """Writes, reads and deletes an object. Returns what the store does wrong, or nothing. Raises `Unavailable` if it
    refuses one of these.
    """
    key = f"doctor/{ids.new_id('check')}"
    try:
        await objects.create(key, b"first")
        if await objects.create(key, b"second"):
            return "it replaces an object that exists although the request forbids it (If-None-Match)"
        content = b"".join([chunk async for chunk in objects.read_chunks(key)])
        return "" if content == b"first" else "an object does not have the content that was written"
    finally:
        await objects.delete_object(key)
