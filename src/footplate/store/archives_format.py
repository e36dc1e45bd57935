"""What an archive looks like, as pure functions: blocks of JSON lines, and an index at the end that finds them.

Each block is a gzip member of its own, so that a page is read without unpacking what is before it, an archive's blocks
go into the next one as they are, and the whole object is still one gzip file that `zcat` prints. The first member has
one line that says what it is. Lines of events have a `seq`, lines of entries an `idx`, and the last line is the index.
"""

import gzip
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final, Literal

import orjson

VERSION: Final = 1
BLOCK_BYTES: Final = 256 * 1024
"""How long the lines of a block are in all, before they are packed; a single line may be longer."""

Kind = Literal["events", "entries"]
Line = dict[str, Any]


class Damaged(Exception):
    """The bytes are not those that were written."""


@dataclass(frozen=True, slots=True)
class Block:
    kind: Kind
    first: int
    """The `seq` or `idx` of the first line; lines have no gaps."""
    last: int
    at: int
    size: int
    sha256: str


class Layout:
    """Lays pieces one behind the other and remembers where they are."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.size = 0

    def head(self, organisation: str, session_id: str) -> bytes:
        about = {
            "footplate": "session archive",
            "version": VERSION,
            "organisation": organisation,
            "session": session_id,
        }
        return self._lay(pack([orjson.dumps(about)]))

    def block(self, kind: Kind, first: int, last: int, packed: bytes) -> bytes:
        self.blocks.append(Block(kind, first, last, self.size, len(packed), digest(packed).hex()))
        return self._lay(packed)

    def index(self) -> bytes:
        return self._lay(
            pack([orjson.dumps({"version": VERSION, "blocks": [astuple(block) for block in self.blocks]})])
        )

    def _lay(self, piece: bytes) -> bytes:
        self.size += len(piece)
        return piece


def split(lines: Sequence[str]) -> Iterator[list[bytes]]:
    """Lines in groups that each fill a block."""
    group: list[bytes] = []
    size = 0
    for line in lines:
        encoded = line.replace("\n", " ").encode()  # between values only: inside a text JSON has no bare one
        if group and size + len(encoded) > BLOCK_BYTES:
            yield group
            group, size = [], 0
        group.append(encoded)
        size += len(encoded)
    if group:
        yield group


def pack(lines: Sequence[bytes]) -> bytes:
    return gzip.compress(b"".join(line + b"\n" for line in lines), compresslevel=6, mtime=0)


def unpack(packed: bytes, sha256: bytes) -> list[Line]:
    if digest(packed) != sha256:
        raise Damaged
    return [orjson.loads(line) for line in gzip.decompress(packed).split(b"\n")[:-1]]


def read_index(packed: bytes, sha256: bytes) -> list[Block]:
    (index,) = unpack(packed, sha256)
    return [Block(*item) for item in index["blocks"]]


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
