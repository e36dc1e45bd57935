"""Mirrors of projects: a bare repository on the host for each project, with all branches and tags of its source.

Sessions share the objects of a mirror, so no object is ever removed: git's garbage collection is off. Packs are merged.
"""

import asyncio
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Final

from footplate.domain.addresses import Reach
from footplate.domain.errors import InvalidRequest
from footplate.domain.organisations import directory_of
from footplate.domain.projects import Base, SessionProject, root_of
from footplate.trees import repacking, size_limits
from footplate.trees.git import Git, GitFailed, write_attributes
from footplate.trees.locks import locked
from footplate.trees.size_limits import RepositoryTooLarge
from footplate.trees.sources import Source, explained, not_written, opened

MIRRORS: Final = "mirrors"
"""Directory name inside the data directory."""
_REFS: Final = ("refs/heads/", "refs/tags/")
_LOCK: Final = "{}.lock"
_MOVED: Final = (b"(stale info)", b"(fetch first)", b"(non-fast-forward)", b"failed to update ref", b"cannot lock ref")
_READABLE_BY_ALL: Final = "0644"
_ONE_PACK: Final = {"fetch.unpackLimit": "1"}
"""A fetch writes one pack file, whose size can be limited, instead of many object files."""
_MOST_MEASURED: Final = 1000
_MERGE_SECONDS: Final = 300.0


class Written(Enum):
    DONE = "done"
    MOVED = "moved"
    """The branch was changed in the meantime."""
    CHECKED_OUT = "checked out"
    """The branch is checked out, and the files of that checkout would not follow the change."""


@dataclass(frozen=True, slots=True)
class Update:
    branch: str
    commit: str
    expected_commit: str | None
    """The commit that the branch must be at for the update; None if the branch must not exist."""


@dataclass(frozen=True, slots=True)
class _Offered:
    """The branches and tags of a source, and which branch is checked out."""

    refs: dict[str, str]
    head: str | None
    """A commit id."""
    branch: str | None


