"""Starts the child sessions of a turn, and waits for them.

The store does everything that must be durable. This adds what follows a commit: sessions that have work are woken. If
the worker dies before that, the sweep wakes them.
"""

from collections.abc import Sequence

from footplate.domain.ports.child_sessions import ChildSessions, FileMerge
from footplate.domain.ports.engine import ChildStore, Claim, Waker
from footplate.domain.sessions.groups import ChildRequest, GroupResult, SpawnedGroup
from footplate.domain.sessions.steps import Branches, WaitFor


class TurnChildren(ChildSessions):
    def __init__(self, store: ChildStore, waker: Waker, claim: Claim) -> None:
        self._store = store
        self._waker = waker
        self._claim = claim

    async def spawn(
        self,
        call_id: str,
        requests: Sequence[ChildRequest],
        *,
        max_running: int | None = None,
        wait_for: WaitFor = WaitFor.ALL,
    ) -> SpawnedGroup:
        group, to_wake = await self._store.spawn(
            self._claim, call_id, requests, max_running=max_running, wait_for=wait_for
        )
        for organisation, session_id in to_wake:
            await self._waker.wake(organisation, session_id, ends_when_idle=True)
        return group

    async def find_result(self, group_id: str) -> GroupResult | None:
        return await self._store.find_result(self._claim, group_id)

    async def wait(self, call_id: str, group_id: str) -> GroupResult | None:
        return await self._store.wait(self._claim, call_id, group_id)

    async def send_message(self, session_id: str, text: str, call_id: str) -> None:
        if await self._store.send_message(self._claim, session_id, text, call_id):
            await self._waker.wake(self._claim.organisation, session_id)

    async def cancel(self, group_id: str) -> None:
        raise NotImplementedError

    async def merge_files(self, session_ids: Sequence[str], branches: Branches) -> Sequence[FileMerge]:
        raise NotImplementedError
