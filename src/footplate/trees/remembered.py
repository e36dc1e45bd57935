"""What one snapshot leaves for the next one of the same tree, to be quicker. Losing it loses nothing.

It is a file beside the host's index and belongs to one state of that index: to another it says nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

_NAME: Final = "snapshot.json"


@dataclass(frozen=True, slots=True)
class Kept:
    """A file that is kept apart: its blob, and how the file looked when it was read."""

    mode: str
    blob: str
    signature: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class Remembered:
    tree: str
    apart: str | None = None
    directories: set[bytes] = field(default_factory=set)
    """Those of the tree, and some that it had before: where a nested repository may begin."""
    submodules: set[bytes] = field(default_factory=set)
    kept: dict[bytes, Kept] = field(default_factory=dict)
    """What is apart, by path."""


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
    """Puts the index in its place, and beside it what is known of it. Killed in between, the one disowns the other."""
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
