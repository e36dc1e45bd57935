"""Delivers a session's work: merges it into a branch of its project, pushes it as a branch, or exports it as a bundle.

All work happens in a temporary git directory that shares the objects of the session and of the project's mirror. The
only change is one atomic update of a branch, from the commit that was seen to the new one. If the process dies before
it, nothing has changed. If it dies afterwards, the change is complete, and a retry detects that.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from footplate import failpoints
from footplate.domain.errors import Conflict, InvalidRequest
from footplate.domain.leases import HeldLease, WriteLeases
from footplate.domain.leaving import BUNDLED, CheckedOut, Departure, Left, LeftStatus
from footplate.domain.organisation_slots import OrganisationSlots
from footplate.trees import merging
from footplate.trees.commits import ensure
from footplate.trees.git import Git, NoGit
from footplate.trees.mirrors import Mirrors, Update, Written
from footplate.trees.packs import ids_of
from footplate.trees.placing import init, share
from footplate.trees.reading import DiffReader
from footplate.trees.scratch import scratch
from footplate.trees.size_limits import RepositoryTooLarge
from footplate.trees.sources import NoRepository

_PLACE: Final = "leaving"
"""Directory name inside the data directory."""
_TRIES: Final = 10
"""Attempts before giving up on a branch that other writers keep changing."""


class Leaver:
    def __init__(self, data: Path, reader: DiffReader, mirrors: Mirrors, leases: WriteLeases, *, max_concurrent: int) -> None:
        """`at_once`: maximum number of concurrent git operations; others wait."""
        self._place = data.resolve() / _PLACE
        self._reader = reader
        self._mirrors = mirrors
        self._leases = leases
        self._slots, self._bundles = OrganisationSlots(max_concurrent), OrganisationSlots(max_concurrent)

    async def merge(self, delivery: Departure, branch: str | None, *, actor: str, wait: float) -> Left:
        base = delivery.project.base
        into = branch or (base.branch if base is not None else "main")
        async with self._writing(
            delivery, into, f"the merge of session {delivery.session_id} by {actor}", wait
        ) as lease:
            return await self._merge(delivery, into, lease)

    async def push(self, delivery: Departure, branch: str | None, *, actor: str, wait: float) -> Left:
        name = branch or f"footplate/{delivery.session_id}"
        async with self._writing(
            delivery, name, f"the push of session {delivery.session_id} by {actor}", wait
        ) as lease:
            return await self._push(delivery, name, lease)

    @contextlib.asynccontextmanager
    async def bundle(self, delivery: Departure) -> AsyncGenerator[AsyncIterator[bytes], None]:
        async with _told(), self._bundles.held(delivery.organisation), self._work(delivery) as git:
            work_commit = await merging.session_commit(git, delivery)
            await git.run("update-ref", BUNDLED, work_commit)
            base = delivery.project.base_commit
            known = [] if base is None else [f"^{base}"]
            async with git.stream_output("bundle", "create", "-q", "-", BUNDLED, *known) as pieces:
                yield pieces

    @contextlib.asynccontextmanager
    async def _writing(
        self, delivery: Departure, branch: str, owner: str, wait: float
    ) -> AsyncGenerator[HeldLease, None]:
        project = delivery.project
        target, display_name = f"{project.id} refs/heads/{branch}", f"the branch {branch!r} of the project {project.name!r}"
        async with (
            self._leases.held(delivery.organisation, target, owner=owner, wait=wait, display_name=display_name) as lease,
            _told(),
        ):
            yield lease

    async def _merge(self, delivery: Departure, branch: str, lease: HeldLease) -> Left:
        for _ in range(_TRIES):
            target = await self._target(delivery, branch)
            if target is None and delivery.project.base_commit is not None:
                raise InvalidRequest(
                    f"into: the project {delivery.project.name!r} has no branch {branch!r}",
                    field="into",
                    help_text="Use an existing branch, or create one with `footplate push --branch`.",
                )
            async with self._slots.held(delivery.organisation), self._work(delivery) as git:
                if target is not None:
                    await self._mirrors.check_size(git, target)
                planned = await merging.plan(git, delivery, target, branch)
                if planned.status == "unchanged":
                    return _left("unchanged", branch, planned.commit, target)
                if await self._write(delivery, git, Update(branch, planned.commit, target), lease):
                    return _left(planned.status, branch, planned.commit, target)
        raise _restless(branch)

    async def _push(self, delivery: Departure, branch: str, lease: HeldLease) -> Left:
        for _ in range(_TRIES):
            target = await self._target(delivery, branch)
            async with self._slots.held(delivery.organisation), self._work(delivery) as git:
                work_commit = await merging.session_commit(git, delivery)
                if target == work_commit:
                    return _left("unchanged", branch, work_commit, target)
                code = 0 if target is None else (await git.run_with_exit_code("merge-base", "--is-ancestor", target, work_commit))[0]
                if code != 0:
                    raise Conflict(
                        f"The branch {branch!r} has commits that the session's work does not have.",
                        help_text="Nothing was changed. Push to another branch, or merge into this one.",
                    )
                if await self._write(delivery, git, Update(branch, work_commit, target), lease):
                    return _left("pushed", branch, work_commit, target)
        raise _restless(branch)

    async def _target(self, delivery: Departure, branch: str) -> str | None:
        """Returns the current commit of the branch."""
        project = replace(delivery.project, branch=None)
        await self._mirrors.refresh(delivery.organisation, project)
        return await self._mirrors.find_branch_commit(delivery.organisation, project, branch)

    async def _write(self, delivery: Departure, git: Git, update: Update, lease: HeldLease) -> bool:
        """Returns False if the branch has moved, so the new commit has to be built again."""
        await failpoints.hit("before_ref")
        await lease.check()
        result = await self._mirrors.push_branch(delivery.organisation, delivery.project, git, update)
        await failpoints.hit("after_ref")
        if result is Written.CHECKED_OUT:
            raise CheckedOut(update.branch, delivery.project.name)
        return result is Written.DONE

    @contextlib.asynccontextmanager
    async def _work(self, delivery: Departure) -> AsyncGenerator[Git, None]:
        """Creates a git directory with all objects of the session and the project."""
        if (base := delivery.project.base_commit) is not None:
            mirror = await self._mirrors.ensure_commit(delivery.organisation, delivery.project, base)
        else:
            await self._mirrors.refresh(delivery.organisation, replace(delivery.project, branch=None))
            mirror = self._mirrors.mirror_path(delivery.organisation, delivery.project.id)
        snapshots = [replace(step.snapshot, apart=None) for step in delivery.steps]
        object_ids = [*dict.fromkeys(name for snapshot in snapshots for name in ids_of(snapshot))]
        await asyncio.to_thread(self._place.mkdir, parents=True, exist_ok=True)
        async with self._reader.objects(delivery.files, object_ids) as objects:
            with scratch(self._place) as git_dir:
                git = await init(git_dir, "main", None)
                share(git_dir / "objects", f"{objects / 'objects'}\n{mirror / 'objects'}")
                for snapshot in snapshots:
                    await ensure(git, snapshot)
                yield git


@contextlib.asynccontextmanager
async def _told() -> AsyncGenerator[None, None]:
    """Reports a problem with the project's repository to the caller as a conflict."""
    try:
        yield
    except (NoRepository, NoGit, RepositoryTooLarge) as error:
        raise Conflict(error.message, help_text=error.help_text) from error


def _left(status: LeftStatus, branch: str, commit: str, before: str | None) -> Left:
    return Left(status=status, branch=branch, commit=commit, before=before)


def _restless(branch: str) -> Conflict:
    return Conflict(
        f"The branch {branch!r} was changed by another writer during every attempt to update it.",
        help_text="Nothing was changed. Try again later.",
    )
