"""Reads and writes git objects in the worker's own process, without starting git.

Only a directory of objects is opened: no configuration, reference or work tree is ever read.
"""

import io
import stat
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from dulwich.object_store import DiskObjectStore
from dulwich.objects import S_ISGITLINK, Blob, ObjectID, ShaFile, Tree
from dulwich.pack import write_pack_objects

from footplate.domain.snapshots import EMPTY

_DIRECTORY: Final = 0o40000


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
    """Those of one git directory, and of the directories that it shares objects with."""

    def __init__(self, git_dir: Path) -> None:
        self._store = DiskObjectStore(git_dir / "objects", loose_compression_level=1)

    def close(self) -> None:
        self._store.close()

    def write_blob(self, content: bytes) -> str:
        return self._write(Blob.from_string(content))

    def find(self, tree: str, path: bytes) -> TreeEntry | None:
        """What a tree has at a path; the submodule, if it is in one."""
        found = TreeEntry(_DIRECTORY, tree)
        for name in path.split(b"/"):
            if found.is_submodule:
                return found
            entries = self._tree(found.id) if found.is_directory else Tree()
            if name not in entries:
                return None
            mode, object_id = entries[name]
            found = TreeEntry(mode, object_id.decode())
        return found

    def change_tree(self, tree: str, changes: Mapping[bytes, TreeEntry | None]) -> str:
        """The tree with these paths changed; None removes what is at a path."""
        return self._change(tree, {tuple(path.split(b"/")): entry for path, entry in changes.items()}) or self._write(
            Tree()
        )

    def _change(self, tree: str, changes: Mapping[tuple[bytes, ...], TreeEntry | None]) -> str | None:
        """None if nothing is left."""
        entries = self._tree(tree)
        below: dict[bytes, dict[tuple[bytes, ...], TreeEntry | None]] = defaultdict(dict)
        for (name, *rest), entry in changes.items():
            if rest:
                below[name][tuple(rest)] = entry
            elif entry is not None:
                entries[name] = (entry.mode, ObjectID(entry.id.encode()))
            elif name in entries:
                del entries[name]
        for name, inner in below.items():
            mode, object_id = entries[name] if name in entries else (0, b"")  # noqa: SIM401 - it has no get
            after = self._change(object_id.decode() if stat.S_ISDIR(mode) else EMPTY, inner)
            if after is not None:
                entries[name] = (_DIRECTORY, ObjectID(after.encode()))
            elif stat.S_ISDIR(mode):
                del entries[name]
        return self._write(entries) if len(entries) else None

    def added(self, before: str, after: str) -> Iterator[tuple[str, bool]]:
        """The objects that the second tree has and the first has not at the same path; and whether each is a tree."""
        if before == after:
            return
        yield after, True
        old = {entry.path: entry for entry in self._tree(before).items()}
        known = {entry.sha for entry in old.values()}
        for name, mode, object_id in self._tree(after).items():
            if object_id in known or S_ISGITLINK(mode):
                continue
            if stat.S_ISDIR(mode):
                was = old.get(name)
                directory = was.sha.decode() if was is not None and stat.S_ISDIR(was.mode) else EMPTY
                yield from self.added(directory, object_id.decode())
            else:
                yield object_id.decode(), False

    def pack(self, ids: Collection[str]) -> bytes:
        """A pack of these objects. All of it is in memory."""
        written = io.BytesIO()
        objects = [(self._store[ObjectID(one.encode())], None) for one in ids]
        write_pack_objects(written, objects, object_format=self._store.object_format)
        return written.getvalue()

    def _tree(self, object_id: str) -> Tree:
        if object_id == EMPTY:
            return Tree()
        found = self._store[ObjectID(object_id.encode())]
        assert isinstance(found, Tree)
        return found

    def _write(self, written: ShaFile) -> str:
        self._store.add_object(written)
        return written.id.decode()
