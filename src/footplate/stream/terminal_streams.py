"""The two Redis streams of a session's terminal: output from its worker to the API processes, and keys back.

Every entry names the program that it belongs to, by the id of a terminal. Keys that were meant for a program that has
ended are dropped, never typed into the next one. The output of the last programs stays for people who return.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, cast

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError
from redis.typing import EncodableT, FieldT

from footplate.domain.errors import Unavailable
from footplate.domain.ports.terminals import (
    FrameKind,
    TerminalChannel,
    TerminalFrame,
    TerminalInput,
    TerminalSize,
)
from footplate.stream import redis_connections, redis_keys

log = structlog.get_logger(__name__)

SCROLLBACK_BYTES: Final = 512 * 1024
"""Bytes of output of a session that stay in Redis."""
_MAX_ENTRY_BYTES: Final = 16 * 1024
_ENTRY_COST: Final = 64
"""Bytes that an entry counts in addition to its data."""
_MAX_INPUTS: Final = 1000
_INPUT_PAGE: Final = 50
"""How many entries of the input stream the worker holds at most twice, while the program does not read its input."""
_INPUT_SECONDS: Final = 60
"""Keys may be passwords, so they do not stay in Redis if the worker is lost."""
_PAGE: Final = 500
_SCROLLBACK_SECONDS: Final = 24 * 3600
_BYTES_PER_SECOND: Final = 8 << 20
"""A program that prints without end must not occupy Redis."""
_PAUSE_SECONDS: Final = 1.0
_Entry = tuple[bytes, dict[bytes, bytes]]


class RedisTerminalChannels:
    """Opens the worker's ends of the streams."""

    def __init__(self, url: str) -> None:
        self._commands = redis_connections.create_command_client(url)
        self._reader = redis_connections.create_reader_client(url)

    async def aclose(self) -> None:
        await self._commands.aclose()
        await self._reader.aclose()

    async def open_channel(self, organisation: str, session_id: str, terminal_id: str) -> "RedisTerminalChannel":
        channel = RedisTerminalChannel(
            self._commands,
            self._reader,
            redis_keys.terminal_output_key(organisation, session_id),
            redis_keys.terminal_input_key(organisation, session_id),
            terminal_id,
        )
        await channel.open()
        return channel


class RedisTerminalChannel(TerminalChannel):
    def __init__(self, commands: Redis, reader: Redis, output_key: str, input_key: str, terminal_id: str) -> None:
        self._commands = commands
        self._reader = reader
        self._output_key = output_key
        self._input_key = input_key
        self._terminal_id = terminal_id
        self._entries: deque[tuple[bytes, int]] = deque()
        """The id and the cost of each entry of the output stream."""
        self._cost = 0
        self._inputs: asyncio.Queue[Sequence[TerminalInput]] = asyncio.Queue(maxsize=1)
        self._reading: asyncio.Task[None] | None = None
        self._is_closed = False
        self.size = TerminalSize()

    async def open(self) -> None:
        """Drops old keys, reads what the stream still has, and announces the program."""
        try:
            await self._commands.delete(self._input_key)
            async for number, fields in _read_entries(self._commands, self._output_key):
                self._count(number, fields)
                self.size = _load_frame(fields).size or self.size
        except (RedisError, OSError) as error:
            log.warning("the terminal's stream could not be read", action="terminal.unread", reason=repr(error))
        await self._announce()
        # In a task of its own, because redis-py can lose a cancellation of its caller.
        self._reading = asyncio.create_task(self._read_inputs(), name="terminal input")

    async def publish(self, data: bytes) -> None:
        for start in range(0, len(data), _MAX_ENTRY_BYTES):
            piece = data[start : start + _MAX_ENTRY_BYTES]
            await self._add({"k": "output", "d": piece, **_dump_size(self.size)})
            await asyncio.sleep(len(piece) / _BYTES_PER_SECOND)

    async def resize(self, size: TerminalSize) -> None:
        self.size = size
        await self._add({"k": "resized", **_dump_size(size)})

    async def receive(self) -> Sequence[TerminalInput]:
        return await self._inputs.get()

    async def _read_inputs(self) -> None:
        position = b"0-0"
        while not self._is_closed:
            try:
                found = await self._reader.xread(
                    {self._input_key: position}, count=_INPUT_PAGE, block=redis_connections.BLOCK_MILLISECONDS
                )
                is_known = bool(found) or await self._reader.exists(self._output_key)
            except (RedisError, OSError) as error:
                log.warning("keys cannot be received; will retry", action="terminal.no_keys", reason=repr(error))
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            if not is_known:  # Redis has restarted without its data
                await self._announce()
            if entries := _entries_of(found):
                position = entries[-1][0]
                own = [fields for _, fields in entries if fields.get(b"t") == self._terminal_id.encode()]
                await self._inputs.put([TerminalInput(fields.get(b"d", b""), _load_size(fields)) for fields in own])

    async def close(self, reason: str) -> None:
        self._is_closed = True
        if self._reading is not None:
            await redis_connections.cancel_tasks(self._reading)
        await self._add({"k": "closed", "d": reason.encode()})
        try:
            await self._commands.delete(self._input_key)
        except (RedisError, OSError) as error:
            log.warning("old keys could not be dropped", action="terminal.keys_not_dropped", reason=repr(error))

    async def _announce(self) -> None:
        await self._add({"k": "opened", **_dump_size(self.size)})

    async def _add(self, fields: Mapping[str, str | bytes | int]) -> None:
        await asyncio.shield(asyncio.create_task(self._add_entry(fields)))

    async def _add_entry(self, fields: Mapping[str, str | bytes | int]) -> None:
        entry: dict[FieldT, EncodableT] = {"t": self._terminal_id, **fields}
        oldest: bytes | None = None
        while self._cost > SCROLLBACK_BYTES and len(self._entries) > 1:
            self._cost -= self._entries.popleft()[1]
            oldest = self._entries[0][0]
        try:
            async with self._commands.pipeline(transaction=False) as pipeline:
                pipeline.xadd(self._output_key, entry, approximate=False, minid=oldest)
                pipeline.expire(self._output_key, _SCROLLBACK_SECONDS)
                number, _ = await pipeline.execute()
        except (RedisError, OSError) as error:
            log.warning("terminal output was not delivered", action="terminal.output_lost", reason=repr(error))
            return
        data = fields.get("d", b"")
        self._count(number, {b"d": data if isinstance(data, bytes) else b""})

    def _count(self, number: bytes, fields: Mapping[bytes, bytes]) -> None:
        cost = len(fields.get(b"d", b"")) + _ENTRY_COST
        self._entries.append((number, cost))
        self._cost += cost


