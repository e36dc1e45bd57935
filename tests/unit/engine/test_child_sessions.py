"""The children of a turn: their cancellation after the turn was committed."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from footplate.domain.errors import Unavailable
from footplate.domain.ports.child_store import StoppedSessions
from footplate.domain.ports.engine import Claim, Waker
from footplate.domain.sessions.groups import SpawnedGroup
from footplate.domain.sessions.turns import SessionToWake
from footplate.engine.child_cancellation import ChildCancellation
from footplate.engine.turn.child_sessions import TurnChildren


class _Store:
    async def spawn(self, *_: object, **__: object) -> tuple[SpawnedGroup, Sequence[SessionToWake]]:
        return SpawnedGroup(id="sgrp_1", session_ids=(), names=()), ()


class _Groups:
    def __init__(self) -> None:
        self.attempts = 0

    async def cancel_abandoned(self, _parent_id: str | None = None) -> StoppedSessions:
        self.attempts += 1
        raise Unavailable("The database does not respond.")


class _Claim:
    session_id = "sesn_1"


@pytest.mark.requirement("O5")
async def test_failed_cancellation_does_not_fail_the_committed_turn() -> None:
    groups: Any = _Groups()
    waker = cast("Waker", None)
    cancellation = ChildCancellation(groups, waker, cast("Any", None), cast("Any", None))
    children = TurnChildren(cast("Any", _Store()), cancellation, waker, cast("Claim", _Claim()))
    await children.cancel_remaining()
    assert groups.attempts == 0
    await children.spawn("sevt_1", ())
    await children.cancel_remaining()
    assert groups.attempts == 1
