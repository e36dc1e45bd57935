"""Generates malformed bytes from a random generator: cursors, request heads and WebSocket frames.

Each is a `Case`: the bytes to send, and the allowed responses. Most are a small change of something valid, because that
gets furthest into a parser.
"""

import base64
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote_from_bytes

from bench.support.fuzz.target_api import Seat

_TEXT: Final = 1
_BINARY: Final = 2
_CLOSE: Final = 8
_PING: Final = 9
_MAX_MESSAGE_BYTES: Final = 64 * 1024
_HOSTILE_VALUES: Final = (
    *(b"", b" ", b"\t", b"-1", b"+1", b"00", b"1.", b".1", b"1.2", b"1.2.3.4", b"1e9", b"0x10", b"NaN", b"null", b"[]"),
    *(b"9" * 19, b"9" * 20, b"9" * 5000, b"1." + b"a" * 101 + b".1", b"1.sevt_1.-1", b"1.sevt_1.99999999999"),
    *("\u0661\u0662".encode(), "\u2028".encode(), b"\xff\xfe", b"\x80", b"%00", b"1%00", b"'; drop table events --"),
    *(b"../../etc/passwd", b"${7*7}", b"<script>", b"{", b'"', b"\\", b"1,2", b"1;2", b"1 2", b"undefined", b"true"),
)


@dataclass(frozen=True, slots=True)
class MalformedCase:
    kind: str
    sent: bytes
    frames: bytes = b""
    """Sent after the server has accepted the WebSocket."""
    statuses: frozenset[int] = frozenset(range(200, 500))
    """Allowed statuses. No response at all is allowed too, for bytes that are not a request."""
    must_respond: bool = False
    must_close: bool = False
    """Whether the server must close the connection with a reason."""
    codes: frozenset[int] = frozenset()
    """Allowed codes when it closes a WebSocket."""


@dataclass(frozen=True, slots=True)
class RequestParts:
    """The parts of valid requests."""

    host: str
    key: str
    seats: Sequence[Seat]

    def head(self, method: str, path: bytes, *lines: bytes, key: bool = True) -> bytes:
        own = [f"host: {self.host}".encode()]
        if key:
            own.append(f"authorization: Bearer {self.key}".encode())
        return b"\r\n".join([method.encode() + b" " + path + b" HTTP/1.1", *own, *lines, b"", b""])


def make_cursor(chance: random.Random, wire: RequestParts) -> MalformedCase:
    """Makes a cursor that no frame had, in the header or in the query; sometimes a valid one."""
    path = f"/v1/sessions/{chance.choice(wire.seats).session_id}/events/stream".encode()
    value = _mutated(chance, _make_position(chance))
    if chance.random() < 0.5:
        sent = wire.head("GET", path, b"last-event-id: " + _printable(value))
    else:
        name = chance.choice([b"after", b"after", b"after[]", b"event_deltas[]", b"event_deltas"])
        sent = wire.head("GET", path + b"?" + name + b"=" + quote_from_bytes(value).encode())
    return MalformedCase("cursor", sent, statuses=frozenset({200, 400}), must_respond=True)


def make_head(chance: random.Random, wire: RequestParts) -> MalformedCase:
    """Makes a request with malformed headers, length, method or path."""
    return chance.choice(_HEADS)(chance, wire)


def make_frame(chance: random.Random, wire: RequestParts) -> MalformedCase:
    """Makes a malformed WebSocket handshake, or a WebSocket that receives forbidden frames."""
    return chance.choice(_FRAMES)(chance, wire)


def _make_position(chance: random.Random) -> bytes:
    seq = chance.choice([0, 1, 7, 2**31, 2**53, 2**63 - 1, 2**63, 2**64])
    if chance.random() < 0.5:
        return str(seq).encode()
    return f"{seq}.sevt_{chance.getrandbits(60):x}.{chance.choice([0, 5, 10**9, 10**10])}".encode()


def _mutated(chance: random.Random, value: bytes) -> bytes:
    if chance.random() < 0.3:
        return chance.choice(_HOSTILE_VALUES)
    changed = bytearray(value)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(changed) + 1)
        match chance.randrange(4):
            case 0:
                changed[place:place] = chance.choice(_HOSTILE_VALUES)[:200]
            case 1:
                changed[place:place] = chance.randbytes(chance.randint(1, 4))
            case 2:
                del changed[place : place + chance.randint(1, 3)]
            case _:
                changed[place:place] = changed[:place]
    return bytes(changed)