class RedisTerminalViews:
    """The API's ends of the streams."""

    def __init__(self, url: str) -> None:
        self._commands = redis_connections.create_command_client(url)
        self._reader = redis_connections.create_reader_client(url)

    async def aclose(self) -> None:
        await self._commands.aclose()
        await self._reader.aclose()

    async def frames(self, organisation: str, session_id: str) -> AsyncIterator[TerminalFrame | None]:
        key = redis_keys.terminal_output_key(organisation, session_id)
        position: bytes = b"0-0"
        while True:
            try:
                found = await self._reader.xread(
                    {key: position}, count=_PAGE, block=redis_connections.BLOCK_MILLISECONDS
                )
            except (RedisError, OSError) as error:
                raise _unavailable() from error
            entries = _entries_of(found)
            for number, fields in entries:
                position = number
                yield _load_frame(fields)
            if not entries:
                yield None

    async def send(self, organisation: str, session_id: str, terminal_id: str, sent: TerminalInput) -> None:
        key = redis_keys.terminal_input_key(organisation, session_id)
        fields: dict[FieldT, EncodableT] = {"t": terminal_id}
        fields |= {"d": sent.keys} if sent.size is None else _dump_size(sent.size)
        try:
            async with self._commands.pipeline(transaction=False) as pipeline:
                pipeline.xadd(key, fields, maxlen=_MAX_INPUTS, approximate=True)
                pipeline.expire(key, _INPUT_SECONDS)
                await pipeline.execute()
        except (RedisError, OSError) as error:
            raise _unavailable() from error


def _unavailable() -> Unavailable:
    return Unavailable("The terminal cannot be reached, because Redis does not respond.", help_text="Try again later.")


async def _read_entries(redis: Redis, key: str) -> AsyncIterator[_Entry]:
    start = b"-"
    while page := cast("list[_Entry]", await redis.xrange(key, min=start, count=_PAGE)):
        for entry in page:
            yield entry
        start = b"(" + page[-1][0]


def _entries_of(found: object) -> list[_Entry]:
    """Returns the entries of a response to XREAD on one stream."""
    streams = cast("list[tuple[bytes, list[_Entry]]]", found or [])
    return [entry for _, entries in streams for entry in entries]


def _load_frame(fields: Mapping[bytes, bytes]) -> TerminalFrame:
    kind = cast("FrameKind", fields.get(b"k", b"output").decode())
    return TerminalFrame(kind, fields.get(b"t", b"").decode(), fields.get(b"d", b""), _load_size(fields))


def _dump_size(size: TerminalSize) -> dict[str, int]:
    return {"c": size.columns, "r": size.rows}


def _load_size(fields: Mapping[bytes, bytes]) -> TerminalSize | None:
    return TerminalSize(int(fields[b"c"]), int(fields[b"r"])) if b"c" in fields else None
