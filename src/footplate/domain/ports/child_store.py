"""The ports through which the engine starts, finds and cancels the children of sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from footplate.domain.files.snapshots import ChildFiles
from footplate.domain.ports.engine import Claim
from footplate.domain.sessions.events import Position
from footplate.domain.sessions.groups import ChildRequest, GroupResult, SpawnedGroup
from footplate.domain.sessions.steps import WaitFor
from footplate.domain.sessions.turns import SessionToWake


@dataclass(frozen=True, slots=True)
class StoppedSessions:
    """Sessions that were ended or interrupted, and what to do after the commit."""

    to_wake: Sequence[SessionToWake] = ()
    """Organisation and id of sessions that have work now."""
    to_nudge: Sequence[str] = ()
    """Sessions whose running turn was interrupted, or that have ended: a worker may have a warm process for them."""
    to_publish: Sequence[tuple[str, str, Sequence[Position]]] = ()
    """Organisation and id of sessions, and their new events."""

    def __add__(self, other: "StoppedSessions") -> "StoppedSessions":
        return StoppedSessions(
            [*self.to_wake, *other.to_wake],
            [*self.to_nudge, *other.to_nudge],
            [*self.to_publish, *other.to_publish],
        )


class ChildStore(Protocol):
    """The children of sessions. See `ChildSessions`, which a harness uses."""

    async def spawn(
        self,
        claim: Claim,
        call_id: str,
        requests: Sequence[ChildRequest],
        *,
        max_running: int | None = None,
        wait_for: WaitFor = WaitFor.ALL,
        picks_one: bool = False,
    ) -> tuple[SpawnedGroup, Sequence[SessionToWake]]:
        """Return also the sessions that have to be woken. Raises `Fenced`, and `Refused` if a limit is reached."""

    async def find_result(self, claim: Claim, group_id: str) -> GroupResult | None: ...
    async def wait(self, claim: Claim, call_id: str, group_id: str) -> GroupResult | None: ...
    async def load_files(self, claim: Claim, session_ids: Sequence[str]) -> Sequence[ChildFiles]: ...
    async def send_message(self, claim: Claim, session_id: str, text: str, call_id: str) -> bool:
        """Return whether the child has to be woken."""


class GroupStore(Protocol):
    """Groups of child sessions that nothing waits for any more."""

    async def cancel(self, group_id: str) -> StoppedSessions: ...
    async def cancel_abandoned(self, parent_id: str | None = None) -> StoppedSessions:
        """Cancel the groups whose parent does not wait for them: all, or those of one session."""

    async def fill_groups(self) -> Sequence[SessionToWake]:
        """Start members for which there is room. Return the sessions to wake."""
