"""A session that can be archived, with every way to read it, and a process that is killed while it archives or deletes.

As a program, its arguments are `<dsn> <folder> archive|delete|purge|collect <organisation> <session>`.
"""

import asyncio
import signal
import sys
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from bench.support.forked_program import fork
from tests.integration.store.cell import (
    COMPLETED,
    Cell,
    awaiting,
    custom_tool_call,
    interrupt,
    message,
    tool_result_for,
)

from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Order
from footplate.domain.ports.api import EventPage
from footplate.domain.ports.engine import Claim
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event, Position, Usage
from footplate.domain.sessions.turns import WhenBusy
from footplate.stack.orphan_processes import wait_until
from footplate.store.database import Database
from footplate.store.object_store import Objects
from footplate.store.retention.archiving import SessionArchiving
from footplate.store.retention.deletion_cleanup import DeletionCleanup
from footplate.store.retention.object_gc import ObjectGarbageCollector
from footplate.store.unit_of_work import UnitOfWorkFactory

_ORDERS: Final[tuple[Order, ...]] = ("asc", "desc")
_HAS_CONNECTION: Final = "select exists (select from pg_stat_activity where application_name = $1)"
INACTIVE_AFTER = timedelta(hours=1)
BATCH = 5


@dataclass(slots=True)
class ArchivableSession:
    """A session and the claim of its last turn."""

    cell: Cell
    principal: Principal
    id: str
    claim: Claim | None = None

    @property
    def folder(self) -> Path:
        return self.cell.folder / self.principal.organisation / self.id

    @property
    def files(self) -> list[str]:
        """The names of all of the session's files in the object store, including those of interrupted uploads."""
        return sorted(path.name for path in self.folder.rglob("*") if path.is_file())

    @property
    def archives(self) -> list[str]:
        return [name for name in self.files if not name.startswith("body_")]

    async def turn(self, text: str) -> None:
        """Runs a turn with all that a log can hold: large bodies, steering, an interrupt, a call and its result."""
        cell, principal = self.cell, self.principal
        await cell.send(principal, self.id, text)
        claim = await cell.claim(self.id, principal)
        for number in range(4):
            note = events.message(f"{text} {number} é\u2028\n\r\t\"'\\ 🙂")
            used = Usage(input_tokens=number, requests=1)
            await cell.turns.append(claim, [note], entries=[Entry("k", {"text": text, "n": number})], usage=used)
        large: list[Any] = [events.text_block(text * 40_000)]
        result = events.tool_result("sevt_1", large, is_error=False, call_id="toolu_1")
        await cell.turns.append(claim, [result], entries=[Entry("large", {"output": text * 40_000})])
        await cell.send(principal, self.id, message("steer", WhenBusy.STEER), interrupt())
        await cell.turns.claim_steering(claim)
        await cell.turns.claim_interrupts(claim)
        question = custom_tool_call()
        await cell.turns.append(claim, [question])
        await cell.turns.finish(claim, awaiting(question))
        await cell.send(principal, self.id, tool_result_for(question.id))
        claim = await cell.claim(self.id, principal)
        await cell.turns.append(claim, [Event(events.AGENT_MESSAGE, {"content": []})], entries=[Entry("end", {})])
        await cell.turns.finish(claim, COMPLETED)
        await self.remember_claim(claim)

    async def remember_claim(self, claim: Claim) -> None:
        self.claim = replace(claim, entries=(await self.cell.head(self.id))["entries"])

    async def make_old(self) -> None:
        async with self.cell.database.connection() as connection:
            await connection.execute(
                "update events set created_at = created_at - interval '1 day'"
                " where session_id = $1 and created_at > now() - interval '1 hour'",
                self.id,
            )
            await connection.execute(
                "update session_heads set claimed_at = now() - interval '1 day' where session_id = $1", self.id
            )

    async def read(self, *, thorough: bool = False) -> dict[str, Any]:
        """Reads everything in every way: both orders, cursors, page sizes, filters, positions, the conversation and the
        turns.

        Cursors are at every second position if `thorough` is set, and at a few otherwise.
        """
        step, limits = (2, (1, 4, 1000)) if thorough else (23, (4, 1000))
        cell, principal = self.cell, self.principal
        head = await cell.head(self.id)
        found: dict[str, Any] = {"seq": head["seq"], "entries": head["entries"]}
        stamps = sorted({item.processed_at for item in await self._list(EventPage(limit=1000)) if item.processed_at})
        middle = stamps[len(stamps) // 2]
        for after in (None, *range(0, head["seq"] + 2, step)):
            for limit in limits:
                for order in _ORDERS:
                    page = EventPage(limit=limit, order=order, after_seq=after)
                    for name, narrow in (
                        ("all", page),
                        ("types", replace(page, types=[events.USER_MESSAGE, events.STATUS_IDLE])),
                        ("none", replace(page, types=["session.deleted"])),
                        ("early", replace(page, created_lte=middle)),
                        ("late", replace(page, created_gt=middle)),
                        ("between", replace(page, created_gte=stamps[1], created_lt=middle)),
                    ):
                        found[f"events {name} {order} {after} {limit}"] = await self._list(narrow)
                found[f"positions {after} {limit}"] = await cell.reads.positions(
                    principal.organisation, self.id, after or 0, limit
                )
        if self.claim is not None:
            for index in range(0, head["entries"] + 1, 1 if thorough else 5):
                found[f"entries {index}"] = await cell.turns.entries(self.claim, index)
        found["turns"] = await cell.reads.turns(principal, self.id, limit=100, before=None)
        return found

    async def _list(self, page: EventPage) -> list[Position]:
        return [*await self.cell.reads.events(self.principal, self.id, page)]

    def retention(self) -> SessionArchiving:
        return SessionArchiving(self.cell.database, self.cell.objects, INACTIVE_AFTER, batch=BATCH)

    async def archive(self) -> None:
        await self.make_old()
        await self.retention().archive_if_inactive(self.principal.organisation, self.id)

    async def row(self) -> dict[str, Any] | None:
        rows = await self.cell.rows("archives", self.id)
        return rows[0] if rows else None

    async def count_remaining_rows(self) -> int:
        row = await self.row()
        assert row is not None
        old = [item for item in await self.cell.rows("events", self.id) if item["seq"] <= row["last_seq"]]
        entries = [item for item in await self.cell.rows("entries", self.id) if item["idx"] < row["entries"]]
        return len(old) + len(entries)

    async def run_until_killed(self, points: Path, point: str, action: str) -> None:
        """Runs the action in a separate process, which is killed at the failpoint. Returns when PostgreSQL has rolled
        back its transaction: a later run skips a session whose lock is still taken.
        """
        (points / point).write_text("kill")
        name = f"killed_at_{point}"
        process = await fork(
            "tests.integration.store.archivable_session:main",
            f"{self.cell.dsn}?application_name={name}",
            str(self.cell.folder.parent),
            action,
            self.principal.organisation,
            self.id,
            env={"FOOTPLATE_FAILPOINTS": str(points)},
        )
        assert await process.wait() == -signal.SIGKILL
        assert (points / f"{point}.hit").exists()

        async def rolled_back() -> bool:
            async with self.cell.database.connection() as connection:
                return not await connection.fetchval(_HAS_CONNECTION, name)

        assert await wait_until(rolled_back, 30)


async def create_archivable_session(cell: Cell, principal: Principal, turns: int = 2) -> ArchivableSession:
    session = ArchivableSession(cell, principal, await cell.session(principal))
    for number in range(turns):
        await session.turn(f"turn{number}")
    return session


def main() -> None:
    asyncio.run(_run_action(*sys.argv[1:]))


async def _run_action(dsn: str, folder: str, action: str, organisation: str, session_id: str) -> None:
    database = await Database.open(dsn, size=3)
    objects = Objects.open(None, Path(folder))
    if action == "archive":
        retention = SessionArchiving(database, objects, INACTIVE_AFTER, batch=BATCH)
        await retention.archive_if_inactive(organisation, session_id)
    elif action == "delete":
        principal = Principal(organisation, "key", "test", frozenset())
        async with UnitOfWorkFactory(database, objects).unit(principal, None) as unit:
            await unit.delete_session(principal, session_id)
    elif action == "collect":
        await ObjectGarbageCollector(database, objects, timedelta(days=1)).collect_session(
            organisation, session_id, remove=True
        )
    else:

        async def forget_nothing(organisation: str, session_id: str) -> None: ...

        await DeletionCleanup(database, objects, forget_nothing).run()
    await database.close()
