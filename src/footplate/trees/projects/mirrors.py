"""Mirrors of projects: for each project, a bare git repository on this host with all branches and tags of its source.

Sessions share the objects of a mirror, so no object is ever removed. git's garbage collection is off, and
packs are only merged.
"""

import asyncio
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Final

from footplate.domain.errors import InvalidRequest
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.organisations.organisation_names import directory_name
from footplate.domain.projects.project import BaseCommit, SessionProject, resolve_projects_root
from footplate.trees import pack_merging
from footplate.trees.file_locks import hold_lock
from footplate.trees.git import Git, GitFailed, write_attributes
from footplate.trees.projects import size_limits
from footplate.trees.projects.project_repository import RepositorySource, fetch_error, open_source, push_rejected_error
from footplate.trees.projects.size_limits import RepositoryTooLarge

MIRRORS_DIRECTORY: Final = "mirrors"
"""Directory name inside the data directory."""
_REFS: Final = ("refs/heads/", "refs/tags/")
_LOCK_NAME: Final = "{}.lock"
_BRANCH_MOVED_MESSAGES: Final = (
    b"(stale info)",
    b"(fetch first)",
    b"(non-fast-forward)",
    b"failed to update ref",
    b"cannot lock ref",
)
_READABLE_BY_ALL: Final = "0644"
_FETCH_ONE_PACK: Final = {"fetch.unpackLimit": "1"}
"""A fetch writes one pack file, whose size can be limited, instead of many object files."""
_MAX_SIZE_CHECKED: Final = 1000
_MERGE_SECONDS: Final = 300.0


class BranchUpdateResult(Enum):
    DONE = "done"
    MOVED = "moved"
    """The branch was changed in the meantime."""
    CHECKED_OUT = "checked out"
    """The branch is checked out, and the files of that checkout would not follow the change."""


@dataclass(frozen=True, slots=True)
class BranchUpdate:
    branch: str
    commit: str
    expected_commit: str | None
    """The commit that the branch must be at for the update; None if the branch must not exist."""


@dataclass(frozen=True, slots=True)
class _RemoteRefs:
    """The branches and tags of a source, and which branch is checked out."""

    refs: dict[str, str]
    head: str | None
    """A commit id."""
    branch: str | None


