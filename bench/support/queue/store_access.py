"""Changes a queue on the real store, and runs its steps as the session's only worker."""

import asyncio
import random
from dataclasses import replace
from typing import Any, Literal, cast

from footplate.domain import ids
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.engine import Claim
from footplate.domain.sessions.events import Position
from footplate.domain.sessions.steps import OnFailure, Step, StepDefinition, StepKind
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.store.api_reads import ApiReads
from footplate.store.database import Database
from footplate.store.log.fenced_turn_writes import Turns
from footplate.store.log.turn_claims import Claims
from footplate.store.object_store import Objects
from footplate.store.unit_of_work import UnitOfWorkFactory

_COMPLETED = TurnOutcome(status=TurnStatus.COMPLETED, text="done")
_FAILED = replace(_COMPLETED, step_failed=True, error_message="The command exited with code 1.")
_AGENT: JsonObject = {"id": "agent_1", "version": 1, "name": "a", "model": {"id": "none"}}


class StoreQueue:
    def __init__(self, database: Database, objects: Objects, principal: Principal, session_id: str) -> None:
        self._database = database
        self._units = UnitOfWorkFactory(database, objects)
        self._claims = Claims(database, objects, default_harness="shell")
        self._turns = Turns(database, objects)
        self._reads = ApiReads(database, objects)
        self._principal = principal
        self._session_id = session_id
        self._working = asyncio.Lock()

    @classmethod
    async def create(cls, database: Database, objects: Objects, principal: Principal) -> "StoreQueue":
        async with UnitOfWorkFactory(database, objects).unit(principal, None) as unit:
            environment = await unit.create_environment(
                principal, name=ids.new_id("name"), description=None, config={}, metadata={}
            )
            session, _ = await unit.create_session(
                principal,
                agent=_AGENT,
                environment_id=environment.id,
                title=None,
                metadata={},
                context={},
                inputs=(),
            )
        return cls(database, objects, principal, session.id)

    async def add(self, step: dict[str, Any], before: str | None) -> str:
        definition = StepDefinition(
            kind=StepKind.SHELL,
            name=step["name"],
            command=step["command"],
            on_failure=OnFailure(step["on_failure"]),
            max_attempts=step["max_attempts"],
        )
        async with self._units.unit(self._principal, None) as unit:
            (added,), _ = await unit.add_steps(self._principal, self._session_id, [(definition, {})], before=before)
        return added.id

    async def edit(self, step_id: str, fields: dict[str, Any]) -> None:
        policy = OnFailure(fields["on_failure"])
        async with self._units.unit(self._principal, None) as unit:
            await unit.edit_step(
                self._principal, self._session_id, step_id, lambda step: replace(step.definition, on_failure=policy)
            )

    async def move(self, step_id: str, before: str | None) -> None:
        async with self._units.unit(self._principal, None) as unit:
            await unit.move_step(self._principal, self._session_id, step_id, before=before)

    async def remove(self, step_id: str) -> None:
        async with self._units.unit(self._principal, None) as unit:
            await unit.remove_step(self._principal, self._session_id, step_id)

    async def retry(self, step_id: str) -> str:
        async with self._units.unit(self._principal, None) as unit:
            step, _ = await unit.retry_step(
                self._principal, self._session_id, step_id, play=False, check=lambda _: None
            )
        return step.id

    async def change_playback(self, action: str) -> None:
        async with self._units.unit(self._principal, None) as unit:
            await unit.change_playback(
                self._principal, self._session_id, cast("Literal['play', 'pause', 'next']", action)
            )

    async def run_step(self, chance: random.Random) -> None:
        """Run the next step, if there is one. A step that waits for its next attempt waits no longer."""
        async with self._working:
            async with self._database.connection() as connection:
                await connection.execute("update steps set not_before = null where session_id = $1", self._session_id)
            claim = await self._claims.claim(self._principal.organisation, self._session_id, "wrkr_1")
            if isinstance(claim, Claim):
                await self._turns.finish(claim, chance.choice([_COMPLETED, _COMPLETED, _FAILED]))

    async def positions(self) -> list[Position]:
        return [*await self._reads.positions(self._principal.organisation, self._session_id, 0, 100_000)]

    async def steps(self) -> list[Step]:
        return [*await self._reads.steps(self._principal, self._session_id, states=(), limit=1000, after=None)]
