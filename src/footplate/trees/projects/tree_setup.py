"""Prepares a session's tree for the setup of its project: restores cached directories, and stores them afterwards.

A file in the host's git directory of the tree, which no agent can access, records how far the setup is. It disappears
with the tree, so a tree that is created or restored again is set up again.
"""

import asyncio
import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import orjson
import structlog

from footplate import failpoints
from footplate.domain.ports.engine import SessionTree
from footplate.domain.ports.project_setup import SetupRequest, SetupStart, TreeSetup
from footplate.domain.projects.project import SessionProject
from footplate.domain.projects.setup import (
    CacheKey,
    compute_cache_key,
    is_cached_directory,
    is_lock_file,
    resolve_cached_directories,
    setup_digest,
)
from footplate.trees.checkout import host_git_dir_path, private_dir_path
from footplate.trees.git import Git
from footplate.trees.git_plumbing import list_ignored, split_nul_separated
from footplate.trees.projects.directory_archive import find_directories
from footplate.trees.projects.directory_cache import DirectoryCache
from footplate.trees.safe_open import SafeDirectory

log = structlog.get_logger(__name__)

RECORD_NAME: Final = "setup.json"
_MAX_LOCK_BYTES: Final = 64 << 20
_GIT_SECONDS: Final = 60.0
_CHUNK_BYTES: Final = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupRecord:
    """How far the setup of a tree is."""

    is_fresh: bool = False
    """Whether the tree was checked out from its base commit, and nothing but its setup has run since."""
    is_isolated: bool = False
    """Whether the setup began when nothing else had changed the session's files, not even another setup, or this one on
    another platform: the key of the cache would not cover what that has left.
    """
    started: str = ""
    """The digest of the setup that began last, and of where it runs."""
    creating: tuple[str, ...] = ()
    """Directories that are being restored: they may be incomplete."""
    restored: tuple[str, ...] = ()
    key: str = ""
    """The digest of the key under which the directories will be stored. Empty: they will not."""
    completed: str = ""
    """The digest of the setup that succeeded."""


def write_fresh_record(host_git_dir: Path) -> None:
    """Records that a tree was checked out from its base commit, before it gets its final place."""
    _save_record(host_git_dir, SetupRecord(is_fresh=True))


def remove_record(host_git_dir: Path) -> None:
    """Removes the record of a tree whose project has no setup now: an agent may run in it before there is one again."""
    (host_git_dir / RECORD_NAME).unlink(missing_ok=True)


