"""Finds out whether a session's HOME has changed, from the status of its files, without reading them or starting git.

Caches of package managers and similar directories are excluded: they are large, and programs create them again.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

EXCLUDED_PATHS: Final = frozenset(
    {
        ".bun/install/cache", ".cache", ".cargo/git", ".cargo/registry", ".conda/pkgs", ".config/Code", ".footplate",
        ".gradle", ".ivy2", ".local/share/Trash", ".local/share/pnpm", ".m2/repository", ".npm", ".nuget",
        ".pnpm-store", ".rustup", ".yarn", "go/pkg", "snap",
    }
)  # fmt: skip
"""Directories that are not stored."""
EXCLUDED_NAMES: Final = frozenset({"__pycache__", "node_modules"})
"""Names of directories that are not stored, wherever they are."""
_MAX_ENTRIES: Final = 20_000
_RECENT_NS: Final = 100_000_000
"""A file may change again without a new time of change for this long, because the kernel's clock has coarse steps."""
_RECORD_NAME: Final = "home_scan.json"


@dataclass(frozen=True, slots=True)
class HomeScan:
    digest: str
    """Two scans with the same digest found the same files."""
    file_count: int
    newest_change_ns: int

    def is_settled(self, now_ns: int) -> bool:
        """Whether a later change is certain to change the digest too."""
        return now_ns - self.newest_change_ns > _RECENT_NS


def scan_home(home: Path, max_bytes: int) -> HomeScan | None:
    """Returns None if the files are too many or too large together. Blocking."""
    digest = hashlib.blake2b(digest_size=16)
    count = size = newest = 0
    for path, status in _iter_entries(home):
        count += 1
        size += status.st_size
        if count > _MAX_ENTRIES or size > max_bytes:
            return None
        newest = max(newest, status.st_ctime_ns)
        fields = (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        digest.update(path + b"\0" + repr(fields).encode() + b"\0")
    return HomeScan(digest.hexdigest(), count, newest)


def write_exclude_file(git_dir: Path) -> None:
    """Makes git ignore what a scan excludes."""
    paths, names = sorted(EXCLUDED_PATHS), sorted(EXCLUDED_NAMES)
    lines = "".join([*(f"/{path}/\n" for path in paths), *(f"{name}/\n" for name in names)])
    (git_dir / "info" / "exclude").write_text(lines)


def load_scan_record(git_dir: Path) -> object:
    """Returns what was last recorded of a scan. None: nothing."""
    try:
        return orjson.loads((git_dir / _RECORD_NAME).read_bytes())
    except (FileNotFoundError, NotADirectoryError, orjson.JSONDecodeError):
        return None


def save_scan_record(git_dir: Path, record: object) -> None:
    new = git_dir / f"{_RECORD_NAME}.{os.getpid()}"
    new.write_bytes(orjson.dumps(record))
    new.replace(git_dir / _RECORD_NAME)


def _iter_entries(home: Path) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yields everything except directories, in a fixed order. No link is followed."""
    for top, directories, names, descriptor in os.fwalk(os.fsencode(home), follow_symlinks=False):
        prefix = os.path.relpath(top, os.fsencode(home)) + b"/"
        prefix = b"" if prefix == b"./" else prefix
        directories[:] = sorted(name for name in directories if not _is_excluded(prefix, name))
        for name in sorted(names):
            try:
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError:
                continue  # it was removed meanwhile
            if not stat.S_ISDIR(status.st_mode):
                yield prefix + name, status


def _is_excluded(prefix: bytes, name: bytes) -> bool:
    return os.fsdecode(name) in EXCLUDED_NAMES or os.fsdecode(prefix + name) in EXCLUDED_PATHS
