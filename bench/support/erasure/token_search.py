"""Searches for canary tokens in every store: tables, Redis, Temporal's histories, objects and hosts."""

import asyncio
import gzip
import re
import subprocess
import tempfile
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from bench.prove.figure import require
from bench.support.canary import stored_data
from bench.support.cluster import Cluster
from footplate.domain.files.pack_names import PACK_NAME

_TOKEN: Final = re.compile(rb"canary[0-9a-f]{24}")
TokensByStore = dict[str, set[str]]
"""The tokens found in each store."""


async def find_tokens(cluster: Cluster, hosts: list[Path]) -> TokensByStore:
    objects = cluster.directory / "data" / "objects"
    found: TokensByStore = {}
    for name, pieces in (
        ("PostgreSQL", stored_data.read_postgres(cluster)),
        ("Redis", stored_data.read_redis(cluster)),
        ("Temporal", stored_data.read_temporal(cluster)),
    ):
        found[name] = await _tokens_in_stream(pieces)
    found["objects"] = await asyncio.to_thread(lambda: _tokens_in(_read_files(objects)))
    found["packs"] = await asyncio.to_thread(lambda: _tokens_in(_read_packs(objects)))
    found["hosts"] = await asyncio.to_thread(lambda: _tokens_in(piece for host in hosts for piece in _read_host(host)))
    return found


async def _tokens_in_stream(pieces: AsyncIterator[bytes]) -> set[str]:
    found: set[str] = set()
    async for piece in pieces:
        found |= {token.decode() for token in _TOKEN.findall(piece)}
    return found


def _tokens_in(pieces: Iterator[bytes]) -> set[str]:
    return {token.decode() for piece in pieces for token in _TOKEN.findall(piece)}


def _read_files(root: Path) -> Iterator[bytes]:
    """Yields files as they are, and archives decompressed as well."""
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            yield str(path).encode() + b"\n" + content
            if content.startswith(b"\x1f\x8b"):
                yield gzip.decompress(content)


def _read_packs(objects: Path) -> Iterator[bytes]:
    """Yields every git object of every pack in the store. Packs that build on others come after them."""
    packs: dict[tuple[int, str], dict[int, Path]] = {}
    for path in objects.rglob("*.pack"):
        match = PACK_NAME.fullmatch(path.name)
        require(holds=match is not None, otherwise=f"a pack with an unexpected name: {path.name}")
        assert match is not None
        whole = str(path.with_name(match["number"] + (match["steps"] or "") + match["before"] + match["snapshot"]))
        packs.setdefault((int(match["number"]), whole), {})[int(match["part"])] = path
    with tempfile.TemporaryDirectory(prefix="footplate-unpacked-") as git_dir:
        _git(git_dir, "init", "-q", "--bare")
        for _, parts in sorted(packs.items()):
            content = b"".join(parts[number].read_bytes() for number in sorted(parts))
            _git(git_dir, "index-pack", "--stdin", "--fix-thin", given=content)
        yield from _all_objects(git_dir)


def _read_host(data: Path) -> Iterator[bytes]:
    """Yields files, file names, and the objects of git directories. The object store beside them is excluded."""
    for top in ("workspaces", "trees", "mirrors"):
        for path in (data / top).rglob("*"):
            yield str(path).encode()
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
                yield content
                with suppress(zlib.error):
                    yield zlib.decompress(content)  # a loose object
            if path.name in {"host.git", "host.git.begun"} and (path / "HEAD").exists():
                yield from _all_objects(str(path))


def _all_objects(git_dir: str) -> Iterator[bytes]:
    yield _git(git_dir, "cat-file", "--batch-all-objects", "--batch", "--buffer")


def _git(directory: str, *argv: str, given: bytes = b"") -> bytes:
    done = subprocess.run(["git", *argv], cwd=directory, input=given, capture_output=True, check=False)
    require(holds=done.returncode == 0, otherwise=f"git {argv[0]} failed: {done.stderr.decode()[-300:]}")
    return done.stdout