class CachedTreeSetup(TreeSetup):
    def __init__(self, data: Path, cache: DirectoryCache, *, seconds: float) -> None:
        """`seconds`: the time limit for restoring, and for storing."""
        self._data = data.resolve()
        self._cache = cache
        self._seconds = seconds

    async def needs_setup(self, tree: SessionTree) -> bool:
        project = tree.project
        if project is None or project.setup is None:
            return False
        return _load_record(self._host_git_dir(tree)).completed != _digest_of(project)

    async def begin_setup(self, tree: SessionTree, request: SetupRequest) -> SetupStart:
        project, git_dir = tree.project, self._host_git_dir(tree)
        assert project is not None
        record = _load_record(git_dir)
        if record.creating:  # the worker was killed meanwhile
            await asyncio.to_thread(_remove_directories, tree.files, record.creating)
        started = _digest_of_start(project, request)
        is_first, is_repeated = not record.started, record.started == started
        is_isolated = request.is_home_empty if is_first else record.is_isolated and is_repeated
        is_isolated = is_isolated and record.is_fresh and request.is_untouched
        record = SetupRecord(
            is_fresh=record.is_fresh,
            is_isolated=is_isolated,
            started=started,
            restored=record.restored if is_repeated and not record.creating else (),
        )
        _save_record(git_dir, record)
        key = await self._find_key(tree, request)
        if key is not None and not record.restored:
            record = await self._restore(tree, git_dir, record, key)
        if key is not None and is_isolated and not record.restored:
            record = replace(record, key=key.digest)
        _save_record(git_dir, record)
        return SetupStart(restored=record.restored)

    async def complete_setup(self, tree: SessionTree) -> Sequence[str]:
        project, git_dir = tree.project, self._host_git_dir(tree)
        assert project is not None
        record = _load_record(git_dir)
        stored: Sequence[str] = ()
        if record.key and record.is_fresh and record.is_isolated:
            stored = await self._store(tree, CacheKey(tree.organisation, project.id, record.key))
        # The tree is not fresh from here on, whatever happens.
        _save_record(git_dir, SetupRecord(completed=_digest_of(project)))
        return stored

    async def _find_key(self, tree: SessionTree, request: SetupRequest) -> CacheKey | None:
        project = tree.project
        assert project is not None
        # Programs store absolute paths. Where each session has its own path, another one could not use them.
        if request.platform is None or tree.session_id in request.inside_path:
            return None
        if not self._cache.is_enabled or not resolve_cached_directories(project.cached_directories):
            return None
        try:
            git = Git(git_dir=self._host_git_dir(tree))
            listed = split_nul_separated(await git.run("ls-files", "-z", "--cached", seconds=_GIT_SECONDS))
            paths = [path for path in listed if is_lock_file(path.decode("utf-8", "surrogateescape"))]
            lock_files = await asyncio.to_thread(_hash_files, tree.files, paths)
        except Exception as error:  # noqa: BLE001 - the setup works without a cache
            _log_failure("cache.no_key", tree, error)
            return None
        return compute_cache_key(
            tree.organisation,
            project.id,
            setup=_digest_of(project),
            platform=request.platform,
            inside_path=request.inside_path,
            lock_files=lock_files,
        )

    async def _restore(self, tree: SessionTree, git_dir: Path, record: SetupRecord, key: CacheKey) -> SetupRecord:
        """Restores the directories of a cache. Returns the new record."""
        creating: tuple[str, ...] = ()
        try:
            async with asyncio.timeout(self._seconds):
                cache = await self._cache.open_cache(key)
                if cache is None:
                    return record
                try:
                    if not await self._may_create(tree, cache.directories):
                        return record
                    creating = tuple(cache.directories)
                    _save_record(git_dir, replace(record, creating=creating))
                    await failpoints.hit("cache_restoring")
                    status = tree.files.stat()
                    await cache.create_directories(tree.files, (status.st_uid, status.st_gid))
                finally:
                    cache.close()
        except Exception as error:  # noqa: BLE001 - the setup works without a cache
            _log_failure("cache.not_restored", tree, error)
            await asyncio.to_thread(_remove_directories, tree.files, creating)
            return record
        log.info("cache restored", action="cache.restored", project=key.project_id, key=key.digest)
        await failpoints.hit("cache_restored")
        return replace(record, restored=creating)

    async def _store(self, tree: SessionTree, key: CacheKey) -> Sequence[str]:
        project = tree.project
        assert project is not None
        names = resolve_cached_directories(project.cached_directories)
        try:
            async with asyncio.timeout(self._seconds):
                found = await asyncio.to_thread(
                    find_directories, tree.files, lambda path: is_cached_directory(path, names)
                )
                directories = await self._list_ignored(tree, found)
                if not directories or not await self._cache.store(key, tree.files, directories):
                    return ()
        except Exception as error:  # noqa: BLE001 - the setup has succeeded
            _log_failure("cache.not_stored", tree, error)
            return ()
        log.info("cache stored", action="cache.stored", project=key.project_id, key=key.digest)
        return directories

    async def _may_create(self, tree: SessionTree, directories: Sequence[str]) -> bool:
        """Whether none of the directories exists, and git ignores all of them, so that they are in no snapshot."""
        project = tree.project
        assert project is not None
        names = resolve_cached_directories(project.cached_directories)
        with SafeDirectory(tree.files) as root:
            for directory in directories:
                with root.inspect(os.fsencode(directory)) as found:
                    if found is not None or not is_cached_directory(directory, names):
                        return False
                parent = os.fsencode(directory).rpartition(b"/")[0]
                if parent and not root.is_directory(parent):
                    return False
        return bool(directories) and [*directories] == await self._list_ignored(tree, directories)

    async def _list_ignored(self, tree: SessionTree, directories: Sequence[str]) -> list[str]:
        """Returns the directories that git ignores and that have no tracked files."""
        if not directories:
            return []
        git = Git(git_dir=self._host_git_dir(tree), work_tree=tree.files, runs_in_work_tree=True)
        given = [os.fsencode(directory) + b"/" for directory in directories]
        ignored = {path.rstrip(b"/") for path in await list_ignored(git, given, seconds=_GIT_SECONDS)}
        tracked = split_nul_separated(
            await git.run("ls-files", "-z", "--cached", "--", *directories, seconds=_GIT_SECONDS)
        )
        return [
            directory
            for directory in directories
            if (path := os.fsencode(directory)) in ignored
            and not any(entry.startswith(path + b"/") for entry in tracked)
        ]

    def _host_git_dir(self, tree: SessionTree) -> Path:
        assert tree.project is not None
        private_dir = private_dir_path(self._data, tree.organisation, tree.session_id)
        return host_git_dir_path(private_dir, tree.project.id, is_additional=tree.is_additional)


