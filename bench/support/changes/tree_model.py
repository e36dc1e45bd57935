"""A working tree as a value: the content of each path. It uses no git, so it can check git."""

import os
import random
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["file", "program", "link"]


@dataclass(frozen=True, slots=True)
class Content:
    """Literal bytes, or a number of random bytes or lines from a seed, because a report of 10 MB would not help."""

    literal: bytes = b""
    noise: int = 0
    lines: int = 0
    seed: int = 0

    def bytes(self) -> bytes:
        source = random.Random(self.seed)
        if self.noise:
            return source.randbytes(self.noise)
        if self.lines:
            return b"".join(b"%d %s\n" % (number, source.randbytes(4).hex().encode()) for number in range(self.lines))
        return self.literal


@dataclass(frozen=True, slots=True)
class Node:
    kind: Kind
    content: Content


Tree = dict[bytes, Node]


def can_add(tree: Tree, path: bytes) -> bool:
    """Whether the path can be added: no path is both a file and a directory."""
    parts = path.split(b"/")
    above = {b"/".join(parts[:count]) for count in range(1, len(parts))}
    return not above & tree.keys() and not any(other.startswith(path + b"/") for other in tree)


def write_changes(root: Path, before: Tree, after: Tree) -> None:
    """Writes the changes into a directory, and touches only the paths that differ."""
    for path in before.keys() - after.keys():
        _remove(root, path)
    for path, node in after.items():
        if before.get(path) != node:
            if path in before:
                _remove(root, path)
            file = root / os.fsdecode(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            if node.kind == "link":
                file.symlink_to(os.fsdecode(node.content.bytes()))
            else:
                file.write_bytes(node.content.bytes())
                file.chmod(0o755 if node.kind == "program" else 0o644)


def _remove(root: Path, path: bytes) -> None:
    file = root / os.fsdecode(path)
    file.unlink()
    for parent in file.parents:
        if parent == root or any(parent.iterdir()):
            return
        parent.rmdir()


def find_differences(root: Path, tree: Tree) -> Iterator[str]:
    """Yields the differences between a directory and the tree. Git directories are ignored."""
    found = dict(_walk(root))
    for path in sorted(found.keys() - tree.keys()):
        yield f"{path!r} is unexpected"
    for path, node in sorted(tree.items()):
        if path not in found:
            yield f"{path!r} is missing"
        elif (node.kind, node.content.bytes()) != _read(found[path]):
            yield f"{path!r} is different"


def _walk(root: Path) -> Iterator[tuple[bytes, Path]]:
    for parent, directories, names in os.walk(root):
        directories[:] = [name for name in directories if name != ".git"]
        links = [name for name in directories if Path(parent, name).is_symlink()]
        for name in (*names, *links):
            if name != ".git":
                yield os.fsencode(Path(parent, name).relative_to(root)), Path(parent, name)


def _read(path: Path) -> tuple[Kind, bytes]:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return "link", os.readlink(os.fsencode(path))  # noqa: PTH115 - a Path would lose a last slash
    return ("program" if mode & stat.S_IXUSR else "file"), path.read_bytes()
