"""The store's components over one database, and helpers that many tests use."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from footplate.domain import ids
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import AcceptedInputs, ForkPoint, Input
from footplate.domain.ports.engine import Claim, NothingToClaim
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event, Position
from footplate.domain.sessions.turns import Mode, Session, TurnOutcome, TurnStatus, WhenBusy
from footplate.store.api_reads import ApiReads
from footplate.store.database import Connection, Database
from footplate.store.log.fenced_turn_writes import Turns
from footplate.store.log.turn_claims import Claims
from footplate.store.object_store import Objects
from footplate.store.unit_of_work import UnitOfWorkFactory

AGENT: JsonObject = {"id": "agent_1", "version": 1, "name": "a", "model": {"id": "claude-opus-5"}}
COMPLETED = TurnOutcome(status=TurnStatus.COMPLETED, text="done")


class LossyDatabase(Database):
    """A database that loses the connection after a commit, before its acknowledgement arrives.

    This happens `acknowledgements_to_lose` times. With `lose_next_commit`, the connection is lost before the next
    transaction commits.
    """

    acknowledgements_to_lose = 0
    lose_next_commit = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        async with super().connection() as connection:
            yield connection
            if self.acknowledgements_to_lose:
                self.acknowledgements_to_lose -= 1
                raise ConnectionResetError("the acknowledgement is lost")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with super().transaction() as connection:
            yield connection
            if self.lose_next_commit:
                self.lose_next_commit = False
                raise ConnectionResetError("the connection is lost")


@dataclass(frozen=True, slots=True)
class Cell:
    database: LossyDatabase
    objects: Objects
    folder: Path
    """The directory of the object store."""
    dsn: str = ""

    @property
    def units(self) -> UnitOfWorkFactory:
        return UnitOfWorkFactory(self.database, self.objects)

    @property
    def reads(self) -> ApiReads:
        return ApiReads(self.database, self.objects)

    @property
    def claims(self) -> Claims:
        return Claims(self.database, self.objects, default_harness="native")

    @property
    def turns(self) -> Turns:
        return Turns(self.database, self.objects)

    async def session(
        self,
        principal: Principal,
        *texts: str,
        limits: JsonObject | None = None,
        mode: Mode = Mode.INTERACTIVE,
        context: JsonObject | None = None,
        ends_when_done: bool = False,
        backend: str | None = None,
    ) -> str:
        inputs = [message(text) for text in texts]
        async with self.units.unit(principal, None) as unit:
            name = ids.new_id("name")
            environment = await unit.create_environment(principal, name=name, description=None, config={}, metadata={})
            session, _ = await unit.create_session(
                principal,
                agent={**AGENT, "limits": limits or {}},
                environment_id=environment.id,
                title=None,
                metadata={},
                context=context or {},
                inputs=inputs,
                mode=mode,
                ends_when_done=ends_when_done,
                backend=backend,
            )
        return session.id

    async def fork(self, principal: Principal, session_id: str, at: str | int | None = None) -> Session:
        point = ForkPoint(position=at) if isinstance(at, int) else ForkPoint(event_id=at)
        async with self.units.unit(principal, None) as unit:
            fork, _ = await unit.fork_session(
                principal, session_id, point=point, environment_id=None, change=lambda parent: parent, inputs=()
            )
        return fork

    async def delete(self, principal: Principal, session_id: str) -> None:
        async with self.units.unit(principal, None) as unit:
            await unit.delete_session(principal, session_id)

    async def send(self, principal: Principal, session_id: str, *inputs: Input | str) -> AcceptedInputs:
        items = [message(item) if isinstance(item, str) else item for item in inputs]
        async with self.units.unit(principal, None) as unit:
            return await unit.send(principal, session_id, items)

    async def claim(self, session_id: str, principal: Principal, worker: str = "wrkr_1") -> Claim:
        claim = await self.claims.claim(principal.organisation, session_id, worker)
        assert isinstance(claim, Claim), claim
        return claim

    async def expect_nothing_to_claim(self, session_id: str, principal: Principal) -> NothingToClaim:
        claim = await self.claims.claim(principal.organisation, session_id, "wrkr_1")
        assert isinstance(claim, NothingToClaim), claim
        return claim

    async def positions(self, session_id: str, principal: Principal) -> Sequence[Position]:
        return await self.reads.positions(principal.organisation, session_id, 0, 100_000)

    async def head(self, session_id: str) -> dict[str, Any]:
        return (await self.rows("session_heads", session_id))[0]

    async def rows(self, table: str, session_id: str) -> list[dict[str, Any]]:
        """Returns all rows of the session in a table, so that a test can compare them unchanged."""
        async with self.database.connection() as connection:
            rows = await connection.fetch(f"select * from {table} where session_id = $1 order by 1, 2", session_id)
        return [dict(row) for row in rows]

    async def all_rows(self, session_id: str) -> dict[str, list[dict[str, Any]]]:
        return {
            name: await self.rows(name, session_id) for name in ("session_heads", "events", "entries", "steps", "turns")
        }


def new_principal(organisation: str | None = None) -> Principal:
    return Principal(organisation or ids.new_id(ids.ORGANISATION), ids.new_id(ids.API_KEY), "test", frozenset())


def message(text: str, when_busy: WhenBusy = WhenBusy.QUEUE) -> Input:
    body: dict[str, Any] = {"content": [events.text_block(text)]}
    return Input(type=events.USER_MESSAGE, body=body, when_busy=when_busy)


def interrupt() -> Input:
    return Input(type=events.USER_INTERRUPT, body={})


def tool_result_for(event_id: str) -> Input:
    body: dict[str, Any] = {"custom_tool_use_id": event_id, "content": [events.text_block("42")]}
    return Input(type=events.USER_CUSTOM_TOOL_RESULT, body=body)


def custom_tool_call() -> Event:
    return events.custom_tool_use("look_up", {"key": "k"}, call_id=ids.new_id("toolu"))


def awaiting(*pending: Event) -> TurnOutcome:
    return replace(COMPLETED, status=TurnStatus.AWAITING, pending=tuple(event.id for event in pending))


def text_of(position: Position) -> str:
    content = position.event.body["content"]
    assert isinstance(content, list)
    block = content[0]
    assert isinstance(block, dict)
    return str(block["text"])


def types(positions: Sequence[Position]) -> list[str]:
    return [position.event.type for position in positions]
