"""Removes the data of a deleted session from Redis: its entries in the live stream, its open preview (the text so far
of an unfinished response), and the streams of its terminal.
"""

from typing import Final, cast

from redis.asyncio import Redis

from footplate.stream import redis_connections, redis_keys

_PAGE: Final = 500


class SessionCleaner:
    def __init__(self, url: str) -> None:
        self._redis: Redis = redis_connections.create_command_client(url)

    async def aclose(self) -> None:
        await self._redis.aclose()

    async def delete_session_data(self, organisation: str, session_id: str) -> None:
        """Removes the session's data. This is needed because a stream is trimmed by length, not by age: on an idle
        system the entries would stay forever. Readers before or after the removed entries are not affected.
        """
        await self._redis.delete(
            redis_keys.open_preview_key(organisation, session_id),
            redis_keys.terminal_output_key(organisation, session_id),
            redis_keys.terminal_input_key(organisation, session_id),
        )
        stream = redis_keys.stream_key(redis_keys.shard_of(session_id))
        start = b"-"
        while page := await self._redis.xrange(stream, min=start, count=_PAGE):
            items = cast("list[tuple[bytes, dict[bytes, bytes]]]", page)
            if found := [number for number, fields in items if fields.get(b"s") == session_id.encode()]:
                await self._redis.xdel(stream, *found)
            start = b"(" + items[-1][0]
