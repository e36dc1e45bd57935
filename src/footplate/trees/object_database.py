"""Reads and writes git objects in the worker's process, without starting git.

It opens only the object directory, and never reads configuration, references or working trees.
"""

import io
import os
import stat
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from dulwich.object_store import DiskObjectStore
from dulwich.objects import S_ISGITLINK, Blob, ObjectID, ShaFile, Tree
from dulwich.pack import write_pack_objects

from footplate.domain.files.snapshots import EMPTY_TREE

MAX_BYTES: Final = 1 << 20
MAX_FILES: Final = 200
"""Limits for content that is read and compressed in this process. git stores anything larger."""
MAX_PACKS: Final = 100
"""Each pack is an open file for as long as the database is open."""
_MAX_TREE_BYTES: Final = 2 << 20
"""Limit for one parsed tree, and for all cached trees together."""
_MAX_WRITTEN: Final = 256
_MAX_WRITTEN_BYTES: Final = 64 << 10
"""Size limit for an object that is cached until it is packed."""
_DIRECTORY: Final = 0o40000
_FILE: Final = 0o100644
_EXECUTABLE: Final = 0o100755


class TreeTooLarge(Exception):
    """A directory has too many files to be read in this process. git has to read it."""


class TreeEntry(NamedTuple):
    mode: int
    id: str

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_submodule(self) -> bool:
        return S_ISGITLINK(self.mode)


class ObjectDatabase:
    """The objects of one git directory and of its alternates."""

    def __init__(self, git_dir: Path) -> None:
        self._directory = git_dir / "objects"
        self._store = DiskObjectStore(self._directory)
        self._tree_cache: dict[str, Tree] = {}
        self._tree_cache_bytes = 0
        self._unpacked_cache: dict[str, ShaFile] = {}
        """Small objects that were written since the last pack."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._store.close()

    def write_blob(self, content: bytes) -> str:
        return self._write_object(Blob.from_string(content))

    def find_entry(self, tree: str, path: bytes) -> TreeEntry | None:
        """Returns the entry at a path, the submodule that contains the path, or None."""
        found = TreeEntry(_DIRECTORY, tree)
        for name in path.split(b"/"):
            if found.is_submodule:
                return found
            entries = self._load_cached_tree(found.id) if found.is_directory else Tree()
            if name not in entries:
                return None
            mode, object_id = entries[name]
            found = TreeEntry(mode, object_id.decode())
        return found

    def change_tree(self, tree: str, changes: Mapping[bytes, TreeEntry | None]) -> str:
        """Returns the id of the tree with these paths changed. None removes the entry at a path."""
        by_names = {tuple(path.split(b"/")): entry for path, entry in changes.items()}
        return self._change_tree(tree, by_names) or self._write_object(Tree())

    def _change_tree(self, tree: str, changes: Mapping[tuple[bytes, ...], TreeEntry | None]) -> str | None:
        """Returns the id of the changed tree, or None if it is empty."""
        entries = self._load_tree(tree)
        _normalise_modes(entries)
        below: dict[bytes, dict[tuple[bytes, ...], TreeEntry | None]] = defaultdict(dict)
        for (name, *rest), entry in changes.items():
            if rest:
                below[name][tuple(rest)] = entry
            elif entry is not None:
                entries[name] = (entry.mode, ObjectID(entry.id.encode()))
            elif name in entries:
                del entries[name]
        for name, inner in below.items():
            mode, object_id = entries[name] if name in entries else (0, b"")  # noqa: SIM401 - a Tree has no get method
            after = self._change_tree(object_id.decode() if stat.S_ISDIR(mode) else EMPTY_TREE, inner)
            if after is not None:
                entries[name] = (_DIRECTORY, ObjectID(after.encode()))
            elif stat.S_ISDIR(mode):
                del entries[name]
        return self._write_object(entries) if len(entries) else None

    def iter_added_objects(self, before: str, after: str) -> Iterator[tuple[str, bool]]:
        """Yields each object of `after` that the same directory of `before` lacks, and whether it is a tree."""
        if before == after:
            return
        yield after, True
        old = {entry.path: entry for entry in self._load_cached_tree(before).items()}
        known = {entry.sha for entry in old.values() if not S_ISGITLINK(entry.mode)}
        for name, mode, object_id in self._load_cached_tree(after).items():
            if object_id in known or S_ISGITLINK(mode):
                continue
            if stat.S_ISDIR(mode):
                old_entry = old.get(name)
                directory = (
                    old_entry.sha.decode() if old_entry is not None and stat.S_ISDIR(old_entry.mode) else EMPTY_TREE
                )
                yield from self.iter_added_objects(directory, object_id.decode())
            else:
                yield object_id.decode(), False

    def build_pack(self, ids: Collection[str]) -> bytes:
        """Returns a pack of these objects. The whole pack is in memory."""
        written = io.BytesIO()
        objects = [
            (self._unpacked_cache.get(object_id) or self._store[ObjectID(object_id.encode())], None)
            for object_id in ids
        ]
        write_pack_objects(written, objects, object_format=self._store.object_format)
        self._unpacked_cache.clear()
        return written.getvalue()

    def _load_cached_tree(self, object_id: str) -> Tree:
        """Returns a cached tree. Callers must not change it."""
        if object_id not in self._tree_cache:
            tree = self._load_tree(object_id)
            self._tree_cache_bytes += tree.raw_length()
            if self._tree_cache_bytes > _MAX_TREE_BYTES:
                self._tree_cache.clear()
                self._tree_cache_bytes = tree.raw_length()
            self._tree_cache[object_id] = tree
        return self._tree_cache[object_id]

    def _load_tree(self, object_id: str) -> Tree:
        if object_id == EMPTY_TREE:
            return Tree()
        found = self._store[ObjectID(object_id.encode())]
        assert isinstance(found, Tree)
        if found.raw_length() > _MAX_TREE_BYTES:
            raise TreeTooLarge
        return found

    def _write_object(self, written: ShaFile) -> str:
        """Writes under a temporary name first, as git does, so a killed process leaves no partial object."""
        name = written.id.decode()
        if len(self._unpacked_cache) < _MAX_WRITTEN and written.raw_length() <= _MAX_WRITTEN_BYTES:
            self._unpacked_cache[name] = written
        path = self._directory / name[:2] / name[2:]
        if path.exists() and path.stat().st_size:  # an empty file can remain after a power loss
            return name
        path.parent.mkdir(exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix="tmp_obj_", dir=path.parent)
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path
                file.write(written.as_legacy_object(compression_level=1))
                os.fchmod(file.fileno(), 0o444)
            Path(temporary).rename(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return name


def count_packs(git_dir: Path, *, alternates: bool = True) -> int:
    """Counts the packs of a git directory. `alternates`: also counts those of directories whose objects it shares."""
    objects = git_dir / "objects"
    listed = objects / "info" / "alternates"
    alternate_dirs = listed.read_text().splitlines() if alternates and listed.is_file() else []
    return sum(1 for directory in (objects, *map(Path, alternate_dirs)) for _ in (directory / "pack").glob("*.pack"))


def _normalise_modes(entries: Tree) -> None:
    """Normalises file modes, as git does when it rewrites a directory: old repositories contain files of mode 664."""
    for name, mode, object_id in entries.items():
        if stat.S_ISREG(mode) and mode not in {_FILE, _EXECUTABLE}:
            entries[name] = (_EXECUTABLE if mode & stat.S_IXUSR else _FILE, object_id)