class Mirrors:
    def __init__(
        self, data: Path, *, root: str, address_policy: Reach, seconds: float, max_bytes: int = size_limits.BYTES
    ) -> None:
        """`root`: the directory of projects that have a path. `seconds`: timeout of a fetch. `most_bytes`: maximum size
        of a mirror, and of the files of a session's first commit.
        """
        self._max_bytes = max_bytes
        self._size_checked: dict[str, None] = {}
        """Commits whose files are within the limits, most recently checked last."""
        self._data = data.resolve()
        self._root = root
        self._address_policy = address_policy
        self._seconds = seconds
        self._merging: dict[Path, asyncio.Task[None]] = {}

    def mirror_path(self, organisation: str, project_id: str) -> Path:
        return self._data / MIRRORS / directory_of(organisation) / project_id

    async def refresh(self, organisation: str, project: SessionProject) -> Base:
        """Fetches new commits and returns the base for a session that starts now."""
        path = self.mirror_path(organisation, project.id)
        lock = path.with_name(_LOCK.format(path.name))
        root = root_of(self._root, organisation) if project.url is None else ""
        async with locked(lock, seconds=self._seconds), opened(project, root, self._address_policy) as source:
            git = await self._open_mirror(path, source)
            try:
                remote = await self._list_remote_refs(git, source)
                if remote.refs != await _known(git):
                    await self._fetch(git, source, [f"+{kind}*:{kind}*" for kind in _REFS])
                base = _base(remote, project, source)
                if base.commit is not None and not await has(git, base.commit):
                    await self._fetch(git, source, [base.commit])  # checked out in the source, but on no branch
                if base.commit is not None:
                    await self.check_size(git, base.commit)
                    base = replace(base, tree=await tree_of(git, base.commit))
            except GitFailed as error:
                raise explained(error, project) from error
            return base

    async def ensure_commit(self, organisation: str, project: SessionProject, commit: str) -> Path:
        """Returns the mirror's path after making sure that it has a session's base commit. The session may have started
        on another host.
        """
        path = self.mirror_path(organisation, project.id)
        if path.is_dir() and await has(Git(git_dir=path), commit):
            return path
        await self.refresh(organisation, project)
        lock = path.with_name(_LOCK.format(path.name))
        root = root_of(self._root, organisation) if project.url is None else ""
        async with locked(lock, seconds=self._seconds), opened(project, root, self._address_policy) as source:
            git = await self._open_mirror(path, source)
            if not await has(git, commit):
                try:
                    await self._fetch(git, source, [commit])
                except GitFailed as error:
                    raise explained(error, project) from error
        return path

    def merge_packs_later(self, organisation: str, project_id: str) -> None:
        """Merges the packs of a mirror in the background, if there are many. Nothing waits for it."""
        path = self.mirror_path(organisation, project_id)
        if path not in self._merging:
            self._merging[path] = task = asyncio.create_task(repacking.merge_packs(path, seconds=_MERGE_SECONDS))
            task.add_done_callback(lambda _: self._merging.pop(path))

    async def find_branch_commit(self, organisation: str, project: SessionProject, branch: str) -> str | None:
        """Returns the commit of a branch, as of the last refresh of the mirror."""
        git = Git(git_dir=self.mirror_path(organisation, project.id))
        return (await _known(git)).get(f"refs/heads/{branch}")

    async def push_branch(self, organisation: str, project: SessionProject, git: Git, update: Update) -> Written:
        """Updates a branch at the project's source, if it has not moved. `git` has the commit."""
        root = root_of(self._root, organisation) if project.url is None else ""
        async with opened(project, root, self._address_policy) as source:
            push_git = replace(
                git, configuration={**git.configuration, **source.configuration}, descriptors=source.descriptors
            )
            ref = f"refs/heads/{update.branch}"
            try:
                code, output = await push_git.run_with_exit_code(
                    *("push", "-q", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags"),
                    f"--force-with-lease={ref}:{update.expected_commit or ''}",
                    *source.push_options,
                    source.address,
                    f"{update.commit}:{ref}",
                    seconds=self._seconds,
                )
            except GitFailed as error:
                raise not_written(project, error.output) from error
        if code == 0:
            return Written.DONE
        if b"branch is currently checked out" in output:
            return Written.CHECKED_OUT
        if any(message in output for message in _MOVED):
            return Written.MOVED
        raise not_written(project, output.decode("utf-8", "replace"))

    async def _open_mirror(self, path: Path, source: Source) -> Git:
        git = Git(git_dir=path, configuration=source.configuration, inherited_descriptors=source.descriptors)
        if not (path / "info" / "attributes").exists():
            await asyncio.to_thread(path.mkdir, parents=True, exist_ok=True)
            # Agents read these objects, under any user id.
            await git.run("init", "-q", "--bare", "--template=", f"--shared={_READABLE_BY_ALL}")
            await asyncio.to_thread(write_attributes, path)
        return git

    async def _list_remote_refs(self, git: Git, source: Source) -> _Offered:
        patterns = ("HEAD", *(f"{kind}*" for kind in _REFS))
        arguments = ("ls-remote", "-q", "--symref", *source.fetch_options, source.address, *patterns)
        out = await size_limits.read_listing(git, *arguments, seconds=self._seconds)
        refs: dict[str, str] = {}
        head = branch = None
        for line in out.decode("utf-8", "surrogateescape").splitlines():
            value, _, name = line.partition("\t")
            if name == "HEAD" and value.startswith("ref: refs/heads/"):
                branch = _printable(value.removeprefix("ref: refs/heads/"))
            elif name == "HEAD":
                head = value
            elif name.startswith(_REFS) and not name.endswith("^{}"):
                refs[name] = value
        return _Offered(refs, head, branch)

    async def _fetch(self, git: Git, source: Source, refspecs: list[str]) -> None:
        max_fetch_bytes = await size_limits.remaining_fetch_bytes(git.git_dir, self._max_bytes)
        limited = replace(git, largest_file=max_fetch_bytes, configuration={**git.configuration, **_ONE_PACK})
        try:
            await limited.run(
                *("fetch", "-q", "--prune", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"),
                *source.fetch_options,
                source.address,
                *refspecs,
                seconds=self._seconds,
            )
        except BaseException as error:
            largest = await asyncio.shield(asyncio.to_thread(size_limits.remove_partial_packs, git.git_dir))
            if isinstance(error, GitFailed) and largest >= max_fetch_bytes:
                raise RepositoryTooLarge(f"a fetch needs more than the remaining {max_fetch_bytes} bytes") from error
            raise

    async def check_size(self, git: Git, commit: str) -> None:
        """Raises `RepositoryTooLarge` if the commit has too many files or they are too large."""
        if commit in self._size_checked:
            return
        await size_limits.check_files(git, commit, self._max_bytes)
        while len(self._size_checked) >= _MOST_MEASURED:
            self._size_checked.pop(next(iter(self._size_checked)))
        self._size_checked[commit] = None


def _printable(name: str) -> str | None:
    """Returns None if the name is not valid text, because the log cannot store it."""
    return None if any("\udc80" <= char <= "\udcff" for char in name) else name


async def has(git: Git, commit: str) -> bool:
    code, _ = await git.run_with_exit_code("cat-file", "-e", f"{commit}^{{commit}}", accept=(0, 1, 128))
    return code == 0


async def tree_of(git: Git, commit: str) -> str:
    return (await git.run("rev-parse", "--verify", f"{commit}^{{tree}}")).decode().strip()


async def _known(git: Git) -> dict[str, str]:
    out = await git.run("for-each-ref", "--format=%(objectname)%09%(refname)", *_REFS)
    lines = out.decode("utf-8", "surrogateescape").splitlines()
    return {name: value for value, _, name in (line.partition("\t") for line in lines)}


def _base(remote: _Offered, project: SessionProject, source: Source) -> Base:
    if project.branch is not None:
        commit = remote.refs.get(f"refs/heads/{project.branch}")
        if commit is None and remote.refs:
            raise InvalidRequest(
                f"The project {project.name!r} has no branch {project.branch!r}.",
                field="branch",
                help_text="Set an existing branch, or remove the setting to use the branch that is checked out.",
            )
        return Base(commit, project.branch)
    return Base(remote.head, remote.branch or source.initial_branch)
