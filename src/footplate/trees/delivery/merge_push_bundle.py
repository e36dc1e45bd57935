"""Delivers a session's work: merges it into a branch of its project, pushes it as a branch, or exports it as a bundle.

The work happens in a temporary git directory that shares the objects of the session and of the project's mirror. The
only lasting change is one atomic update of a branch. If the process dies before the update, nothing has changed. If it
dies after the update, a retry detects that the work was delivered.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from footplate import failpoints
from footplate.domain.errors import Conflict
from footplate.domain.files.delivery import (
    BUNDLE_REF,
    BranchCheckedOut,
    Delivery,
    DeliveryJournal,
    DeliveryResult,
    DeliveryStatus,
)
from footplate.domain.organisations.fair_limiter import OrganisationLimiter
from footplate.domain.projects.write_leases import HeldLease, WriteLeases
from footplate.trees.checkout import init_git_dir, write_alternates
from footplate.trees.delivery import merge_commits
from footplate.trees.delivery.agent_commits import import_missing_commits
from footplate.trees.diffs.diff_reader import DiffReader
from footplate.trees.git import Git, NoGit
from footplate.trees.projects.mirrors import BranchUpdate, BranchUpdateResult, Mirrors, has_commit
from footplate.trees.projects.project_repository import NoRepository
from footplate.trees.projects.size_limits import RepositoryTooLarge
from footplate.trees.scratch_directory import scratch_directory
from footplate.trees.snapshots.packs import tree_ids

_DIRECTORY_NAME: Final = "leaving"
"""Directory name inside the data directory."""
_MAX_ATTEMPTS: Final = 10
"""Attempts before giving up on a branch that other writers keep changing."""


class Deliverer:
    def __init__(
        self, data: Path, reader: DiffReader, mirrors: Mirrors, leases: WriteLeases, *, max_concurrent: int
    ) -> None:
        """`max_concurrent`: maximum number of concurrent git operations; others wait."""
        self._directory = data.resolve() / _DIRECTORY_NAME
        self._reader = reader
        self._mirrors = mirrors
        self._leases = leases
        self._slots, self._bundles = OrganisationLimiter(max_concurrent), OrganisationLimiter(max_concurrent)

    async def merge(
        self,
        delivery: Delivery,
        branch: str | None,
        *,
        actor: str,
        wait: float,
        journal: DeliveryJournal | None = None,
    ) -> DeliveryResult:
        base = delivery.project.base
        into = branch or (base.branch if base is not None else "main")
        owner = f"the merge of session {delivery.session_id} by {actor}"
        async with self._hold_branch_lease(delivery, into, owner, wait, journal) as lease:
            return await self._merge(delivery, into, lease, journal)

    async def push(
        self,
        delivery: Delivery,
        branch: str | None,
        *,
        actor: str,
        wait: float,
        journal: DeliveryJournal | None = None,
    ) -> DeliveryResult:
        name = branch or f"footplate/{delivery.session_id}"
        owner = f"the push of session {delivery.session_id} by {actor}"
        async with self._hold_branch_lease(delivery, name, owner, wait, journal) as lease:
            return await self._push(delivery, name, lease, journal)

    @contextlib.asynccontextmanager
    async def bundle(self, delivery: Delivery) -> AsyncGenerator[AsyncIterator[bytes], None]:
        async with (
            _report_repository_errors(),
            self._bundles.acquire_slot(delivery.organisation),
            self._open_repository(delivery) as git,
        ):
            work_commit = await merge_commits.create_session_commit(git, delivery)
            await git.run("update-ref", BUNDLE_REF, work_commit)
            base = delivery.project.base_commit
            known = [] if base is None else [f"^{base}"]
            async with git.stream_output("bundle", "create", "-q", "-", BUNDLE_REF, *known) as pieces:
                yield pieces

    @contextlib.asynccontextmanager
    async def _hold_branch_lease(
        self, delivery: Delivery, branch: str, owner: str, wait: float, journal: DeliveryJournal | None
    ) -> AsyncGenerator[HeldLease, None]:
        project = delivery.project
        target, display_name = (
            f"{project.id} refs/heads/{branch}",
            f"the branch {branch!r} of the project {project.name!r}",
        )
        async with (
            self._leases.hold(
                delivery.organisation,
                target,
                owner=journal.owner if journal else owner,
                wait=wait,
                display_name=display_name,
                successor=journal is not None,
            ) as lease,
            _report_repository_errors(),
        ):
            yield lease

    async def _merge(
        self, delivery: Delivery, branch: str, lease: HeldLease, journal: DeliveryJournal | None
    ) -> DeliveryResult:
        for _ in range(_MAX_ATTEMPTS):
            target = await self._current_commit(delivery, branch)
            async with self._slots.acquire_slot(delivery.organisation), self._open_repository(delivery) as git:
                if (earlier := await _find_earlier_update(git, target, journal)) is not None:
                    return earlier
                if target is not None:
                    await self._mirrors.check_size(git, target)
                planned = await merge_commits.plan_merge(git, delivery, target, branch)
                if planned.status == "unchanged":
                    return _create_result("unchanged", branch, planned.commit, target)
                result = _create_result(planned.status, branch, planned.commit, target)
                if await self._update_branch(delivery, git, result, lease, journal):
                    return result
        raise _busy_branch_error(branch)

    async def _push(
        self, delivery: Delivery, branch: str, lease: HeldLease, journal: DeliveryJournal | None
    ) -> DeliveryResult:
        for _ in range(_MAX_ATTEMPTS):
            target = await self._current_commit(delivery, branch)
            async with self._slots.acquire_slot(delivery.organisation), self._open_repository(delivery) as git:
                if (earlier := await _find_earlier_update(git, target, journal)) is not None:
                    return earlier
                work_commit = await merge_commits.create_session_commit(git, delivery)
                if target == work_commit:
                    return _create_result("unchanged", branch, work_commit, target)
                code = (
                    0
                    if target is None
                    else (await git.run_with_exit_code("merge-base", "--is-ancestor", target, work_commit))[0]
                )
                if code != 0:
                    raise Conflict(
                        f"The branch {branch!r} has commits that the session's work does not have.",
                        help_text="Nothing was changed. Push to another branch, or merge into this one.",
                    )
                result = _create_result("pushed", branch, work_commit, target)
                if await self._update_branch(delivery, git, result, lease, journal):
                    return result
        raise _busy_branch_error(branch)

    async def _current_commit(self, delivery: Delivery, branch: str) -> str | None:
        """Returns the current commit of the branch."""
        project = replace(delivery.project, branch=None)
        await self._mirrors.refresh(delivery.organisation, project)
        return await self._mirrors.find_branch_commit(delivery.organisation, project, branch)

    async def _update_branch(
        self, delivery: Delivery, git: Git, planned: DeliveryResult, lease: HeldLease, journal: DeliveryJournal | None
    ) -> bool:
        """Returns False if the branch has moved, so the new commit has to be built again."""
        update = BranchUpdate(planned.branch, planned.commit, planned.before)
        if journal is not None:
            await journal.record_update(planned)
        await failpoints.hit("before_ref")
        await lease.check()
        result = await self._mirrors.push_branch(delivery.organisation, delivery.project, git, update)
        await failpoints.hit("after_ref")
        if result is BranchUpdateResult.CHECKED_OUT:
            raise BranchCheckedOut(update.branch, delivery.project.name)
        return result is BranchUpdateResult.DONE

    @contextlib.asynccontextmanager
    async def _open_repository(self, delivery: Delivery) -> AsyncGenerator[Git, None]:
        """Creates a git directory with all objects of the session and the project."""
        if (base := delivery.project.base_commit) is not None:
            mirror = await self._mirrors.ensure_commit(delivery.organisation, delivery.project, base)
        else:
            await self._mirrors.refresh(delivery.organisation, replace(delivery.project, branch=None))
            mirror = self._mirrors.mirror_path(delivery.organisation, delivery.project.id)
        snapshots = [replace(step.snapshot, sidecar=None) for step in delivery.steps]
        object_ids = [*dict.fromkeys(name for snapshot in snapshots for name in tree_ids(snapshot))]
        await asyncio.to_thread(self._directory.mkdir, parents=True, exist_ok=True)
        async with self._reader.open_objects(delivery.diff, object_ids) as objects:
            with scratch_directory(self._directory) as git_dir:
                git = await init_git_dir(git_dir, "main", None)
                write_alternates(git_dir / "objects", f"{objects / 'objects'}\n{mirror / 'objects'}")
                for snapshot in snapshots:
                    await import_missing_commits(git, snapshot)
                yield git


@contextlib.asynccontextmanager
async def _report_repository_errors() -> AsyncGenerator[None, None]:
    """Reports a problem with the project's repository to the caller as a conflict."""
    try:
        yield
    except (NoRepository, NoGit, RepositoryTooLarge) as error:
        raise Conflict(error.message, help_text=error.help_text) from error


async def _find_earlier_update(git: Git, target: str | None, journal: DeliveryJournal | None) -> DeliveryResult | None:
    """Returns the update that an earlier attempt made, if the branch, which is at `target` now, has its commit."""
    if target is None or journal is None:
        return None
    for update in journal.updates:
        if await has_commit(git, update.commit) and await merge_commits.contains(git, target, update.commit):
            return update
    return None


def _create_result(status: DeliveryStatus, branch: str, commit: str, before: str | None) -> DeliveryResult:
    return DeliveryResult(status=status, branch=branch, commit=commit, before=before)


def _busy_branch_error(branch: str) -> Conflict:
    return Conflict(
        f"The branch {branch!r} was changed by another writer during every attempt to update it.",
        help_text="Nothing was changed. Try again later.",
    )
