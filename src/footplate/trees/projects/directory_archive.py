"""Writes directories of a tree to one file, and creates them again in another tree.

The file is compressed. It has a header with the paths of the directories, and then one record for each entry, parents
first. An agent may own the trees, so every path is opened one name at a time without following links, and only entries
that do not exist are created. Blocking.
"""

import hashlib
import os
import stat
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

import orjson

from footplate.trees.safe_open import SafeDirectory

_RECORD: Final = struct.Struct(">BHqHQ")
"""Kind, permissions, modification time, length of the path, length of the content."""
_DIRECTORY: Final = 1
_FILE: Final = 2
_LINK: Final = 3
_END: Final = 0
_HEADER: Final = struct.Struct(">I")
_MAX_HEADER_BYTES: Final = 1 << 20
_MAX_LINK_BYTES: Final = 4096
_CHUNK_BYTES: Final = 1 << 18
_COMPRESSION: Final = 1
_PERMISSIONS: Final = 0o777
"""Bits that are restored. Programs that run as another user are not."""
_MAX_DEPTH: Final = 100


class ArchiveRefused(Exception):
    """The directories cannot be stored or created, for the reason in the text."""


class Stopped(Exception):
    """The caller does not wait for the result any more."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    max_bytes: int
    max_files: int = 300_000
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by another thread to stop the work."""


@dataclass(frozen=True, slots=True)
class WrittenArchive:
    sha256: str
    size: int
    """Bytes of the compressed file."""


def find_directories(tree: Path, is_wanted: Callable[[str], bool], max_directories: int = 20_000) -> list[str]:
    """Returns the paths of the wanted directories in a tree. Directories inside of them are not searched."""
    found: list[str] = []
    with SafeDirectory(tree) as root:
        waiting = [b""]
        seen = 0
        while waiting:
            directory = waiting.pop()
            for name, is_directory in root.list_directory(directory):
                if not is_directory or name == b".git":
                    continue
                seen += 1
                if seen > max_directories:
                    raise ArchiveRefused(f"the tree has more than {max_directories} directories")
                path = directory + b"/" + name if directory else name
                text = path.decode("utf-8", "surrogateescape")
                if is_wanted(text):
                    found.append(text)
                elif path.count(b"/") < _MAX_DEPTH:
                    waiting.append(path)
    return sorted(found)


def write_archive(tree: Path, directories: Sequence[str], target: BinaryIO, limits: ArchiveLimits) -> WrittenArchive:
    """Writes the directories. Raises `ArchiveRefused` if they are too large, change meanwhile, or have entries that are
    neither files, links nor directories.
    """
    writer = _CompressedWriter(target)
    header = orjson.dumps({"directories": list(directories)})
    writer.write(_HEADER.pack(len(header)) + header)
    with SafeDirectory(tree) as root:
        budget = _Budget(limits)
        for directory in directories:
            _write_directory(root, os.fsencode(directory), writer, budget, 0)
    writer.write(_RECORD.pack(_END, 0, 0, 0, 0))
    return writer.close()


class _Budget:
    def __init__(self, limits: ArchiveLimits) -> None:
        self._limits = limits
        self._bytes = 0
        self._files = 0

    def check_stop(self) -> None:
        if self._limits.stop.is_set():
            raise Stopped

    def add(self, size: int) -> None:
        self.check_stop()
        self._bytes += size
        self._files += 1
        if self._bytes > self._limits.max_bytes:
            raise ArchiveRefused(f"they have more than {self._limits.max_bytes} bytes")
        if self._files > self._limits.max_files:
            raise ArchiveRefused(f"they have more than {self._limits.max_files} files")


class _CompressedWriter:
    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._compressor = zlib.compressobj(_COMPRESSION)
        self._digest = hashlib.sha256()
        self._size = 0

    def write(self, data: bytes) -> None:
        self._write_compressed(self._compressor.compress(data))

    def close(self) -> WrittenArchive:
        self._write_compressed(self._compressor.flush())
        return WrittenArchive(self._digest.hexdigest(), self._size)

    def _write_compressed(self, data: bytes) -> None:
        if data:
            self._digest.update(data)
            self._size += len(data)
            self._target.write(data)


