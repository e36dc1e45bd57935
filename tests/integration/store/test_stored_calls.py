"""Stored tool calls with their inputs, newest first, and the rules of their sessions."""

from datetime import UTC, datetime, timedelta

import pytest

from footplate.domain import audit
from footplate.domain.audit import AuditFilter
from footplate.domain.errors import Conflict
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.policy.permissions import Decision, ExpectedPolicy, Layer, PermissionOutcome
from footplate.domain.policy.policy_replay import CallFilter, StoredCall
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event

from .cell import Cell, new_principal
from .test_audit import deny_commands


async def _calls(cell: Cell, principal: Principal, *, limit: int = 50, **where: object) -> list[StoredCall]:
    return [*await cell.reads.calls(principal, CallFilter(**where), limit=limit, after=None)]  # pyrefly: ignore[bad-argument-type]


async def test_calls_come_with_their_inputs_newest_first(cell: Cell) -> None:
    principal = new_principal()
    first = await deny_commands(cell, principal, "rm a", "rm b")
    second = await deny_commands(cell, principal, "rm c")
    found = await _calls(cell, principal)
    assert [one.input for one in found] == [{"command": "rm c"}, {"command": "rm b"}, {"command": "rm a"}]
    assert [one.session_id for one in found] == [second, first, first]
    assert {(one.name, one.server, one.original_outcome) for one in found} == {("bash", None, PermissionOutcome.DENY)}
    assert await _calls(cell, new_principal()) == []


async def test_a_setup_command_is_a_call_in_the_audit_trail(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    claim = await cell.claim(session_id, principal)
    body: JsonObject = {"project_id": "proj_1", "name": "app", "command": "npm ci", "restored": []}
    allowed = events.permission_fields(Decision(PermissionOutcome.ALLOW, "A rule.", "Bash(npm ci)", Layer.PROJECT))
    await cell.turns.append(claim, [Event(events.SETUP_STARTED, {**body, **allowed})])
    (call,) = await _calls(cell, principal)
    assert (call.name, call.server, call.input) == ("bash", None, {"command": "npm ci"})
    (entry,) = await cell.reads.audit(principal, Page(limit=9), AuditFilter(kind="decision"))
    assert (entry.outcome, entry.tool, entry.layer, entry.call_input) == ("allow", "bash", "project", call.input)
    assert entry.input_hash == audit.hash_json(call.input)


async def test_stored_calls_are_paged_and_filtered(cell: Cell) -> None:
    principal = new_principal()
    first = await deny_commands(cell, principal, "a", "b", "c")
    await deny_commands(cell, principal, "d")
    page = await _calls(cell, principal, limit=2)
    rest = await cell.reads.calls(principal, CallFilter(), limit=9, after=(page[-1].created_at, page[-1].id))
    assert [one.input for one in (*page, *rest)] == [{"command": text} for text in "dcba"]
    assert len(await _calls(cell, principal, session_id=first)) == 3
    assert await _calls(cell, principal, project_id="proj_none") == []
    now = datetime.now(UTC)
    assert await _calls(cell, principal, since=now + timedelta(hours=1)) == []
    assert len(await _calls(cell, principal, since=now - timedelta(hours=1), until=now + timedelta(hours=1))) == 4


async def test_a_call_of_a_deleted_session_has_no_input(cell: Cell) -> None:
    principal = new_principal()
    session_id = await deny_commands(cell, principal, "rm a")
    async with cell.units.unit(principal, None) as unit:
        await unit.delete_session(principal, session_id)
    await cell.reads.rules_by_session(principal, [session_id])
    (call,) = await _calls(cell, principal)
    assert (call.input, call.name) == (None, "bash")
    assert await cell.reads.rules_by_session(principal, [session_id]) == {}


async def test_a_policy_is_replaced_only_if_it_is_the_expected_one(cell: Cell) -> None:
    principal = new_principal()

    async def write(updated_at: datetime | None) -> datetime | None:
        async with cell.units.unit(principal, None) as unit:
            written = await unit.set_policy(principal, {"deny": ["Bash"]}, expected=ExpectedPolicy(updated_at))
            return written.updated_at

    with pytest.raises(Conflict):
        await write(datetime.now(UTC))
    first = await write(None)
    with pytest.raises(Conflict):
        await write(None)
    second = await write(first)
    with pytest.raises(Conflict):
        await write(first)
    assert (await cell.reads.policy(principal)).updated_at == second


async def test_the_rules_of_sessions_are_read(cell: Cell) -> None:
    principal = new_principal()
    session_id = await deny_commands(cell, principal, "rm a")
    async with cell.units.unit(principal, None) as unit:
        await unit.set_policy(principal, {"deny": ["Bash(rm *)"]})
    found = await cell.reads.rules_by_session(principal, [session_id, "sesn_none"])
    assert [*found] == [session_id]
    layers = dict(found[session_id].layers)
    assert (layers[Layer.ORGANISATION], layers[Layer.SESSION]) == ({"deny": ["Bash(rm *)"]}, {})
    assert await cell.reads.rules_by_session(new_principal(), [session_id]) == {}
