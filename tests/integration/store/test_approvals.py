"""The effective rules of a session, and people's decisions on calls that need approval."""

from dataclasses import replace

import pytest

from footplate.domain import events, ids
from footplate.domain.approvals import CLOCK, InputEdited
from footplate.domain.audit import AuditFilter
from footplate.domain.call_display import describe_call
from footplate.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound
from footplate.domain.events import Event
from footplate.domain.json import Json, JsonObject
from footplate.domain.pages import Page
from footplate.domain.permissions import Decision, Layer, Outcome
from footplate.domain.running import Claim
from footplate.domain.services import Accepted, Input
from footplate.domain.turns import Outcome as Ending
from footplate.domain.turns import TurnStatus
from footplate.store.approvals import ExpiredAsks
from footplate.store.keys import Keys
from footplate.store.policies import Rules

from .cell import Cell, somebody

ASK = Decision(Outcome.ASK, "because", "Bash", Layer.AGENT)


def word(use: Event, result: str = "allow", **more: Json) -> Input:
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


OLDEST = Page(limit=10, order="asc")


async def test_what_waits_is_found_across_sessions(cell: Cell) -> None:
    who = somebody()
    asked: list[Event] = []
    for _ in range(2):
        session_id = await cell.session(who, "Go.")
        claim = await cell.claim(session_id, who)
        first, free = use("a"), use("b", None)
        asked.append(first)
        await cell.turns.append(claim, [first, free])
        assert [one.id for one in await cell.reads.approvals(who, OLDEST, session_id=session_id)] == [first.id]
        await cell.turns.finish(claim, Ending(status=TurnStatus.AWAITING, pending=(first.id,)))
    found = await cell.reads.approvals(who, OLDEST)
    assert [one.id for one in found] == [event.id for event in asked]
    assert (found[1].session_id, found[1].status, found[1].body["name"]) == (session_id, "pending", "bash")
    page = replace(OLDEST, after=(found[0].created_at, found[0].id))
    assert [one.id for one in await cell.reads.approvals(who, page)] == [asked[1].id]
    assert await cell.reads.approvals(somebody(), OLDEST) == []
    with pytest.raises(NotFound):
        await cell.reads.approval(somebody(), asked[0].id)
    await cell.send(who, session_id, word(asked[1], "deny"))
    assert [one.id for one in await cell.reads.approvals(who, OLDEST)] == [asked[0].id]
    answered = await cell.reads.approval(who, asked[1].id)
    assert (answered.status, answered.principal) == ("denied", who.id)


async def test_a_new_message_closes_what_waits(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, who), asked)
    await cell.send(who, session_id, "Leave it.")
    claim = await cell.claim(session_id, who)
    assert claim.superseded
    assert await cell.reads.approvals(who, OLDEST) == []
    assert (await cell.reads.approval(who, asked.id)).status == "closed"


async def test_what_is_allowed_for_the_session(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who, "Go.")
    asked = use("a"), use("b")
    await park(cell, await cell.claim(session_id, who), *asked)
    for each in asked:
        await cell.send(who, session_id, word(each, session_rule="Bash(make *)"))
    assert dict(await Rules(cell.database).rules(who.organisation, session_id))[Layer.SESSION] == {
        "allow": ["Bash(make *)"]
    }
    assert (await cell.reads.session(who, session_id)).permissions == {"allow": ["Bash(make *)"]}


async def test_a_large_answer_is_the_same_when_it_comes_again(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, who), asked)
    large = word(asked, updated_input={"command": "x" * 100_000})
    first, again = [await cell.send(who, session_id, large) for _ in range(2)]
    assert [one.event.id for one in first.positions] == [one.event.id for one in again.positions]


async def test_who_may_answer(cell: Cell) -> None:
    who = somebody()
    other = replace(who, id="key_other", roles=frozenset({"approver"}))
    session_id = await cell.session(who, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, who), asked)
    async with cell.units.unit(who, None) as unit:
        await unit.set_policy(who, None, {"two_people": True})
    with pytest.raises(Forbidden, match="requires two people"):
        await cell.send(who, session_id, word(asked))
    async with cell.units.unit(who, None) as unit:
        await unit.set_policy(who, None, {"role": "approver"})
    with pytest.raises(Forbidden, match="approver"):
        await cell.send(who, session_id, word(asked))
    assert len(await cell.reads.approvals(who, OLDEST)) == 1
    await cell.send(other, session_id, word(asked))
    assert (await cell.reads.approval(who, asked.id)).principal == other.id


