"""Manages the working trees of sessions on this host: chooses the base commit, checks out the files and takes
snapshots. It also collects the commits that the agent made, so that they are stored with the snapshot.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from footplate.domain.errors import Fenced
from footplate.domain.files.snapshots import (
    HOME_TREE,
    NO_FILES,
    SCRATCH_TREE,
    ChildFiles,
    CollectedCommits,
    SessionFiles,
    StoredSnapshot,
    TreeMerge,
    base_packs_prefix,
    packs_prefix,
)
from footplate.domain.ports.engine import CheckedOutTree, CheckoutTarget, SessionTree, Trees
from footplate.domain.ports.harness import Environment
from footplate.domain.projects.project import BaseCommit, SessionProject, Trust
from footplate.domain.projects.project_instructions import ProjectInstructions
from footplate.lease_clock import lease_clock
from footplate.trees import pack_merging
from footplate.trees.checkout import (
    ADDITIONAL_TREES_NAME,
    HOST_GIT_DIR_NAME,
    UNFINISHED_GIT_DIR_NAME,
    CheckoutRequest,
    check_out_base,
    host_git_dir_path,
    init_git_dir,
    is_checked_out,
    private_dir_path,
)
from footplate.trees.delivery.agent_commits import collect_commits
from footplate.trees.delivery.child_merge import compute_merge
from footplate.trees.file_locks import hold_lock
from footplate.trees.git import Git
from footplate.trees.projects import project_instructions
from footplate.trees.projects.included_files import IncludedFiles, IncludeTarget
from footplate.trees.projects.mirrors import Mirrors
from footplate.trees.projects.tree_setup import remove_record, write_fresh_record
from footplate.trees.snapshots.home_scan import (
    load_scan_record,
    save_scan_record,
    scan_home,
    write_exclude_file,
)
from footplate.trees.snapshots.incremental_snapshots import IncrementalSnapshots
from footplate.trees.snapshots.pack_consolidation import PackConsolidator
from footplate.trees.snapshots.staging_area import SnapshotLimits
from footplate.trees.snapshots.upload import SnapshotUploader, TreeLocation
from footplate.trees.tree_recovery import (
    RecoveryRequest,
    is_based_on,
    record_base_snapshots,
    recover_tree,
    snapshot_key,
    update_alternates,
)

log = structlog.get_logger(__name__)

_LOCK_NAME: Final = "lock"
_MAX_CACHED_INSTRUCTIONS: Final = 32
DEFAULT_HOME_BYTES: Final = 256 << 20
_HOME_SECONDS: Final = 60.0
_MERGE_SECONDS: Final = 10.0
"""Timeout for merging the packs of one session. The session's next turn waits for it."""


