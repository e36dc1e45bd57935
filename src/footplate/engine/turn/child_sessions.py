"""Starts the child sessions of a turn, and waits for them.

The store does everything that must be durable. This adds what follows a commit: sessions that have work are woken. If
the worker dies before that, the sweep wakes them.
"""

from collections.abc import Sequence

from footplate.domain.ports.child_sessions import ChildSessions, FileMerge
from footplate.domain.ports.child_store import ChildStore
from footplate.domain.ports.engine import Claim, Waker
from footplate.domain.sessions.groups import ChildRequest, GroupResult, SpawnedGroup
from footplate.domain.sessions.steps import Branches, WaitFor
from footplate.domain.sessions.turns import SessionToWake
from footplate.engine.child_cancellation import ChildCancellation
from footplate.engine.turn.file_snapshots import TurnFiles
from footplate.engine.wake_sessions import wake_sessions


class TurnChildren(ChildSessions):
    def __init__(
        self,
        store: ChildStore,
        cancellation: ChildCancellation,
        waker: Waker,
        claim: Claim,
        files: TurnFiles | None = None,
    ) -> None:
        self._files = files
        self._store = store
        self._cancellation = cancellation
        self._was_used = False
        self._waker = waker
        self._claim = claim

    async def spawn(
        self,
        call_id: str,
        requests: Sequence[ChildRequest],
        *,
        max_running: int | None = None,
        wait_for: WaitFor = WaitFor.ALL,
        picks_one: bool = False,
    ) -> SpawnedGroup:
        self._was_used = True
        group, to_wake = await self._store.spawn(
            self._claim, call_id, requests, max_running=max_running, wait_for=wait_for, picks_one=picks_one
        )
        await wake_sessions(self._waker, to_wake)
        return group

    async def find_result(self, group_id: str) -> GroupResult | None:
        return await self._store.find_result(self._claim, group_id)

    async def wait(self, call_id: str, group_id: str) -> GroupResult | None:
        self._was_used = True
        return await self._store.wait(self._claim, call_id, group_id)

    async def send_message(self, session_id: str, text: str, call_id: str) -> None:
        if await self._store.send_message(self._claim, session_id, text, call_id):
            await wake_sessions(self._waker, [SessionToWake(self._claim.organisation, session_id)])

    async def cancel(self, group_id: str) -> None:
        await self._cancellation.cancel_group(group_id)

    async def cancel_remaining(self) -> None:
        """Cancel the children that have not ended, after the commit that ends the turn."""
        if self._was_used:
            await self._cancellation.cancel_children(self._claim.session_id)

    async def merge_files(self, session_ids: Sequence[str], branches: Branches) -> Sequence[FileMerge]:
        if self._files is None:
            reason = "The files of this session are not stored."
            return [FileMerge(session_id=one, state="failed", conflicts=(reason,)) for one in session_ids]
        children = await self._store.load_files(self._claim, session_ids)
        return [await self._files.merge_child(child, replaces=branches is Branches.BEST) for child in children]