async def test_who_edits_an_input_does_not_approve_it(cell: Cell) -> None:
    asker = somebody()
    editor = replace(asker, id="key_editor", name="editor")
    third = replace(asker, id="key_third", name="third")
    session_id = await cell.session(asker, "Go.")
    asked = use("a")
    evil: JsonObject = {"command": "touch EVIL"}
    await park(cell, await cell.claim(session_id, asker), asked)
    async with cell.units.unit(asker, None) as unit:
        await unit.set_policy(asker, None, {"two_people": True})
    edited = word(asked, updated_input=evil)
    for one in (editor, editor, replace(editor, id="key_editors_second")):
        with pytest.raises(InputEdited):
            await cell.send(one, session_id, edited)
    waiting = await cell.reads.approval(asker, asked.id)
    assert (waiting.status, waiting.edited_input, waiting.edited_by) == ("pending", evil, "key_editors_second")
    with pytest.raises(InputEdited):
        await cell.send(third, session_id, word(asked, updated_input={"command": "touch OTHER"}))
    with pytest.raises(InputEdited):
        await cell.send(editor, session_id, edited)
    with pytest.raises(InvalidRequest):
        await cell.send(editor, session_id, word(asked, updated_input={"command": "x" * 100_001}))
    await cell.send(third, session_id, edited)
    approved = await cell.reads.approval(asker, asked.id)
    assert (approved.status, approved.principal, approved.edited_by) == ("allowed", third.id, editor.id)
    trail = await cell.reads.audit(asker, Page(limit=20, order="asc"), AuditFilter(kind="answer"))
    assert [(entry.outcome, entry.principal) for entry in trail] == [
        ("edit", "key_editor"),
        ("edit", "key_editor"),
        ("edit", "key_editors_second"),
        ("edit", "key_third"),
        ("edit", "key_editor"),
        ("allow", "key_third"),
    ]


async def test_the_asker_may_approve_what_another_person_wrote(cell: Cell) -> None:
    asker = somebody()
    editor = replace(asker, id="key_editor", name="editor")
    session_id = await cell.session(asker, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, asker), asked)
    async with cell.units.unit(asker, None) as unit:
        await unit.set_policy(asker, None, {"two_people": True})
    edited = word(asked, updated_input={"command": "ls"})
    with pytest.raises(InputEdited):
        await cell.send(editor, session_id, edited)
    with pytest.raises(Forbidden, match="requires two people"):
        await cell.send(asker, session_id, word(asked))
    await cell.send(asker, session_id, edited)


async def test_two_keys_of_one_name_are_one_person(cell: Cell) -> None:
    organisation = ids.new_id(ids.ORGANISATION)
    keys = Keys(cell.database)
    first, second = [await keys.authenticate(await keys.create(organisation, "alice", ["admin"])) for _ in range(2)]
    session_id = await cell.session(first, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, first), asked)
    async with cell.units.unit(first, None) as unit:
        await unit.set_policy(first, None, {"two_people": True})
    with pytest.raises(Forbidden, match="requires two people"):
        await cell.send(second, session_id, word(asked))


@pytest.mark.parametrize("outcome", ["deny", "allow"])
async def test_what_nobody_answers_in_time(cell: Cell, outcome: str) -> None:
    who = somebody()
    async with cell.units.unit(who, None) as unit:
        await unit.set_policy(who, None, {"expires_after_seconds": 3600, "outcome": outcome, "two_people": True})
    session_id = await cell.session(who, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, who), asked)
    chore = ExpiredAsks(cell.database, cell.objects)
    await chore.run()
    assert len(await cell.reads.approvals(who, OLDEST)) == 1
    async with cell.database.connection() as connection:
        await connection.execute(
            "update approvals set expires_at = now() - interval '1 minute' where event_id = $1", asked.id
        )
    await chore.run()
    await chore.run()
    ended = await cell.reads.approval(who, asked.id)
    assert (ended.status, ended.principal) == ("allowed" if outcome == "allow" else "denied", CLOCK)
    claim = await cell.claim(session_id, who)
    told = [event for event in await cell.turns.turn_events(claim) if event.type == events.USER_TOOL_CONFIRMATION]
    assert [event.body["result"] for event in told] == [outcome]
    with pytest.raises(Conflict):
        await cell.send(who, session_id, word(asked, "allow" if outcome == "deny" else "deny"))


async def test_a_deleted_session_waits_for_nobody(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, who), asked)
    await cell.delete(who, session_id)
    with pytest.raises(NotFound):
        await cell.reads.approval(who, asked.id)


async def test_an_archived_session_waits_for_nobody(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, who), asked)
    async with cell.units.unit(who, None) as unit:
        await unit.archive_session(who, session_id)
    assert await cell.reads.approvals(who, OLDEST) == []
    assert (await cell.reads.approval(who, asked.id)).status == "closed"


async def test_one_approval_has_the_whole_input_and_a_list_says_what_it_cut(cell: Cell) -> None:
    who = somebody()
    session_id = await cell.session(who, "Go.")
    claim = await cell.claim(session_id, who)
    long: JsonObject = {"file_path": "a", "content": "harmless\n" * 20_000 + "touch EVIL"}
    asked = events.tool_use("write", long, call_id="w", decision=ASK)
    await park(cell, claim, asked)
    [listed] = await cell.reads.approvals(who, Page(limit=10, order="asc"))
    assert not describe_call(listed.body).whole
    one = await cell.reads.approval(who, asked.id)
    assert one.body["input"] == long
    assert describe_call(one.body).whole
    with pytest.raises(NotFound):
        await cell.reads.approval(somebody(), asked.id)