class SessionTrees(Trees):
    def __init__(
        self,
        data: Path,
        mirrors: Mirrors,
        uploader: SnapshotUploader,
        consolidator: PackConsolidator | None = None,
        *,
        seconds: float,
        max_home_bytes: int = DEFAULT_HOME_BYTES,
        included_files: IncludedFiles | None = None,
    ) -> None:
        """`max_home_bytes`: a larger HOME is not stored. 0: none is."""
        self._data = data.resolve()
        self._mirrors = mirrors
        self._uploader = uploader
        self._consolidator = consolidator
        self._seconds = seconds
        self._included_files = included_files or IncludedFiles()
        self._home_limits = SnapshotLimits(
            max_file_bytes=max_home_bytes, max_new_bytes=max_home_bytes, timeout_seconds=_HOME_SECONDS
        )
        self._home_scans: dict[Path, object] = {}
        """Records of scans during running turns, by the host's git directory."""
        self._incremental_snapshots: dict[Path, IncrementalSnapshots] = {}
        """Incremental snapshots of running turns, by the host's git directory."""
        self._instructions: dict[tuple[str, str, str, Trust], ProjectInstructions] = {}
        """Instructions by base commit. A commit never changes, so they are not read again for each turn."""

    def private_dir(self, organisation: str, session_id: str) -> Path:
        return private_dir_path(self._data, organisation, session_id)

    async def resolve_base(self, organisation: str, project: SessionProject, commit: str | None = None) -> BaseCommit:
        return await self._mirrors.refresh(organisation, project, commit)

    async def check_out(
        self,
        organisation: str,
        session_id: str,
        projects: Sequence[SessionProject],
        target: CheckoutTarget,
        files: SessionFiles = NO_FILES,
        *,
        deadline: float,
    ) -> Sequence[CheckedOutTree]:
        checked_out = [
            self._checked_out_tree(organisation, project, target, number) for number, project in enumerate(projects)
        ]
        projects_and_trees = [(project, found.tree) for project, found in zip(projects, checked_out, strict=True)]
        trees = [
            SessionTree(
                organisation=organisation, session_id=session_id, project=project, files=tree, is_additional=number > 0
            )
            for number, (project, tree) in enumerate(projects_and_trees or [(None, target.tree)])
        ]
        for tree in trees:
            if tree.project is not None and tree.project.setup is None:
                remove_record(self._host_git_dir(tree))
        if all(_starts_empty(tree, files) for tree in trees):
            return checked_out
        async with self._lock_trees(organisation, session_id):
            for number, tree in enumerate(trees):
                objects_inside = checked_out[number].objects_inside_path if checked_out else None
                if not self._is_up_to_date(tree, files):
                    _check_lease(session_id, deadline)
                    await self._check_out_tree(tree, objects_inside, target.owner, files)
                elif tree.project is not None and objects_inside is not None:
                    await self._connect_objects(organisation, tree.project, tree.files, objects_inside, target.owner)
        return checked_out

    def _lock_trees(self, organisation: str, session_id: str) -> AbstractAsyncContextManager[None]:
        """Also held to find out that a tree is up to date: another worker on this host, whose lease has expired, may
        have begun to replace it.
        """
        return hold_lock(self.private_dir(organisation, session_id) / _LOCK_NAME, seconds=self._seconds)

    async def _connect_objects(
        self, organisation: str, project: SessionProject, tree: Path, objects_inside: str, owner: tuple[int, int]
    ) -> None:
        """Connects a tree that is up to date to the objects of its project: the last turn may have run on another
        backend, which sees them at another path. The trees share them; a mirror never removes any.
        """
        if not self._mirrors.mirror_path(organisation, project.id).is_dir():
            await self._ensure_mirror(organisation, project)
        await asyncio.to_thread(update_alternates, tree, objects_inside, owner)

    def _is_up_to_date(self, tree: SessionTree, files: SessionFiles) -> bool:
        host_git_dir, stored = self._host_git_dir(tree), files.snapshots.get(_tree_name(tree))
        return _starts_empty(tree, files) or (is_checked_out(host_git_dir.parent) and is_based_on(host_git_dir, stored))

    async def _check_out_tree(
        self, tree: SessionTree, objects_inside: str | None, user: tuple[int, int], files: SessionFiles
    ) -> None:
        stored, project = files.snapshots.get(_tree_name(tree)), tree.project
        if project is None:
            assert stored is not None
            await recover_tree(
                self._uploader,
                RecoveryRequest(
                    location=self._locate_tree(tree, files), stored=stored, user=user, is_private=tree.is_home
                ),
            )
            return
        base = project.base or await self.resolve_base(tree.organisation, project)
        mirror = await self._ensure_mirror(tree.organisation, project)
        root = self._mirrors.resolve_root(tree.organisation, project)

        async def finish(git_dir: Path) -> None:
            await self._included_files.copy(project, root, IncludeTarget(git_dir=git_dir, tree=tree.files, user=user))
            if stored is None and project.setup is not None:
                write_fresh_record(git_dir)

        if stored is not None:
            location = self._locate_tree(tree, files)
            request = RecoveryRequest(
                location=location,
                stored=stored,
                user=user,
                branch=base.branch,
                mirror=mirror,
                objects_inside=objects_inside,
                finish=finish,
            )
            await recover_tree(self._uploader, request)
            return
        assert objects_inside is not None
        await check_out_base(
            CheckoutRequest(
                project=project,
                base=base,
                mirror=mirror,
                objects_inside=objects_inside,
                private_dir=self._host_git_dir(tree).parent,
                tree=tree.files,
                user=user,
                finish=finish,
            )
        )

    async def store_snapshot(
        self,
        tree: SessionTree,
        last: StoredSnapshot | None,
        collected: CollectedCommits | None = None,
        *,
        incremental: bool = False,
    ) -> StoredSnapshot | None:
        location = self._locate_tree(tree)
        snapshots = None
        if incremental:
            snapshots = self._incremental_snapshots.setdefault(
                location.git_dir, self._uploader.create_incremental_snapshots(location)
            )
        if not location.git_dir.is_dir():
            if snapshots is not None:
                await snapshots.watch_empty_tree()
            if last is None and not await asyncio.to_thread(_has_entries, tree.files):
                return None
            await _create_host_git_dir(location.git_dir)
        stored = await self._uploader.take_and_upload(location, last, collected, snapshots)
        if stored != last:
            record_base_snapshots(location.git_dir, [last, stored])
        return stored

    async def restore_home(
        self,
        organisation: str,
        session_id: str,
        home: Path,
        owner: tuple[int, int],
        files: SessionFiles,
        *,
        deadline: float,
    ) -> None:
        tree = SessionTree(
            organisation=organisation,
            session_id=session_id,
            project=None,
            files=home,
            is_additional=True,
            is_home=True,
        )
        if _starts_empty(tree, files):
            return
        async with self._lock_trees(organisation, session_id):
            if not self._is_up_to_date(tree, files):
                _check_lease(session_id, deadline)
                await self._check_out_tree(tree, None, owner, files)

    async def store_home(
        self, home: SessionTree, last: StoredSnapshot | None, *, is_final: bool
    ) -> StoredSnapshot | None:
        """Only a record from the end of a turn shows that nothing has changed until the end of another: a program may
        change a file that it has mapped into memory without changing the file's status.
        """
        # HOME is empty in most turns, and another thread would cost more than this check.
        if not self._home_limits.max_new_bytes or (last is None and not _has_entries(home.files)):
            return last
        location = self._locate_tree(home)
        scan = await asyncio.to_thread(scan_home, home.files, self._home_limits.max_new_bytes)
        if scan is None:
            if is_final:
                log.warning("HOME is too large to be stored", action="trees.home_too_large", session=home.session_id)
            return last
        known = None if is_final else self._home_scans.get(location.git_dir)
        if [scan.digest, snapshot_key(last)] == (known or load_scan_record(location.git_dir)):
            return last
        if not location.git_dir.is_dir():
            if last is None and scan.file_count == 0:
                return None
            await _create_host_git_dir(location.git_dir)
        write_exclude_file(location.git_dir)
        stored = await self._uploader.take_and_upload(replace(location, limits=self._home_limits), last)
        if stored != last:
            record_base_snapshots(location.git_dir, [last, stored])
        record = [scan.digest, snapshot_key(stored)]
        if is_final:
            save_scan_record(location.git_dir, record)
        elif scan.is_settled(time.time_ns()):
            self._home_scans[location.git_dir] = record
        return stored

    async def stop_watching(self, tree: SessionTree, *, merge_packs: bool = True) -> None:
        host_git_dir = self._host_git_dir(tree)
        self._home_scans.pop(host_git_dir, None)
        if (snapshots := self._incremental_snapshots.pop(host_git_dir, None)) is not None:
            await snapshots.close()
        if not merge_packs:
            return
        await pack_merging.merge_packs(host_git_dir, seconds=_MERGE_SECONDS)
        if tree.project is not None:
            self._mirrors.merge_packs_later(tree.organisation, tree.project.id)

    def consolidate_packs_later(self, tree: SessionTree, files: SessionFiles) -> None:
        name = _tree_name(tree)
        if self._consolidator is not None:
            location = self._locate_tree(tree, files)
            self._consolidator.consolidate_later(location, files.snapshots[name], tree.session_id, name)

    async def collect_commits(
        self, tree: SessionTree, environment: Environment, inside_path: str, last: StoredSnapshot | None
    ) -> CollectedCommits:
        base = None if tree.project is None else tree.project.base_commit
        before = None if last is None else last.snapshot
        return await collect_commits(environment, inside_path, Git(git_dir=self._host_git_dir(tree)), base, before)

    async def merge_child(
        self, tree: SessionTree, ours: StoredSnapshot | None, child: ChildFiles, *, replaces: bool
    ) -> TreeMerge:
        name, git_dir = _tree_name(tree), self._host_git_dir(tree)
        theirs = child.end.snapshots.get(name)
        if theirs is None:
            return TreeMerge()
        if not git_dir.is_dir():
            await _create_host_git_dir(git_dir)
        location = replace(self._locate_tree(replace(tree, session_id=child.session_id), child.end), git_dir=git_dir)
        child_git_dir = self._host_git_dir(tree, child.session_id)
        await self._uploader.fetch_objects(replace(location, local_sources=[child_git_dir]), theirs)
        return await compute_merge(git_dir, ours, child.start.snapshots.get(name), theirs, replaces=replaces)

    def mark_for_rebuild(self, organisation: str, session_id: str) -> None:
        """Makes the next turn rebuild the trees, whatever happens to the files now. No turn may be running."""
        private_dir = self.private_dir(organisation, session_id)
        for directory in (private_dir, *(private_dir / ADDITIONAL_TREES_NAME).glob("*")):
            if is_checked_out(directory):
                shutil.rmtree(directory / UNFINISHED_GIT_DIR_NAME, ignore_errors=True)
                (directory / HOST_GIT_DIR_NAME).rename(directory / UNFINISHED_GIT_DIR_NAME)

    def _host_git_dir(self, tree: SessionTree, session_id: str | None = None) -> Path:
        """`session_id`: another session with the same projects."""
        private_dir = self.private_dir(tree.organisation, session_id or tree.session_id)
        return host_git_dir_path(private_dir, _tree_name(tree), is_additional=tree.is_additional)

    def _locate_tree(self, tree: SessionTree, files: SessionFiles = NO_FILES) -> TreeLocation:
        organisation, name = tree.organisation, _tree_name(tree)
        base = None if tree.project is None else tree.project.base_commit
        return TreeLocation(
            git_dir=self._host_git_dir(tree),
            tree=tree.files,
            prefix=packs_prefix(f"{organisation}/{tree.session_id}", name),
            parent_prefixes=[packs_prefix(f"{organisation}/{owner}", name) for owner in files.ancestors],
            base=base,
            base_prefix=None if base is None else base_packs_prefix(organisation, name),
            local_sources=[self._host_git_dir(tree, owner) for owner in files.ancestors],
        )

    async def load_instructions(self, organisation: str, project: SessionProject) -> ProjectInstructions:
        commit = project.base_commit
        if commit is None or project.trust is Trust.NOTHING:
            return ProjectInstructions()
        key = (organisation, project.id, commit, project.trust)
        if key not in self._instructions:
            mirror = await self._ensure_mirror(organisation, project)
            found = await project_instructions.read_instructions(Git(git_dir=mirror), commit, project.trust)
            while len(self._instructions) >= _MAX_CACHED_INSTRUCTIONS:
                self._instructions.pop(next(iter(self._instructions)))
            self._instructions[key] = found
        return self._instructions[key]

    def open_git(self, organisation: str, session_id: str, tree: Path, user: tuple[int, int] | None = None) -> Git:
        """Runs git on the tree of the session's first project, with the host's git directory."""
        return Git(git_dir=self.private_dir(organisation, session_id) / HOST_GIT_DIR_NAME, work_tree=tree, user=user)

    async def _ensure_mirror(self, organisation: str, project: SessionProject) -> Path:
        path = self._mirrors.mirror_path(organisation, project.id)
        if (commit := project.base_commit) is not None:
            return await self._mirrors.ensure_commit(organisation, project, commit)
        if not path.is_dir():
            await self._mirrors.refresh(organisation, project)
        return path

    def _checked_out_tree(
        self, organisation: str, project: SessionProject, target: CheckoutTarget, number: int
    ) -> CheckedOutTree:
        objects, inside = self._mirrors.mirror_path(organisation, project.id) / "objects", target.objects_inside_path
        tree = target.tree if number == 0 else target.additional_directory / project.name
        inside_path = target.inside_path if number == 0 else f"{target.additional_inside_path}/{project.name}"
        return CheckedOutTree(
            project_id=project.id,
            tree=tree,
            inside_path=inside_path,
            objects=objects,
            objects_inside_path=str(inside(objects) if callable(inside) else objects)
            if inside is None or callable(inside)
            else f"{inside}/{project.id}",
        )


def _tree_name(tree: SessionTree) -> str:
    if tree.is_home:
        return HOME_TREE
    return SCRATCH_TREE if tree.project is None else tree.project.id


def _starts_empty(tree: SessionTree, files: SessionFiles) -> bool:
    """Whether there is nothing to check out: no project, and no files in the log."""
    return tree.project is None and files.snapshots.get(_tree_name(tree)) is None


def _check_lease(session_id: str, deadline: float) -> None:
    if lease_clock() >= deadline:
        raise Fenced(f"This worker's lease on session {session_id} expired before its files were restored.")


def _has_entries(directory: Path) -> bool:
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        return False


async def _create_host_git_dir(git_dir: Path) -> None:
    """Creates the host's git directory of a scratch tree, once there are files to store."""
    new = git_dir.with_name(f"{HOST_GIT_DIR_NAME}.{os.getpid()}")
    await asyncio.to_thread(shutil.rmtree, new, ignore_errors=True)
    await asyncio.to_thread(new.mkdir, parents=True)
    await init_git_dir(new, "main", None)
    await asyncio.to_thread(new.rename, git_dir)
