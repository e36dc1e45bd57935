"""Approvals that a running turn holds: either the person's decision counts or the turn's own denial, never both.

Also: the decisions on a turn that another turn superseded.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from footplate.domain.errors import Conflict, Fenced
from footplate.domain.policy.approvals import DECIDED_BY_TURN
from footplate.domain.ports.api import Input
from footplate.domain.sessions import events, threads
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.turns import TurnOutcome as Ending
from footplate.domain.sessions.turns import TurnStatus, WhenBusy

from .cell import Cell, new_principal
from .test_approvals import decision_on, use


async def test_a_decision_reaches_the_running_turn(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    claim = await cell.claim(session_id, principal)
    held = use("a")
    await cell.turns.append(claim, [held])
    assert await cell.turns.find_decision(claim, held.id) is None
    (decided,) = (await cell.send(principal, session_id, decision_on(held))).positions
    found = await cell.turns.find_decision(claim, held.id)
    assert found == decided.event
    assert await cell.turns.close_approval(claim, held.id, "it is over") == (decided.event, ())


@pytest.mark.parametrize("acknowledgement_lost", [False, True])
async def test_a_late_decision_is_refused_with_the_reason(cell: Cell, *, acknowledgement_lost: bool) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    claim = await cell.claim(session_id, principal)
    held = use("a")
    await cell.turns.append(claim, [held])
    cell.database.acknowledgements_to_lose = int(acknowledgement_lost)
    denied, positions = await cell.turns.close_approval(claim, held.id, "nobody answered in time")
    assert [position.event.id for position in positions] == [denied.id]
    assert await cell.turns.find_decision(claim, held.id) == denied
    with pytest.raises(Conflict, match="nobody answered in time"):
        await cell.send(principal, session_id, decision_on(held))
    closed = await cell.reads.approval(principal, held.id)
    assert (closed.status, closed.principal) == ("denied", DECIDED_BY_TURN)
    await cell.turns.finish(claim, Ending(status=TurnStatus.COMPLETED))
    with pytest.raises(Conflict, match="nobody answered in time"):
        await cell.send(principal, session_id, decision_on(held))


async def test_a_decision_on_a_subagents_call_belongs_to_its_thread(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    claim = await cell.claim(session_id, principal)
    first, second = (threads.call_in_thread(use(name), f"sthr_{name}", "scout") for name in "ab")
    own = use("c")
    await cell.turns.append(claim, [first, second, own])
    decided = (await cell.send(principal, session_id, decision_on(first), decision_on(own))).positions
    assert [position.event.body.get(threads.THREAD_ID) for position in decided] == ["sthr_a", None]
    again = (await cell.send(principal, session_id, decision_on(first))).positions
    assert [position.event.id for position in again] == [decided[0].event.id]
    with pytest.raises(Conflict):
        await cell.send(principal, session_id, decision_on(first, "deny"))
    denied, _ = await cell.turns.close_approval(claim, second.id, "it is over")
    assert denied.body[threads.THREAD_ID] == "sthr_b"
    assert await cell.turns.find_decision(claim, second.id) == denied


async def test_a_lost_worker_closes_no_approval(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    claim = await cell.claim(session_id, principal)
    held = use("a")
    await cell.turns.append(claim, [held])
    with pytest.raises(Fenced):
        await cell.turns.close_approval(replace(claim, epoch=claim.epoch - 1), held.id, "too late")
    assert await cell.turns.find_decision(claim, held.id) is None


async def test_the_results_and_decisions_of_a_superseded_turn_are_found(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    claim = await cell.claim(session_id, principal)
    asks = [events.custom_tool_use("ask", {"q": number}, call_id=f"c{number}") for number in range(2)]
    held = use("a")
    assert await cell.turns.superseded_events(claim) == []
    await cell.turns.append(claim, [*asks, held])
    pending = tuple(event.id for event in (*asks, held))
    await cell.turns.finish(claim, Ending(status=TurnStatus.AWAITING, pending=pending))
    content = [events.text_block("Blue.")]
    result = Input(type=events.USER_CUSTOM_TOOL_RESULT, body={"custom_tool_use_id": asks[0].id, "content": [*content]})
    message = Input(
        type=events.USER_MESSAGE, body={"content": [events.text_block("Never mind.")]}, when_busy=WhenBusy.QUEUE
    )
    await cell.send(principal, session_id, result, decision_on(held), message)
    new = await cell.claim(session_id, principal)
    assert new.superseded_harness
    superseded = await cell.turns.superseded_events(new)
    assert [event.type for event in superseded] == [
        events.AGENT_CUSTOM_TOOL_USE,
        events.AGENT_CUSTOM_TOOL_USE,
        events.USER_CUSTOM_TOOL_RESULT,
        events.USER_TOOL_CONFIRMATION,
    ]
    assert _resolved_calls(superseded) == {asks[0].id, held.id}
    await cell.turns.finish(new, Ending(status=TurnStatus.COMPLETED))
    await cell.send(principal, session_id, message)
    assert await cell.turns.superseded_events(await cell.claim(session_id, principal)) == []


def _resolved_calls(found: Sequence[Event]) -> set[str]:
    bodies = [event.body for event in found if event.type.startswith("user.")]
    return {str(body.get("custom_tool_use_id") or body.get("tool_use_id")) for body in bodies}