def _printable(value: bytes) -> bytes:
    """Removes control characters, which the HTTP parser refuses before anything else reads them."""
    return bytes(byte for byte in value if byte >= 0x20 and byte != 0x7F)


def _header_value(chance: random.Random, wire: RequestParts) -> MalformedCase:
    """Makes a request with a known header and a meaningless value."""
    names = (
        *(b"authorization", b"x-api-key", b"idempotency-key", b"x-stainless-retry-count", b"content-encoding"),
        *(b"content-type", b"accept", b"last-event-id", b"anthropic-version", b"anthropic-beta", b"host", b"expect"),
        *(b"connection", b"upgrade", b"range", b"if-none-match", b"x-forwarded-for", b"cookie", b"traceparent"),
    )
    lines = [
        chance.choice(names) + b": " + _mutated(chance, chance.choice(_HOSTILE_VALUES))
        for _ in range(chance.randint(1, 3))
    ]
    return MalformedCase("header", _request(chance, wire, lines, key=chance.random() < 0.7))


def _header_syntax(chance: random.Random, wire: RequestParts) -> MalformedCase:
    lines = [
        b"no colon here",
        b": no name",
        b"sp ace: x",
        b"\xc3\xa9: x",
        b"x\x00y: z",
        b"x: \x00",
        b"x: a\rb",
        b" folded: x",
        b"x" * 70_000 + b": y",
        b"x: " + b"y" * 200_000,
        b"\r\n".join(b"h%d: v" % number for number in range(3000)),
        chance.randbytes(chance.randint(1, 200)),
    ]
    return MalformedCase("header", _request(chance, wire, [chance.choice(lines)], key=True))


def _length(chance: random.Random, wire: RequestParts) -> MalformedCase:
    """Makes a body whose length or encoding differs from its headers."""
    lines = [
        [b"content-length: -1"],
        [b"content-length: 1", b"content-length: 2"],
        [b"content-length: abc"],
        [b"content-length: 99999999999999999999999"],
        [b"content-length: 40000000"],
        [b"content-length: 50"],
        [b"transfer-encoding: chunked"],
        [b"transfer-encoding: gzip, chunked"],
        [b"transfer-encoding: chunked", b"content-length: 5"],
        [b"transfer-encoding: banana"],
    ]
    bodies = [
        b"",
        b"{}",
        b'{"name":',
        b"5\r\n{}",
        b"zz\r\n{}\r\n0\r\n\r\n",
        b"ffffffffffffffff1\r\n",
        chance.randbytes(30),
    ]
    path = chance.choice([b"/v1/environments", b"/v1/agents", b"/v1/sessions"])
    return MalformedCase("header", wire.head("POST", path, *chance.choice(lines)) + chance.choice(bodies))


