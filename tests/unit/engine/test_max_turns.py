"""A worker with several task queues runs no more turns than its setting allows."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from footplate.engine.temporal.activities import TurnActivities
from footplate.engine.temporal.workflows import SessionRef
from footplate.engine.turn.runner import TurnEnded, TurnRunner


class _Runner:
    def __init__(self) -> None:
        self.activities: TurnActivities
        self.refused: list[str | None] = []

    async def run(self, organisation: str, session_id: str) -> TurnEnded:
        with pytest.raises(ApplicationError) as caught:
            await self.activities.run_turn(SessionRef(organisation, session_id))
        self.refused.append(caught.value.type)
        return TurnEnded(has_more=False)


async def test_a_turn_beyond_the_limit_is_refused() -> None:
    runner = _Runner()
    activities = runner.activities = TurnActivities(cast("TurnRunner", runner), heartbeat_timeout=10, max_turns=1)
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=datetime.now(UTC))
    for _ in range(2):  # a turn that has ended does not count
        assert await environment.run(activities.run_turn, SessionRef("org", "sesn_1")) is False
    assert runner.refused == ["busy", "busy"]