def _write_directory(root: SafeDirectory, path: bytes, writer: _CompressedWriter, budget: _Budget, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ArchiveRefused(f"their directories are nested deeper than {_MAX_DEPTH}")
    status = os.fstat(root.open_directory(path))
    writer.write(_RECORD.pack(_DIRECTORY, status.st_mode & _PERMISSIONS, 0, len(path), 0) + path)
    budget.add(0)
    for name, is_directory in root.list_directory(path):
        inner = path + b"/" + name
        if is_directory:
            _write_directory(root, inner, writer, budget, depth + 1)
        else:
            _write_entry(root, inner, writer, budget)


def _write_entry(root: SafeDirectory, path: bytes, writer: _CompressedWriter, budget: _Budget) -> None:
    with root.inspect(path) as found:
        if found is None:
            raise ArchiveRefused("they changed while they were read")
        if found.is_link:
            target = found.read_link()
            budget.add(len(target))
            writer.write(_RECORD.pack(_LINK, 0, 0, len(path), len(target)) + path + target)
            return
        if not found.is_file:
            raise ArchiveRefused(f"{path.decode('utf-8', 'replace')!r} is neither a file, a link nor a directory")
        status = found.status
        budget.add(status.st_size)
        mode, modified = status.st_mode & _PERMISSIONS, status.st_mtime_ns
        writer.write(_RECORD.pack(_FILE, mode, modified, len(path), status.st_size) + path)
        remaining = status.st_size
        with found.open_file() as descriptor:
            while remaining:
                budget.check_stop()
                data = os.read(descriptor, min(_CHUNK_BYTES, remaining))
                if not data:
                    raise ArchiveRefused("they changed while they were read")
                writer.write(data)
                remaining -= len(data)
            after = os.fstat(descriptor)
        if (after.st_size, after.st_mtime_ns, after.st_ctime_ns) != (
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        ):
            raise ArchiveRefused("they changed while they were read")


class ArchiveReader:
    """Reads an archive whose hash has been verified."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._decompressor = zlib.decompressobj()
        self._buffer = bytearray()
        try:
            (length,) = _HEADER.unpack(self._read(_HEADER.size))
            if length > _MAX_HEADER_BYTES:
                raise ArchiveRefused("the cache is damaged")
            header = orjson.loads(self._read(length))
            self.directories: Sequence[str] = tuple(map(str, header["directories"]))
        except (orjson.JSONDecodeError, KeyError, TypeError, zlib.error) as error:
            raise ArchiveRefused("the cache is damaged") from error

    def create_directories(self, tree: Path, user: tuple[int, int], limits: ArchiveLimits) -> None:
        """Creates the directories, which must not exist, with everything in them. Raises `ArchiveRefused` or OSError;
        some of them may then exist.
        """
        tops = {os.fsencode(directory) for directory in self.directories}
        budget = _Budget(limits)
        try:
            with SafeDirectory(tree) as root:
                for record in self._records():
                    _check_path(record.path, tops)
                    budget.add(record.size)
                    self._create(root, record, user, budget)
        except (zlib.error, struct.error) as error:
            raise ArchiveRefused("the cache is damaged") from error

    def _records(self) -> Iterator["_Record"]:
        while True:
            kind, mode, modified, path_length, size = _RECORD.unpack(self._read(_RECORD.size))
            if kind == _END:
                return
            yield _Record(kind, mode & _PERMISSIONS, modified, self._read(path_length), size)

    def _create(self, root: SafeDirectory, record: "_Record", user: tuple[int, int], budget: _Budget) -> None:
        parent, _, name = record.path.rpartition(b"/")
        directory = root.open_directory(parent)
        if record.kind == _DIRECTORY:
            os.mkdir(name, record.mode | stat.S_IRWXU, dir_fd=directory)
            _give_to(user, name, directory)
        elif record.kind == _LINK:
            if record.size > _MAX_LINK_BYTES:
                raise ArchiveRefused("the cache is damaged")
            os.symlink(self._read(record.size), name, dir_fd=directory)
            _give_to(user, name, directory)
        elif record.kind == _FILE:
            self._create_file(record, name, directory, user, budget)
        else:
            raise ArchiveRefused("the cache is damaged")

    def _create_file(
        self, record: "_Record", name: bytes, directory: int, user: tuple[int, int], budget: _Budget
    ) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=directory)
        try:
            remaining = record.size
            while remaining:
                budget.check_stop()
                data = self._read_some(remaining)
                remaining -= len(data)
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
            if os.geteuid() == 0:
                os.fchown(descriptor, *user)
            os.fchmod(descriptor, record.mode)
            os.utime(descriptor, ns=(record.modified, record.modified))
        finally:
            os.close(descriptor)

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            parts += self._read_some(size - len(parts))
        return bytes(parts)

    def _read_some(self, most: int) -> bytes:
        while not self._buffer:
            pending = self._decompressor.unconsumed_tail or self._source.read(_CHUNK_BYTES)
            if not pending:
                raise ArchiveRefused("the cache is damaged")
            self._buffer += self._decompressor.decompress(pending, _CHUNK_BYTES)
        data = bytes(self._buffer[:most])
        del self._buffer[:most]
        return data


@dataclass(frozen=True, slots=True)
class _Record:
    kind: int
    mode: int
    modified: int
    path: bytes
    size: int


def _check_path(path: bytes, tops: set[bytes]) -> None:
    names = path.split(b"/")
    is_inside = any(path == top or path.startswith(top + b"/") for top in tops)
    if not is_inside or not {b"", b".", b".."}.isdisjoint(names) or len(names) > _MAX_DEPTH * 2:
        raise ArchiveRefused("the cache has a path that is not in its directories")


def _give_to(user: tuple[int, int], name: bytes, directory: int) -> None:
    if os.geteuid() == 0:
        os.chown(name, *user, dir_fd=directory, follow_symlinks=False)
