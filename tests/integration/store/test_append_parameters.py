"""Each value of an append arrives in its own column: an append in which any two arguments are swapped is noticed."""

from collections.abc import Callable
from dataclasses import fields
from itertools import combinations
from math import comb
from typing import Any

import pytest

from footplate.domain.files.snapshots import Snapshot, StoredSnapshot, TreeSnapshot
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.engine import Claim
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event, Usage
from footplate.domain.sessions.shell_state import ShellState
from footplate.domain.text.event_truncation import INLINE_LIMIT
from footplate.store.database import PARAMETERS, Connection
from footplate.store.log import append
from footplate.store.log.append import AppendBatch
from footplate.store.object_store import Objects

from .cell import Cell

_LARGE_TEXT = "x" * INLINE_LIMIT


def _new_batch(claim: Claim) -> AppendBatch:
    permission: JsonObject = {"layer": "agent", "rule": "bash(ls)"}
    call: JsonObject = {
        "name": "bash",
        "input": {"command": "ls"},
        "evaluated_permission": "ask",
        "permission": permission,
    }
    return AppendBatch(
        events=[
            Event("agent.tool_use", call),
            Event(events.AGENT_MESSAGE, {"content": [{"type": "text", "text": _LARGE_TEXT}]}),
            Event(events.USER_MESSAGE, {}),
        ],
        refs=[0, 0, claim.first_seq],
        entries=[Entry("request", {"a": 1}), Entry("response", {"text": _LARGE_TEXT[::-1] + "y"})],
        usage=Usage(11, 12, 13, 14, 15, 16),
        files=[
            TreeSnapshot(
                "proj_1",
                StoredSnapshot(
                    17, Snapshot("f1", "s1", (("HEAD", "c1"),), "b1"), base="t1", omitted=("big: too large",)
                ),
                is_turn_start=True,
            ),
            TreeSnapshot("scratch", StoredSnapshot(18, Snapshot("f2"))),
        ],
        shell=ShellState(directory="work"),
    )


async def test_every_value_of_an_append_is_in_its_column(cell: Cell, principal: Principal) -> None:
    claim = await _claim(cell, principal)
    await _check_append(cell, claim)


async def test_any_two_swapped_arguments_of_an_append_are_noticed(
    cell: Cell, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = await _claim(cell, principal)
    unnoticed: list[tuple[str, str]] = []
    count = 0
    row = [field.name for field in fields(append._SnapshotRow)]
    for owner, name, arguments in (
        (append, "bind", PARAMETERS["append_turn"]),
        (append._SnapshotRow, "__init__", row),
    ):
        for pair in combinations(arguments, 2):
            count += 1
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, _swap_arguments(getattr(owner, name), *pair))
                try:
                    await _check_append(cell, claim)
                except Exception:  # noqa: BLE001 - the database or the comparison refuses it, in one of many ways
                    continue
            unnoticed.append(pair)
    assert unnoticed == []
    assert count == comb(len(PARAMETERS["append_turn"]), 2) + comb(len(row), 2)


async def _claim(cell: Cell, principal: Principal) -> Claim:
    return await cell.claim(await cell.session(principal, "hello"), principal)


def _swap_arguments(function: Callable[..., Any], one: str, other: str) -> Callable[..., Any]:
    """Returns the function as if its caller had exchanged the values of these two arguments."""
    return lambda *positional, **named: function(*positional, **{**named, one: named[other], other: named[one]})


async def _check_append(cell: Cell, claim: Claim) -> None:
    """Appends a batch of values that all differ, compares every row with it, and undoes it."""
    batch = _new_batch(claim)
    async with cell.database.connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            await append.append_batch(connection, cell.objects, claim, batch)
            await _compare_rows(connection, cell.objects, claim, batch)
        finally:
            await transaction.rollback()


async def _compare_rows(connection: Connection, objects: Objects, claim: Claim, batch: AppendBatch) -> None:
    async def read(table: str, order: str, session: str = "session_id") -> list[dict[str, Any]]:
        rows = await connection.fetch(f"select * from {table} where {session} = $1 order by {order}", claim.session_id)
        assert {row["organisation"] for row in rows} == {claim.organisation}
        return [dict(row) for row in rows]

    async def body(row: dict[str, Any]) -> object:
        return await objects.load_body(row["object_key"]) if row["object_key"] else row["body"]

    stored = (await read("events", "seq"))[-len(batch.events) :]
    assert [row["turn_id"] for row in stored] == [claim.turn_id] * 3
    assert [(row["event_id"], row["type"]) for row in stored] == [(event.id, event.type) for event in batch.events]
    assert [row["ref_seq"] for row in stored] == [None, None, claim.first_seq]
    assert [await body(row) for row in stored] == [*(event.body for event in batch.events[:2]), None]
    entries = await read("entries", "idx")
    assert [(row["kind"], await body(row)) for row in entries] == [(entry.kind, entry.body) for entry in batch.entries]
    assert [row["turn_id"] for row in entries] == [claim.turn_id] * 2
    (head,), (turn,) = await read("session_heads", "1"), await read("turns", "1")
    names = ("input_tokens", "output_tokens", "cache_read", "cache_write", "requests", "cost_microusd")
    for row in (head, turn):
        assert [row[name] for name in names] == [11, 12, 13, 14, 15, 16]
    columns = ("tree", "begins", "number", "files", "apart", "base", "left_out", "commits", "bundles", "turn_id")
    assert [tuple(row[name] for name in columns) for row in await read("snapshots", "tree")] == [
        ("proj_1", True, 17, "f1", "s1", "t1", ["big: too large"], {"HEAD": "c1"}, "b1", claim.turn_id),
        ("scratch", False, 18, "f2", None, None, [], {}, None, claim.turn_id),
    ]
    assert [row["state"]["directory"] for row in await read("shell_states", "1")] == ["work"]
    call = batch.events[0]
    assert [(row["event_id"], row["turn_id"]) for row in await read("approvals", "seq")] == [(call.id, claim.turn_id)]
    (decision,) = await read("audit", "1", session="session")
    values = (call.id, "ask", "bash", "agent", {"rule": "bash(ls)"}, claim.turn_id)
    assert tuple(decision[name] for name in ("event", "outcome", "tool", "layer", "content", "turn")) == values
