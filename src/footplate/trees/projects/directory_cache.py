"""The caches of projects: ignored directories that the setup of a session left, for later sessions of the project.

A cache is a file, on this host and in the object store, that is used only if its hash is the one in the index. Nothing
depends on a cache: whatever fails, the setup starts without one.
"""

import asyncio
import hashlib
import os
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TypeVar

import structlog

from footplate import failpoints
from footplate.domain.organisations.organisation_names import directory_name
from footplate.domain.projects.setup import CacheEntry, CacheIndex, CacheKey
from footplate.trees.projects.directory_archive import (
    ArchiveLimits,
    ArchiveReader,
    ArchiveRefused,
    write_archive,
)

log = structlog.get_logger(__name__)

T = TypeVar("T")

CACHES_DIRECTORY: Final = "caches"
"""Directory name inside the data directory."""
_UNFINISHED_PREFIX: Final = "new-"
_CHUNK_BYTES: Final = 1 << 20
_MAX_UNFINISHED_SECONDS: Final = 3600


class CacheObjects(Protocol):
    """The part of the object store that caches use."""

    async def write_object(self, key: str, pieces: AsyncIterator[bytes]) -> None: ...
    def read_chunks(self, key: str) -> AsyncIterator[bytes]: ...
    async def delete_object(self, key: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLimits:
    entry_bytes: int = 2 << 30
    """Maximum size of the directories of one cache. 0: nothing is cached."""
    project_bytes: int = 10 << 30
    """Maximum size of all caches of a project in the object store, compressed."""
    host_bytes: int = 20 << 30
    """Maximum size of all caches on this host, compressed."""
    unused_seconds: float = 30 * 86_400
    """A cache on this host that was not used for so long is removed."""


class DirectoryCache:
    def __init__(self, data: Path, objects: CacheObjects, index: CacheIndex, limits: CacheLimits) -> None:
        self._root = data.resolve() / CACHES_DIRECTORY
        self._objects = objects
        self._index = index
        self._limits = limits

    @property
    def is_enabled(self) -> bool:
        return self._limits.entry_bytes > 0

    async def open_cache(self, key: CacheKey) -> "OpenCache | None":
        """Returns the cache with this key, if there is one whose content is as the index says."""
        entry = await self._index.find_cache(key)
        if entry is None or entry.size > self._limits.project_bytes:
            return None
        path = self._path(entry)
        file = await asyncio.to_thread(_open_verified, path, entry)
        if file is None and await self._download(entry, path):
            file = await asyncio.to_thread(_open_verified, path, entry)
        if file is None:
            await self._index.remove_cache(entry)  # the next setup stores it again
            log.warning("cache is missing or damaged", action="cache.damaged", project=key.project_id, key=key.digest)
            return None
        try:
            return OpenCache(file, await asyncio.to_thread(ArchiveReader, file), self._limits.entry_bytes)
        except BaseException:
            file.close()
            raise

    async def store(self, key: CacheKey, tree: Path, directories: Sequence[str]) -> bool:
        """Stores the directories of a tree, unless the key has a cache. Returns whether they were stored."""
        folder = self._path_of_project(key)
        with _unfinished_file(folder) as (file, name):
            written = await _run_in_thread(
                lambda stop: write_archive(tree, directories, file, ArchiveLimits(self._limits.entry_bytes, stop=stop))
            )
            file.flush()
            entry = CacheEntry(key, written.sha256, written.size)
            if entry.size > self._limits.project_bytes:
                raise ArchiveRefused(f"they have more than {self._limits.project_bytes} bytes")
            await failpoints.hit("cache_written")
            await self._objects.write_object(entry.object_key, _read_file(name))
            await failpoints.hit("cache_uploaded")
            evicted = await self._index.add_cache(entry, self._limits.project_bytes)
            os.replace(name, self._path(entry))  # noqa: PTH105 - both are strings of one directory
        for old in evicted:
            await self._objects.delete_object(old.object_key)
            await asyncio.to_thread(self._path(old).unlink, missing_ok=True)
        await asyncio.to_thread(self._evict_local)
        return entry not in evicted

    def _path(self, entry: CacheEntry) -> Path:
        return self._path_of_project(entry.key) / f"{entry.key.digest}.{entry.sha256}"

    def _path_of_project(self, key: CacheKey) -> Path:
        return self._root / directory_name(key.organisation) / key.project_id

    async def _download(self, entry: CacheEntry, path: Path) -> bool:
        with _unfinished_file(path.parent) as (file, name):
            digest, size = hashlib.sha256(), 0
            try:
                async for piece in self._objects.read_chunks(entry.object_key):
                    size += len(piece)
                    if size > entry.size:
                        return False
                    digest.update(piece)
                    await asyncio.to_thread(file.write, piece)
            except FileNotFoundError:
                return False
            if digest.hexdigest() != entry.sha256:
                return False
            file.flush()
            os.replace(name, path)  # noqa: PTH105 - as above
        await asyncio.to_thread(self._evict_local)
        return True

    def _evict_local(self) -> None:
        """Removes the caches on this host that were not used for the longest time, until the rest is within the limit,
        and files of killed processes.
        """
        found: list[tuple[float, int, Path]] = []
        for path in self._root.glob("*/*/*"):
            with suppress(FileNotFoundError):  # another worker on this host may remove it too
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        now, total = time.time(), 0
        for used_at, size, path in sorted(found, reverse=True):
            is_unfinished = path.name.startswith(_UNFINISHED_PREFIX)
            max_seconds = _MAX_UNFINISHED_SECONDS if is_unfinished else self._limits.unused_seconds
            total += size
            if total > self._limits.host_bytes or now - used_at > max_seconds:
                path.unlink(missing_ok=True)


class OpenCache:
    """A cache whose content has been verified."""

    def __init__(self, file: BinaryIO, reader: ArchiveReader, max_bytes: int) -> None:
        self._file = file
        self._reader = reader
        self._max_bytes = max_bytes

    @property
    def directories(self) -> Sequence[str]:
        return self._reader.directories

    async def create_directories(self, tree: Path, user: tuple[int, int]) -> None:
        """Creates the directories. Nothing is written any more when this returns or is cancelled."""
        await _run_in_thread(
            lambda stop: self._reader.create_directories(tree, user, ArchiveLimits(self._max_bytes, stop=stop))
        )

    def close(self) -> None:
        self._file.close()


async def _run_in_thread(work: Callable[[threading.Event], T]) -> T:
    """Runs blocking work that ends soon after its event is set. If the caller is cancelled, waits for that end."""
    stop = threading.Event()
    task = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait({task})
        raise


@contextmanager
def _unfinished_file(folder: Path) -> Iterator[tuple[BinaryIO, str]]:
    """Creates a file that is removed unless it was renamed."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=_UNFINISHED_PREFIX, dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file, name
    finally:
        Path(name).unlink(missing_ok=True)


def _open_verified(path: Path, entry: CacheEntry) -> BinaryIO | None:
    """Opens a cache on this host if its content has the hash of the entry. A damaged file is removed."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    try:
        has_size = os.fstat(file.fileno()).st_size == entry.size
        if has_size and hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256:
            file.seek(0)
            os.utime(file.fileno())  # it is used now
            return file
        path.unlink(missing_ok=True)
    except BaseException:
        file.close()
        raise
    file.close()
    return None


async def _read_file(name: str) -> AsyncIterator[bytes]:
    with Path(name).open("rb") as file:  # noqa: ASYNC230 - it was just written
        while piece := await asyncio.to_thread(file.read, _CHUNK_BYTES):
            yield piece
