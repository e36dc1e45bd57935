"""Encodes and decodes the format of session archives: blocks of JSON lines, followed by an index. This module does no
I/O.

Each block is a separate gzip member. A page can therefore be read without unpacking earlier blocks, and blocks can be
copied unchanged to a newer archive. The whole object is a valid gzip file that `zcat` can print.
"""

import gzip
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final, Literal

import orjson

VERSION: Final = 1
BLOCK_BYTES: Final = 256 * 1024
"""Maximum size of a block's lines before compression. A single line may be longer."""

BlockKind = Literal["events", "entries"]
ArchiveLine = dict[str, Any]


class ArchiveDamaged(Exception):
    """The bytes differ from those that were written."""


@dataclass(frozen=True, slots=True)
class Block:
    kind: BlockKind
    first: int
    """The `seq` or `idx` of the first line. Lines are numbered without gaps."""
    last: int
    at: int
    size: int
    sha256: str


class ArchiveEncoder:
    """Encodes the parts of an archive in order and records the offset of each block.

    The first gzip member has one line that describes the archive. Lines of events have a `seq`, lines of conversation
    entries an `idx`, and the last line is the index.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.size = 0

    def encode_header(self, organisation: str, session_id: str) -> bytes:
        header = {
            "footplate": "session archive",
            "version": VERSION,
            "organisation": organisation,
            "session": session_id,
        }
        return self._advance(pack_lines([orjson.dumps(header)]))

    def encode_block(self, kind: BlockKind, first: int, last: int, packed: bytes) -> bytes:
        self.blocks.append(Block(kind, first, last, self.size, len(packed), sha256_digest(packed).hex()))
        return self._advance(packed)

    def encode_index(self) -> bytes:
        return self._advance(
            pack_lines([orjson.dumps({"version": VERSION, "blocks": [astuple(block) for block in self.blocks]})])
        )

    def _advance(self, chunk: bytes) -> bytes:
        self.size += len(chunk)
        return chunk


def split_into_blocks(lines: Sequence[str]) -> Iterator[list[bytes]]:
    """Groups lines into blocks of at most `BLOCK_BYTES`."""
    group: list[bytes] = []
    size = 0
    for line in lines:
        encoded = line.replace("\n", " ").encode()  # in JSON, newlines inside strings are escaped
        if group and size + len(encoded) > BLOCK_BYTES:
            yield group
            group, size = list[bytes](), 0
        group.append(encoded)
        size += len(encoded)
    if group:
        yield group


def pack_lines(lines: Sequence[bytes]) -> bytes:
    return gzip.compress(b"".join(line + b"\n" for line in lines), compresslevel=6, mtime=0)


def unpack_lines(packed: bytes, sha256: bytes) -> list[ArchiveLine]:
    if sha256_digest(packed) != sha256:
        raise ArchiveDamaged
    return [orjson.loads(line) for line in gzip.decompress(packed).split(b"\n")[:-1]]


def parse_index(packed: bytes, sha256: bytes) -> list[Block]:
    (index,) = unpack_lines(packed, sha256)
    return [Block(*item) for item in index["blocks"]]


def sha256_digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
