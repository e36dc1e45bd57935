"""The setup of a project: the command that prepares each session's tree, and the ignored directories that are cached.

The command runs in the session's environment before anything else. What it leaves in the cached directories is stored
for later sessions of the project, under a key that covers everything that the directories depend on.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Protocol

from footplate.domain.errors import InvalidRequest, Permanent
from footplate.domain.json import Json, JsonObject

MAX_COMMAND_CHARACTERS: Final = 16_384
MAX_CACHED_DIRECTORIES: Final = 32
_MAX_DIRECTORY_CHARACTERS: Final = 255
DEFAULT_CACHED_DIRECTORIES: Final = (
    ".bundle",
    ".gradle",
    ".next/cache",
    ".nox",
    ".pnpm-store",
    ".tox",
    ".turbo",
    ".venv",
    ".yarn/cache",
    "node_modules",
    "target",
    "vendor",
    "venv",
)
"""Directories that are cached by default, if the project ignores them. A name without a slash is found at any depth."""
RESTORED_VARIABLE: Final = "FOOTPLATE_CACHE_RESTORED"
"""The variable that tells a setup command which directories were restored, separated by spaces."""
HIDDEN_VARIABLES: Final = ("FOOTPLATE_CONTEXT", "FOOTPLATE_SESSION_ID", "FOOTPLATE_TURN_ID")
"""Variables that a setup command does not get. What it produces must not depend on the session, because other sessions
use it."""
CACHES_FOLDER: Final = "caches"
"""The folder of a project in the object store that has its caches."""

_LOCK_FILES: Final = frozenset(
    {
        "Cargo.lock",
        "Gemfile.lock",
        "Package.resolved",
        "Pipfile.lock",
        "bun.lock",
        "bun.lockb",
        "composer.lock",
        "conda-lock.yml",
        "deno.lock",
        "environment.yml",
        "flake.lock",
        "go.sum",
        "gradle.lockfile",
        "mix.lock",
        "npm-shrinkwrap.json",
        "package-lock.json",
        "packages.lock.json",
        "pdm.lock",
        "pnpm-lock.yaml",
        "poetry.lock",
        "pubspec.lock",
        "pylock.toml",
        "uv.lock",
        "yarn.lock",
    }
)
_LOCK_FILE_AFFIXES: Final = (("requirements", ".txt"), ("requirements", ".lock"), ("constraints", ".txt"))
"""Starts and ends of further names of lock files."""
_FORMAT: Final = 1
"""The version of keys and archives. Caches of another version are not found."""
_DIRECTORY_PATTERN: Final = re.compile(r"[^\x00-\x1f\x7f\\*?\[\]]+")


class SetupFailed(Permanent):
    """The setup command of a project failed, so the turn did not begin."""

    code = "project_setup_failed"


class SetupNotAllowed(Permanent):
    """The gate did not allow the setup command of a project."""

    code = "project_setup_not_allowed"


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Identifies the cache of a project for one state of its lock files, on one platform."""

    organisation: str
    project_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A stored cache. Its bytes are in the object store, and are used only if they have this hash."""

    key: CacheKey
    sha256: str
    size: int

    @property
    def object_key(self) -> str:
        return f"{cache_folder(self.key.organisation, self.key.project_id)}/{self.key.digest}.{self.sha256}"


class CacheIndex(Protocol):
    """The record of the caches that exist. Without an entry, the bytes of a cache are not used."""

    async def find_cache(self, key: CacheKey) -> CacheEntry | None:
        """Return the entry, and note that it is used."""

    async def add_cache(self, entry: CacheEntry, max_project_bytes: int) -> Sequence[CacheEntry]:
        """Add an entry, unless the key has one or the project is archived. Return the entries that were removed to keep
        the caches of the project within the limit.
        """

    async def remove_cache(self, entry: CacheEntry) -> None: ...


def cache_folder(organisation: str, project_id: str) -> str:
    """Return the folder of a project's caches in the object store."""
    return f"{organisation}/projects/{project_id}/{CACHES_FOLDER}"


def check_command(command: str) -> str:
    """Check a setup command. Raises `InvalidRequest`."""
    if not command.strip() or "\0" in command:
        raise InvalidRequest(
            "setup: the command is empty or contains a NUL byte",
            field="setup",
            help_text="Send a shell command, for example `npm install`, or null for a project without a setup.",
        )
    return command


def check_cached_directories(names: Sequence[str]) -> Sequence[str]:
    """Check the directories of a project that are cached. Raises `InvalidRequest`."""
    for name in names:
        parts = name.split("/")
        is_safe = _DIRECTORY_PATTERN.fullmatch(name) and not {"", ".", "..", ".git"}.intersection(
            part.lower() for part in parts
        )
        if not is_safe or len(name) > _MAX_DIRECTORY_CHARACTERS:
            raise InvalidRequest(
                f"cached_directories: {name!r} is not the name or the relative path of a directory",
                field="cached_directories",
                help_text="Examples: node_modules (at any depth), .next/cache (below the project's directory).",
            )
    return [*dict.fromkeys(names)]


def resolve_cached_directories(names: Sequence[str] | None) -> tuple[str, ...]:
    return DEFAULT_CACHED_DIRECTORIES if names is None else tuple(names)


def is_cached_directory(path: str, names: Sequence[str]) -> bool:
    """Whether a directory of a tree is one of those that are cached."""
    return path in names or PurePosixPath(path).name in {name for name in names if "/" not in name}


def is_lock_file(path: str) -> bool:
    name = PurePosixPath(path).name
    return name in _LOCK_FILES or any(
        name.startswith(start) and name.endswith(end) for start, end in _LOCK_FILE_AFFIXES
    )


def setup_digest(command: str, names: Sequence[str]) -> str:
    """Return the identity of a setup. A tree whose setup has changed is set up again."""
    return _digest({"command": command, "directories": [*names]})


def compute_cache_key(
    organisation: str,
    project_id: str,
    *,
    setup: str,
    platform: str,
    inside_path: str,
    lock_files: Sequence[tuple[str, str]],
) -> CacheKey:
    """Compute the key of a cache. `lock_files`: paths, and hashes of the contents. `inside_path`: where the environment
    sees the tree, because many programs store absolute paths.
    """
    parts: JsonObject = {
        "format": _FORMAT,
        "organisation": organisation,
        "project": project_id,
        "setup": setup,
        "platform": platform,
        "path": inside_path,
        "lock_files": [[path, content] for path, content in sorted(lock_files)],
    }
    return CacheKey(organisation, project_id, _digest(parts))


def _digest(value: Json) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