class Mirrors:
    def __init__(
        self,
        data: Path,
        *,
        root: str,
        address_policy: AddressPolicy,
        seconds: float,
        max_bytes: int = size_limits.DEFAULT_MAX_BYTES,
    ) -> None:
        """`root`: the directory of projects that have a path. `seconds`: timeout of a fetch. `max_bytes`: maximum size
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

    def resolve_root(self, organisation: str, project: SessionProject) -> str:
        """Returns the directory of the organisation's projects. Empty for a project with a URL."""
        return resolve_projects_root(self._root, organisation) if project.url is None else ""

    def mirror_path(self, organisation: str, project_id: str) -> Path:
        return self._data / MIRRORS_DIRECTORY / directory_name(organisation) / project_id

    async def refresh(self, organisation: str, project: SessionProject, commit: str | None = None) -> BaseCommit:
        """Fetches new commits and returns the base for a session that starts now: the given commit, or the head of the
        project's branch.
        """
        path = self.mirror_path(organisation, project.id)
        lock = path.with_name(_LOCK_NAME.format(path.name))
        root = self.resolve_root(organisation, project)
        async with hold_lock(lock, seconds=self._seconds), open_source(project, root, self._address_policy) as source:
            git = await self._open_mirror(path, source)
            try:
                remote = await self._list_remote_refs(git, source)
                if remote.refs != await _list_local_refs(git):
                    await self._fetch(git, source, [f"+{kind}*:{kind}*" for kind in _REFS])
                base = _select_base(remote, project, source)
                base = base if commit is None else replace(base, commit=commit, is_selected=True)
                if base.commit is not None and not await has_commit(git, base.commit):
                    await self._fetch(git, source, [base.commit])  # in the source, but on no branch
                if base.commit is not None:
                    await self.check_size(git, base.commit)
                    base = replace(base, tree=await read_commit_tree(git, base.commit))
            except GitFailed as error:
                raise fetch_error(error, project, root) from error
            return base

    async def ensure_commit(self, organisation: str, project: SessionProject, commit: str) -> Path:
        """Returns the mirror's path after making sure that it has a session's base commit. The session may have started
        on another host.
        """
        path = self.mirror_path(organisation, project.id)
        if path.is_dir() and await has_commit(Git(git_dir=path), commit):
            return path
        await self.refresh(organisation, project)
        lock = path.with_name(_LOCK_NAME.format(path.name))
        root = self.resolve_root(organisation, project)
        async with hold_lock(lock, seconds=self._seconds), open_source(project, root, self._address_policy) as source:
            git = await self._open_mirror(path, source)
            if not await has_commit(git, commit):
                try:
                    await self._fetch(git, source, [commit])
                except GitFailed as error:
                    raise fetch_error(error, project, root) from error
        return path

    def merge_packs_later(self, organisation: str, project_id: str) -> None:
        """Merges the packs of a mirror in the background, if there are many. Nothing waits for it."""
        path = self.mirror_path(organisation, project_id)
        if path not in self._merging:
            self._merging[path] = task = asyncio.create_task(pack_merging.merge_packs(path, seconds=_MERGE_SECONDS))
            task.add_done_callback(lambda _: self._merging.pop(path))

    async def find_branch_commit(self, organisation: str, project: SessionProject, branch: str) -> str | None:
        """Returns the commit of a branch, as of the last refresh of the mirror."""
        git = Git(git_dir=self.mirror_path(organisation, project.id))
        return (await _list_local_refs(git)).get(f"refs/heads/{branch}")

    async def push_branch(
        self, organisation: str, project: SessionProject, git: Git, update: BranchUpdate
    ) -> BranchUpdateResult:
        """Updates a branch at the project's source, if it has not moved. `git` has the commit."""
        root = self.resolve_root(organisation, project)
        async with open_source(project, root, self._address_policy) as source:
            push_git = replace(
                git,
                configuration={**git.configuration, **source.configuration},
                inherited_descriptors=source.descriptors,
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
                raise push_rejected_error(project, root, error.output) from error
        if code == 0:
            return BranchUpdateResult.DONE
        if b"branch is currently checked out" in output:
            return BranchUpdateResult.CHECKED_OUT
        if any(message in output for message in _BRANCH_MOVED_MESSAGES):
            return BranchUpdateResult.MOVED
        raise push_rejected_error(project, root, output.decode("utf-8", "replace"))

    async def _open_mirror(self, path: Path, source: RepositorySource) -> Git:
        git = Git(git_dir=path, configuration=source.configuration, inherited_descriptors=source.descriptors)
        if not (path / "info" / "attributes").exists():
            await asyncio.to_thread(path.mkdir, parents=True, exist_ok=True)
            # Agents read these objects, under any user id.
            await git.run("init", "-q", "--bare", "--template=", f"--shared={_READABLE_BY_ALL}")
            await asyncio.to_thread(write_attributes, path)
        return git

    async def _list_remote_refs(self, git: Git, source: RepositorySource) -> _RemoteRefs:
        patterns = ("HEAD", *(f"{kind}*" for kind in _REFS))
        arguments = ("ls-remote", "-q", "--symref", *source.fetch_options, source.address, *patterns)
        out = await size_limits.read_listing(git, *arguments, seconds=self._seconds)
        refs: dict[str, str] = {}
        head = branch = None
        for line in out.decode("utf-8", "surrogateescape").splitlines():
            value, _, name = line.partition("\t")
            if name == "HEAD" and value.startswith("ref: refs/heads/"):
                branch = _printable_or_none(value.removeprefix("ref: refs/heads/"))
            elif name == "HEAD":
                head = value
            elif name.startswith(_REFS) and not name.endswith("^{}"):
                refs[name] = value
        return _RemoteRefs(refs, head, branch)

    async def _fetch(self, git: Git, source: RepositorySource, refspecs: list[str]) -> None:
        max_fetch_bytes = await size_limits.remaining_fetch_bytes(git.git_dir, self._max_bytes)
        limited = replace(git, max_file_bytes=max_fetch_bytes, configuration={**git.configuration, **_FETCH_ONE_PACK})
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
        while len(self._size_checked) >= _MAX_SIZE_CHECKED:
            self._size_checked.pop(next(iter(self._size_checked)))
        self._size_checked[commit] = None


def _printable_or_none(name: str) -> str | None:
    """Returns None if the name is not valid text, because the log cannot store it."""
    return None if any("\udc80" <= char <= "\udcff" for char in name) else name


async def has_commit(git: Git, commit: str) -> bool:
    code, _ = await git.run_with_exit_code("cat-file", "-e", f"{commit}^{{commit}}", accept=(0, 1, 128))
    return code == 0


async def read_commit_tree(git: Git, commit: str) -> str:
    return (await git.run("rev-parse", "--verify", f"{commit}^{{tree}}")).decode().strip()


async def _list_local_refs(git: Git) -> dict[str, str]:
    out = await git.run("for-each-ref", "--format=%(objectname)%09%(refname)", *_REFS)
    lines = out.decode("utf-8", "surrogateescape").splitlines()
    return {name: value for value, _, name in (line.partition("\t") for line in lines)}


def _select_base(remote: _RemoteRefs, project: SessionProject, source: RepositorySource) -> BaseCommit:
    if project.branch is not None:
        commit = remote.refs.get(f"refs/heads/{project.branch}")
        if commit is None and remote.refs:
            raise InvalidRequest(
                f"The project {project.name!r} has no branch {project.branch!r}.",
                field="branch",
                help_text="Set an existing branch, or remove the setting to use the branch that is checked out.",
            )
        return BaseCommit(commit, project.branch)
    return BaseCommit(remote.head, remote.branch or source.initial_branch)
