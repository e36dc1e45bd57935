"""Caches file states from the last snapshot of a tree, to make the next snapshot faster.

The cache is a file next to the host's git index, and is valid for only one version of that index. It can
be deleted at any time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

_CACHE_FILE: Final = "snapshot.json"


@dataclass(frozen=True, slots=True)
class CachedFile:
    """A file of the sidecar tree: its blob, and its status when it was read."""

    mode: str
    blob: str
    signature: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class SnapshotCache:
    tree: str
    sidecar: str | None = None
    directories: set[bytes] = field(default_factory=set)
    """Directories of the tree, including some former ones, where a nested repository may begin."""
    submodules: set[bytes] = field(default_factory=set)
    sidecar_files: dict[bytes, CachedFile] = field(default_factory=dict)
    """Sidecar files, by path."""


def load_cache(git_dir: Path) -> SnapshotCache | None:
    try:
        found = orjson.loads((git_dir / _CACHE_FILE).read_bytes())
        if found["index"] != _index_state(git_dir / "index"):
            return None
        return SnapshotCache(
            tree=found["tree"],
            sidecar=found["apart"],
            directories={_decode_path(path) for path in found["directories"]},
            submodules={_decode_path(path) for path in found["submodules"]},
            sidecar_files={
                _decode_path(path): CachedFile(mode, blob, tuple(sign)) for path, mode, blob, sign in found["kept"]
            },
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def save_cache(git_dir: Path, index: Path, cache: SnapshotCache, *, scratch: Path) -> None:
    """Moves the index into place, then the cache file. If the process is killed in between, the cache does not match
    the index and is ignored.
    """
    body = {
        "index": _index_state(index),
        "tree": cache.tree,
        "apart": cache.sidecar,
        "directories": _encode_paths(cache.directories),
        "submodules": _encode_paths(cache.submodules),
        "kept": [
            (_encode_path(path), cached.mode, cached.blob, cached.signature)
            for path, cached in cache.sidecar_files.items()
        ],
    }
    written = scratch / _CACHE_FILE
    written.write_bytes(orjson.dumps(body))
    index.replace(git_dir / "index")
    written.replace(git_dir / _CACHE_FILE)


def _index_state(index: Path) -> list[int]:
    status = index.stat()
    return [status.st_ino, status.st_size, status.st_mtime_ns]


def _encode_paths(paths: Iterable[bytes]) -> list[str]:
    return [_encode_path(path) for path in paths]


def _encode_path(path: bytes) -> str:
    return path.decode("latin-1")


def _decode_path(text: str) -> bytes:
    return text.encode("latin-1")