def _path(chance: random.Random, wire: RequestParts) -> MalformedCase:
    session_id = chance.choice(wire.seats).session_id.encode()
    paths = [
        b"/v1/sessions/" + quote_from_bytes(_mutated(chance, session_id)).encode(),
        b"/v1/sessions/" + quote_from_bytes(_mutated(chance, session_id)).encode() + b"/events/stream",
        b"/v1/agents?page=" + quote_from_bytes(_mutated(chance, base64.b64encode(b'["agents","desc"]'))).encode(),
        b"/v1/sessions/" + session_id + b"/events?limit=" + quote_from_bytes(chance.choice(_HOSTILE_VALUES)).encode(),
        b"/v1/agents?" + quote_from_bytes(chance.choice(_HOSTILE_VALUES)).encode() + b"=1",
        b"/v1/agents?created_at[gte]=" + quote_from_bytes(_mutated(chance, b"2026-11-15T00:00:00Z")).encode(),
        b"/%",
        b"/%zz",
        b"/%00",
        b"/v1/agents/%ff",
        b"//v1//agents",
        b"/../v1/agents",
        b"/v1/agents/",
        b"*",
        b"http://other/v1/agents",
        b"/" + b"a" * 100_000,
        b"/v1/agents/\xff\xfe",
        b"v1/agents",
        b"",
    ]
    method = chance.choice(
        ["GET", "GET", "DELETE", "PUT", "HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "GE T", "\x00"]
    )
    return MalformedCase("header", wire.head(method, chance.choice(paths)))


def _noise(chance: random.Random, wire: RequestParts) -> MalformedCase:
    """Makes bytes that are not HTTP, or only the beginning of a request."""
    request = _request(chance, wire, [], key=True)
    sent = chance.choice(
        [
            chance.randbytes(chance.randint(1, 500)),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + chance.randbytes(100),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            request[: chance.randrange(1, len(request))],
            request.replace(b"HTTP/1.1", chance.choice([b"HTTP/9.9", b"HTTP/1.0", b"HTTP", b"ICY/1.1"])),
            request.replace(b"\r\n", b"\n"),
        ]
    )
    return MalformedCase("header", sent)


def _request(chance: random.Random, wire: RequestParts, lines: Sequence[bytes], *, key: bool) -> bytes:
    session_id = chance.choice(wire.seats).session_id.encode()
    if chance.random() < 0.3:
        # Refused whatever the headers are, so nothing is created.
        body = b'{"name":""}'
        return wire.head("POST", b"/v1/environments", b"content-length: 11", *lines, key=key) + body
    paths = [b"/v1/agents", b"/v1/sessions/" + session_id, b"/v1/sessions/" + session_id + b"/events/stream", b"/livez"]
    return wire.head("GET", chance.choice(paths), *lines, key=key)


_HEADS: Final[tuple[Callable[[random.Random, RequestParts], MalformedCase], ...]] = (
    _header_value,
    _header_value,
    _header_syntax,
    _length,
    _path,
    _path,
    _noise,
)


def _handshake(chance: random.Random, wire: RequestParts, *lines: bytes, key: bool = True, query: bytes = b"") -> bytes:
    path = f"/v1/sessions/{chance.choice(wire.seats).session_id}/ws".encode() + query
    nonce = b"sec-websocket-key: " + base64.b64encode(chance.randbytes(16))
    usual = (b"upgrade: websocket", b"connection: upgrade", b"sec-websocket-version: 13", nonce)
    replaced = {line.split(b":")[0] for line in lines}
    return wire.head("GET", path, *(line for line in usual if line.split(b":")[0] not in replaced), *lines, key=key)


def _bad_handshake(chance: random.Random, wire: RequestParts) -> MalformedCase:
    value = _printable(_mutated(chance, chance.choice(_HOSTILE_VALUES)))
    lines = [
        b"sec-websocket-key: " + value,
        b"sec-websocket-version: " + value,
        b"sec-websocket-version: 99",
        b"sec-websocket-extensions: " + value,
        b"sec-websocket-extensions: permessage-deflate; " + value,
        b"sec-websocket-protocol: " + value,
        b"sec-websocket-protocol: footplate.v1, footplate.key." + value,
        b"connection: " + value,
        b"upgrade: " + value,
        b"last-event-id: " + value,
        b"origin: " + value,
        b"content-length: 5",
    ]
    query = chance.choice([b"", b"", b"?after=" + quote_from_bytes(value).encode(), b"?x=1", b"?after=1&after=2"])
    statuses = frozenset({101, *range(200, 500)})
    sent = _handshake(chance, wire, chance.choice(lines), key=chance.random() < 0.7, query=query)
    return MalformedCase("socket", sent, statuses=statuses)


def _message(chance: random.Random, wire: RequestParts) -> MalformedCase:
    """Makes a valid data frame, which clients must not send here."""
    payloads = [
        b"",
        b"{}",
        b"[]",
        b'{"type":"auth"}',
        b"null",
        b"\x00",
        b"x" * 60_000,
        chance.choice(_HOSTILE_VALUES)[:1000],
    ]
    payload = chance.choice(payloads).decode("utf-8", "ignore").encode()
    opcode = chance.choice([_TEXT, _BINARY])
    cut = chance.randrange(len(payload) + 1)
    frames = chance.choice(
        [
            _frame(chance, opcode, payload),
            _frame(chance, opcode, payload[:cut], first=0) + _frame(chance, 0, payload[cut:]),
            _frame(chance, _PING, b"hello") + _frame(chance, opcode, payload),
        ]
    )
    return _make_socket_case(chance, wire, frames, {1003})


def _violation(chance: random.Random, wire: RequestParts) -> MalformedCase:
    """Makes a frame that the protocol does not allow."""
    frames, codes = chance.choice(
        [
            (_frame(chance, chance.choice([3, 4, 5, 6, 7, 11, 12, 13, 14, 15]), b"x"), {1002}),
            (_frame(chance, _TEXT, b"x", first=0x80 | chance.choice([0x10, 0x20, 0x40, 0x70])), {1002}),
            (_frame(chance, _TEXT, b"unmasked", masked=False), {1002}),
            (_frame(chance, _PING, b"x" * 126), {1002}),
            (_frame(chance, _PING, b"x", first=0), {1002}),
            (_frame(chance, 0, b"goes on from nothing"), {1002}),
            (_frame(chance, _TEXT, b"a", first=0) + _frame(chance, _TEXT, b"b"), {1002}),
            (_frame(chance, _CLOSE, b"x"), {1002}),
            (_frame(chance, _CLOSE, struct.pack("!H", chance.choice([0, 999, 1004, 1005, 1006, 1015, 2999]))), {1002}),
            (_frame(chance, _CLOSE, struct.pack("!H", 1000) + b"\xff\xfe"), {1007}),
            (_frame(chance, _TEXT, b"\xff\xfe\x80"), {1007}),
            (_frame(chance, _TEXT, b"x", announced=chance.choice([_MAX_MESSAGE_BYTES + 1, 2**31, 2**62])), {1009}),
            (_frame(chance, _BINARY, b"x", announced=2**63), {1002, 1009}),
            (_frame(chance, _BINARY, b"x" * 40_000, first=0) + _frame(chance, 0, b"x" * 40_000), {1009}),
        ]
    )
    return _make_socket_case(chance, wire, frames, codes)


def _unfinished(chance: random.Random, wire: RequestParts) -> MalformedCase:
    """Makes frames that never end or are ambiguous. Then the client disconnects."""
    whole = _frame(chance, _TEXT, b"x" * 300)
    frames = chance.choice(
        [
            whole[: chance.randrange(1, len(whole))],
            _frame(chance, _TEXT, b"x", first=0),
            _frame(chance, _PING, b"") * chance.randint(1, 200),
            chance.randbytes(chance.randint(1, 300)),
            _frame(chance, _CLOSE, struct.pack("!H", 1000)) + chance.randbytes(10),
            b"GET /v1/agents HTTP/1.1\r\n\r\n",
        ]
    )
    return MalformedCase("socket", _handshake(chance, wire), frames, frozenset({101}), must_respond=True)


def _make_socket_case(chance: random.Random, wire: RequestParts, frames: bytes, codes: set[int]) -> MalformedCase:
    query = chance.choice([b"", b"?after=0", b"?event_deltas[]=agent.message"])
    sent = _handshake(chance, wire, query=query)
    return MalformedCase(
        "socket", sent, frames, frozenset({101}), must_respond=True, must_close=True, codes=frozenset(codes)
    )


_FRAMES: Final[tuple[Callable[[random.Random, RequestParts], MalformedCase], ...]] = (
    _bad_handshake,
    _message,
    _violation,
    _unfinished,
)


def _frame(
    chance: random.Random,
    opcode: int,
    payload: bytes,
    *,
    first: int = 0x80,
    masked: bool = True,
    announced: int | None = None,
) -> bytes:
    """Encodes a frame. `first`: the bits beside the opcode; `announced`: a wrong length."""
    length = len(payload) if announced is None else announced
    bit = 0x80 if masked else 0
    if length < 126:
        size = bytes([bit | length])
    elif length < 2**16:
        size = bytes([bit | 126]) + struct.pack("!H", length)
    else:
        size = bytes([bit | 127]) + struct.pack("!Q", length)
    if not masked:
        return bytes([first | opcode]) + size + payload
    mask = chance.randbytes(4)
    hidden = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
    return bytes([first | opcode]) + size + mask + hidden
