"""Approvals that a running turn holds: either the person's decision counts or the turn's own denial, never both.

Also: the decisions on a turn that another turn superseded.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from footplate.domain import events, threads
from footplate.domain.approvals import TURN
from footplate.domain.errors import Conflict, Fenced
from footplate.domain.events import Event
from footplate.domain.services import Input
from footplate.domain.turns import Outcome as Ending
from footplate.domain.turns import TurnStatus, WhenBusy

from .cell import Cell, somebody
from .test_approvals import use, word


async def test_a_persons_word_is_heard_while_the_turn_runs(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who, "Go.")
    claim = await cell.claim(session_id, who)
    held = use("a")
    await cell.turns.append(claim, [held])
    assert await cell.turns.answer(claim, held.id) is None
    (said,) = (await cell.send(who, session_id, word(held))).positions
    heard = await cell.turns.answer(claim, held.id)
    assert heard == said.event
    assert await cell.turns.close_ask(claim, held.id, "it is over") == (said.event, ())


@pytest.mark.parametrize("is_forgotten", [False, True])
async def test_who_comes_after_the_hold_hears_why(cell: Cell, *, is_forgotten: bool) -> None:
    who = somebody()
    session_id = await cell.session(who, "Go.")
    claim = await cell.claim(session_id, who)
    held = use("a")
    await cell.turns.append(claim, [held])
    cell.database.forget = int(is_forgotten)
    denied, positions = await cell.turns.close_ask(claim, held.id, "nobody answered in time")
    assert [position.event.id for position in positions] == [denied.id]
    assert await cell.turns.answer(claim, held.id) == denied
    with pytest.raises(Conflict, match="nobody answered in time"):
        await cell.send(who, session_id, word(held))
    closed = await cell.reads.approval(who, held.id)
    assert (closed.status, closed.principal) == ("denied", TURN)
    await cell.turns.finish(claim, Ending(status=TurnStatus.COMPLETED))
    with pytest.raises(Conflict, match="nobody answered in time"):
        await cell.send(who, session_id, word(held))


async def test_a_word_on_a_subagents_call_is_of_its_thread(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who, "Go.")
    claim = await cell.claim(session_id, who)
    first, second = (threads.asking(use(name), f"sthr_{name}", "scout") for name in "ab")
    own = use("c")
    await cell.turns.append(claim, [first, second, own])
    said = (await cell.send(who, session_id, word(first), word(own))).positions
    assert [position.event.body.get(threads.THREAD_ID) for position in said] == ["sthr_a", None]
    again = (await cell.send(who, session_id, word(first))).positions
    assert [position.event.id for position in again] == [said[0].event.id]
    with pytest.raises(Conflict):
        await cell.send(who, session_id, word(first, "deny"))
    denied, _ = await cell.turns.close_ask(claim, second.id, "it is over")
    assert denied.body[threads.THREAD_ID] == "sthr_b"
    assert await cell.turns.answer(claim, second.id) == denied


async def test_a_lost_worker_ends_no_ask(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who, "Go.")
    claim = await cell.claim(session_id, who)
    held = use("a")
    await cell.turns.append(claim, [held])
    with pytest.raises(Fenced):
        await cell.turns.close_ask(replace(claim, epoch=claim.epoch - 1), held.id, "too late")
    assert await cell.turns.answer(claim, held.id) is None


async def test_what_was_said_of_a_turn_whose_place_another_one_takes(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who, "Go.")
    claim = await cell.claim(session_id, who)
    asks = [events.custom_tool_use("ask", {"q": number}, call_id=f"c{number}") for number in range(2)]
    held = use("a")
    assert await cell.turns.left(claim) == []
    await cell.turns.append(claim, [*asks, held])
    pending = tuple(event.id for event in (*asks, held))
    await cell.turns.finish(claim, Ending(status=TurnStatus.AWAITING, pending=pending))
    content = [events.text_block("Blue.")]
    result = Input(type=events.USER_CUSTOM_TOOL_RESULT, body={"custom_tool_use_id": asks[0].id, "content": [*content]})
    message = Input(
        type=events.USER_MESSAGE, body={"content": [events.text_block("Never mind.")]}, when_busy=WhenBusy.QUEUE
    )
    await cell.send(who, session_id, result, word(held), message)
    new = await cell.claim(session_id, who)
    assert new.superseded
    left = await cell.turns.left(new)
    assert [event.type for event in left] == [
        events.AGENT_CUSTOM_TOOL_USE,
        events.AGENT_CUSTOM_TOOL_USE,
        events.USER_CUSTOM_TOOL_RESULT,
        events.USER_TOOL_CONFIRMATION,
    ]
    assert _answered(left) == {asks[0].id, held.id}
    await cell.turns.finish(new, Ending(status=TurnStatus.COMPLETED))
    await cell.send(who, session_id, message)
    assert await cell.turns.left(await cell.claim(session_id, who)) == []


def _answered(told: Sequence[Event]) -> set[str]:
    said = [event.body for event in told if event.type.startswith("user.")]
    return {str(body.get("custom_tool_use_id") or body.get("tool_use_id")) for body in said}
