"""Rules that are in force for a session, and people's words on calls that wait for them."""

import pytest

from footplate.domain import events
from footplate.domain.errors import Conflict, InvalidRequest
from footplate.domain.events import Event
from footplate.domain.permissions import Decision, Layer, Outcome
from footplate.domain.running import Claim
from footplate.domain.services import Accepted, Input
from footplate.domain.turns import Outcome as Ending
from footplate.domain.turns import TurnStatus
from footplate.store.policies import Rules

from .cell import Cell, somebody

ASK = Decision(Outcome.ASK, "because", "Bash", Layer.AGENT)


def word(use: Event, result: str = "allow", **more: str) -> Input:
    return Input(type=events.USER_TOOL_CONFIRMATION, body={"tool_use_id": use.id, "result": result, **more})


def use(call_id: str, decision: Decision | None = ASK) -> Event:
    return events.tool_use("bash", {"command": "make"}, call_id=call_id, decision=decision)


async def park(cell: Cell, claim: Claim, *uses: Event) -> None:
    await cell.turns.append(claim, uses)
    await cell.turns.finish(claim, Ending(status=TurnStatus.AWAITING, pending=tuple(each.id for each in uses)))


async def test_rules_of_all_layers(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who)
    rules = Rules(cell.database)
    assert dict(await rules.rules(who.organisation, session_id)) == {Layer.ORGANISATION: {}, Layer.SESSION: {}}
    async with cell.units.unit(who, None) as unit:
        await unit.set_policy(who, {"deny": ["Bash(rm *)"]})
    assert (await rules.rules(who.organisation, session_id))[0] == (Layer.ORGANISATION, {"deny": ["Bash(rm *)"]})
    assert (await cell.reads.policy(who)).principal == who.id
    assert (await cell.reads.policy(somebody())).permissions == {}


async def test_a_word_is_taken_once(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who, "Go.")
    claim = await cell.claim(session_id, who)
    first, second, free = use("a"), use("b"), use("c", None)
    await cell.turns.append(claim, [free])
    await park(cell, claim, first, second)

    async def send(*inputs: Input) -> Accepted:
        return await cell.send(who, session_id, *inputs)

    for wrong in (free, use("d")):
        with pytest.raises(InvalidRequest):
            await send(word(wrong))
    said = await send(word(first))
    await cell.nothing(session_id, who)
    again = await send(word(first))
    assert [position.event.id for position in again.positions] == [position.event.id for position in said.positions]
    for other in (word(first, "deny"), word(first, "deny", deny_message="no")):
        with pytest.raises(Conflict):
            await send(other)
    mixed = await send(word(first), word(second, "deny", deny_message="no"))
    assert len(mixed.positions) == 2
    resumed = await cell.claim(session_id, who)
    told = [event for event in await cell.turns.turn_events(resumed) if event.type == events.USER_TOOL_CONFIRMATION]
    assert [event.body["result"] for event in told] == ["allow", "deny"]
    with pytest.raises(Conflict):
        await send(word(second))
