"""The interface through which a harness starts child sessions, waits for them and takes over their files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from footplate.domain.sessions.groups import ChildRequest, GroupResult, SpawnedGroup
from footplate.domain.sessions.steps import Branches, WaitFor


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMerge:
    """How the files of a child session were added to those of its parent."""

    session_id: str
    state: Literal["merged", "unchanged", "conflict", "failed"]
    conflicts: tuple[str, ...] = ()
    """Why nothing was changed: each path with the reason."""


class ChildSessions(Protocol):
    """Starts child sessions of the turn's session and waits for them. When the turn ends, children that have not ended
    are cancelled. A call that is repeated after a crash finds its group.
    """

    async def spawn(
        self,
        call_id: str,
        requests: Sequence[ChildRequest],
        *,
        max_running: int | None = None,
        wait_for: WaitFor = WaitFor.ALL,
        picks_one: bool = False,
    ) -> SpawnedGroup:
        """Start a session for each request, at most `max_running` at a time. `call_id`: the id of the call's event,
        which must be in the log. `picks_one`: the group succeeds if one member does. Raises `Refused` with a reason for
        the model if a limit is reached.
        """

    async def find_result(self, group_id: str) -> GroupResult | None:
        """Return the result so far. None: the session has no such group."""

    async def wait(self, call_id: str, group_id: str) -> GroupResult | None:
        """Return the result of the group. None: it has none yet, and the turn must wait for the call. The result then
        arrives as the `user.custom_tool_result` of the call, whose event `groups.waiting_call` creates. Raises
        `NotFound` if the session has no such group.
        """

    async def send_message(self, session_id: str, text: str, call_id: str) -> None:
        """Send a message to a child of the session. Raises `NotFound`, and `Refused` if it has ended."""

    async def cancel(self, group_id: str) -> None:
        """Cancel the members of the group that have not ended."""

    async def merge_files(self, session_ids: Sequence[str], branches: Branches) -> Sequence[FileMerge]:
        """Add the files of children to those of the session, in order. With `best`, the session gets the files of the
        first one.
        """