def _digest_of(project: SessionProject) -> str:
    return setup_digest(project.setup or "", resolve_cached_directories(project.cached_directories))


def _digest_of_start(project: SessionProject, request: SetupRequest) -> str:
    parts = [_digest_of(project), request.platform, request.inside_path]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()


def _load_record(git_dir: Path) -> SetupRecord:
    """Loads the record. A missing or damaged one proves nothing: the setup runs, and nothing is stored."""
    try:
        found = orjson.loads((git_dir / RECORD_NAME).read_bytes())
        return SetupRecord(
            is_fresh=found["is_fresh"] is True,
            is_isolated=found["is_isolated"] is True,
            started=str(found["started"]),
            creating=tuple(map(str, found["creating"])),
            restored=tuple(map(str, found["restored"])),
            key=str(found["key"]),
            completed=str(found["completed"]),
        )
    except (FileNotFoundError, orjson.JSONDecodeError, KeyError, TypeError):
        return SetupRecord()


def _save_record(git_dir: Path, record: SetupRecord) -> None:
    new = git_dir / f"{RECORD_NAME}.{os.getpid()}"
    new.write_bytes(orjson.dumps(asdict(record)))
    new.replace(git_dir / RECORD_NAME)


def _remove_directories(tree: Path, directories: Sequence[str]) -> None:
    """Removes directories that were restored incompletely. Nothing else has run in the tree since."""
    with SafeDirectory(tree) as root:
        for directory in directories:
            path = os.fsencode(directory)
            parent, _, name = path.rpartition(b"/")
            if root.is_directory(path):
                shutil.rmtree(name, dir_fd=root.open_directory(parent))


def _hash_files(tree: Path, paths: Sequence[bytes]) -> list[tuple[str, str]]:
    """Returns the path and the hash of each file. A file that is missing has no hash."""
    hashes: list[tuple[str, str]] = []
    remaining = _MAX_LOCK_BYTES
    with SafeDirectory(tree) as root:
        for path in sorted(paths):
            digest = ""
            with root.inspect(path) as found:
                if found is not None and found.is_file:
                    remaining -= found.status.st_size
                    if remaining < 0:
                        raise ValueError(f"the lock files have more than {_MAX_LOCK_BYTES} bytes")
                    with found.open_file() as descriptor:
                        digest = _hash_file(descriptor, found.status.st_size)
            hashes.append((path.decode("utf-8", "backslashreplace"), digest))
    return hashes


def _hash_file(descriptor: int, size: int) -> str:
    digest, remaining = hashlib.sha256(), size
    while remaining and (data := os.read(descriptor, min(_CHUNK_BYTES, remaining))):
        digest.update(data)
        remaining -= len(data)
    return digest.hexdigest()


def _log_failure(action: str, tree: SessionTree, error: Exception) -> None:
    log.warning(
        "a cache of the project could not be used",
        action=action,
        session=tree.session_id,
        reason=str(error) or type(error).__name__,
    )
