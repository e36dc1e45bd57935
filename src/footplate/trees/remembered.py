"""Caches the state of the last snapshot of a tree, to make the next one faster. Losing the cache is harmless.

The cache is a file next to the host's index. It is valid for one state of that index only.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

_NAME: Final = "snapshot.json"


@dataclass(frozen=True, slots=True)
class Kept:
    """A file of the sidecar tree: its blob, and its status when it was read."""

    mode: str
    blob: str
    signature: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class Remembered:
    tree: str
    apart: str | None = None
    directories: set[bytes] = field(default_factory=set)
    """Directories of the tree, including some former ones, where a nested repository may begin."""
    submodules: set[bytes] = field(default_factory=set)
    kept: dict[bytes, Kept] = field(default_factory=dict)
    """Sidecar files, by path."""


def load(git_dir: Path) -> Remembered | None:
    try:
        found = orjson.loads((git_dir / _NAME).read_bytes())
        if found["index"] != _state(git_dir / "index"):
            return None
        return Remembered(
            tree=found["tree"],
            apart=found["apart"],
            directories={_bytes(path) for path in found["directories"]},
            submodules={_bytes(path) for path in found["submodules"]},
            kept={_bytes(path): Kept(mode, blob, tuple(sign)) for path, mode, blob, sign in found["kept"]},
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def save(git_dir: Path, index: Path, remembered: Remembered, *, scratch: Path) -> None:
    """Moves the index into place, then the cache file. If the process is killed in between, the cache does not match
    the index and is ignored.
    """
    body = {
        "index": _state(index),
        "tree": remembered.tree,
        "apart": remembered.apart,
        "directories": _texts(remembered.directories),
        "submodules": _texts(remembered.submodules),
        "kept": [(_text(path), kept.mode, kept.blob, kept.signature) for path, kept in remembered.kept.items()],
    }
    written = scratch / _NAME
    written.write_bytes(orjson.dumps(body))
    index.replace(git_dir / "index")
    written.replace(git_dir / _NAME)


def _state(index: Path) -> list[int]:
    status = index.stat()
    return [status.st_ino, status.st_size, status.st_mtime_ns]


def _texts(paths: Iterable[bytes]) -> list[str]:
    return [_text(path) for path in paths]


def _text(path: bytes) -> str:
    return path.decode("latin-1")


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")
