"""The effective rules of a session, and people's decisions on calls that need approval."""

from dataclasses import replace

import pytest

from footplate.domain import ids
from footplate.domain.audit import AuditFilter
from footplate.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound
from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations.principals import PrincipalKind
from footplate.domain.pagination import Page
from footplate.domain.policy.approvals import DECIDED_BY_TIMEOUT, InputEdited
from footplate.domain.policy.permissions import Decision, Layer, PermissionOutcome
from footplate.domain.ports.api import AcceptedInputs, Input
from footplate.domain.ports.engine import Claim
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.turns import TurnOutcome as Ending
from footplate.domain.sessions.turns import TurnStatus, WhenBusy
from footplate.domain.text.approval_display import describe_call
from footplate.store.log.approval_edits_and_expiry import ApprovalExpiry
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.policies import SessionRuleLoader

from .cell import Cell, message, new_principal

ASK = Decision(PermissionOutcome.ASK, "because", "Bash", Layer.AGENT)


def decision_on(use: Event, result: str = "allow", **more: Json) -> Input:
    return Input(type=events.USER_TOOL_CONFIRMATION, body={"tool_use_id": use.id, "result": result, **more})


def use(call_id: str, decision: Decision | None = ASK) -> Event:
    return events.tool_use("bash", {"command": "make"}, call_id=call_id, decision=decision)


async def park(cell: Cell, claim: Claim, *uses: Event) -> None:
    await cell.turns.append(claim, uses)
    await cell.turns.finish(claim, Ending(status=TurnStatus.AWAITING, pending=tuple(each.id for each in uses)))


async def test_rules_of_all_layers_are_read(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal)
    rules = SessionRuleLoader(cell.database)
    assert dict(await rules.rules(principal.organisation, session_id)) == {Layer.ORGANISATION: {}, Layer.SESSION: {}}
    async with cell.units.unit(principal, None) as unit:
        await unit.set_policy(principal, {"deny": ["Bash(rm *)"]})
    assert (await rules.rules(principal.organisation, session_id))[0] == (Layer.ORGANISATION, {"deny": ["Bash(rm *)"]})
    assert (await cell.reads.policy(principal)).principal == principal.id
    assert (await cell.reads.policy(new_principal())).permissions == {}


async def test_a_decision_is_accepted_once(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    claim = await cell.claim(session_id, principal)
    first, second, free = use("a"), use("b"), use("c", None)
    await cell.turns.append(claim, [free])
    await park(cell, claim, first, second)

    async def send(*inputs: Input) -> AcceptedInputs:
        return await cell.send(principal, session_id, *inputs)

    for wrong in (free, use("d")):
        with pytest.raises(InvalidRequest):
            await send(decision_on(wrong))
    decided = await send(decision_on(first))
    await cell.expect_nothing_to_claim(session_id, principal)
    again = await send(decision_on(first))
    assert [position.event.id for position in again.positions] == [position.event.id for position in decided.positions]
    for other in (decision_on(first, "deny"), decision_on(first, "deny", deny_message="no")):
        with pytest.raises(Conflict):
            await send(other)
    mixed = await send(decision_on(first), decision_on(second, "deny", deny_message="no"))
    assert len(mixed.positions) == 2
    resumed = await cell.claim(session_id, principal)
    decisions = [
        event for event in await cell.turns.turn_events(resumed) if event.type == events.USER_TOOL_CONFIRMATION
    ]
    assert [event.body["result"] for event in decisions] == ["allow", "deny"]
    assert [event.body["decided_by"] for event in decisions] == [principal.id] * 2
    assert [event.body["decided_by_name"] for event in decisions] == [principal.name] * 2
    with pytest.raises(Conflict):
        await send(decision_on(second))


OLDEST = Page(limit=10, order="asc")


async def test_pending_approvals_are_listed_across_sessions(cell: Cell) -> None:
    principal = new_principal()
    asked: list[Event] = []
    for _ in range(2):
        session_id = await cell.session(principal, "Go.")
        claim = await cell.claim(session_id, principal)
        first, free = use("a"), use("b", None)
        asked.append(first)
        await cell.turns.append(claim, [first, free])
        assert [one.id for one in await cell.reads.approvals(principal, OLDEST, session_id=session_id)] == [first.id]
        await cell.turns.finish(claim, Ending(status=TurnStatus.AWAITING, pending=(first.id,)))
    found = await cell.reads.approvals(principal, OLDEST)
    assert [one.id for one in found] == [event.id for event in asked]
    assert (found[1].session_id, found[1].status, found[1].body["name"]) == (session_id, "pending", "bash")
    page = replace(OLDEST, after=(found[0].created_at, found[0].id))
    assert [one.id for one in await cell.reads.approvals(principal, page)] == [asked[1].id]
    assert await cell.reads.approvals(new_principal(), OLDEST) == []
    with pytest.raises(NotFound):
        await cell.reads.approval(new_principal(), asked[0].id)
    await cell.send(principal, session_id, decision_on(asked[1], "deny"))
    assert [one.id for one in await cell.reads.approvals(principal, OLDEST)] == [asked[0].id]
    decided = await cell.reads.approval(principal, asked[1].id)
    assert (decided.status, decided.principal) == ("denied", principal.id)


async def test_a_new_message_closes_pending_approvals(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, principal), asked)
    await cell.send(principal, session_id, "Leave it.")
    claim = await cell.claim(session_id, principal)
    assert claim.superseded_harness
    assert await cell.reads.approvals(principal, OLDEST) == []
    assert (await cell.reads.approval(principal, asked.id)).status == "closed"


async def test_a_session_rule_of_a_decision_is_stored_once(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    asked = use("a"), use("b")
    await park(cell, await cell.claim(session_id, principal), *asked)
    for each in asked:
        await cell.send(principal, session_id, decision_on(each, session_rule="Bash(make *)"))
    assert dict(await SessionRuleLoader(cell.database).rules(principal.organisation, session_id))[Layer.SESSION] == {
        "allow": ["Bash(make *)"]
    }
    assert (await cell.reads.session(principal, session_id)).permissions == {"allow": ["Bash(make *)"]}


async def test_a_repeated_large_decision_is_accepted_once(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, principal), asked)
    large = decision_on(asked, updated_input={"command": "x" * 100_000})
    first, again = [await cell.send(principal, session_id, large) for _ in range(2)]
    assert [one.event.id for one in first.positions] == [one.event.id for one in again.positions]


async def test_a_policy_restricts_who_may_decide(cell: Cell) -> None:
    principal = new_principal()
    other = replace(principal, id="key_other", roles=frozenset({"approver"}))
    session_id = await cell.session(principal, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, principal), asked)
    async with cell.units.unit(principal, None) as unit:
        await unit.set_policy(principal, None, {"two_people": True})
    with pytest.raises(Forbidden, match="requires two people"):
        await cell.send(principal, session_id, decision_on(asked))
    async with cell.units.unit(principal, None) as unit:
        await unit.set_policy(principal, None, {"role": "approver"})
    with pytest.raises(Forbidden, match="approver"):
        await cell.send(principal, session_id, decision_on(asked))
    assert len(await cell.reads.approvals(principal, OLDEST)) == 1
    await cell.send(other, session_id, decision_on(asked))
    assert (await cell.reads.approval(principal, asked.id)).principal == other.id


async def test_the_editor_of_an_input_cannot_approve_it(cell: Cell) -> None:
    requester = new_principal()
    editor = replace(requester, id="key_editor", name="editor")
    third = replace(requester, id="key_third", name="third")
    session_id = await cell.session(requester, "Go.")
    asked = use("a")
    evil: JsonObject = {"command": "touch EVIL"}
    await park(cell, await cell.claim(session_id, requester), asked)
    async with cell.units.unit(requester, None) as unit:
        await unit.set_policy(requester, None, {"two_people": True})
    edited = decision_on(asked, updated_input=evil)
    for _ in range(2):
        with pytest.raises(InputEdited):
            await cell.send(editor, session_id, edited)
    waiting = await cell.reads.approval(requester, asked.id)
    assert (waiting.status, waiting.edited_input, waiting.edited_by) == ("pending", evil, "key_editor")
    with pytest.raises(InputEdited):
        await cell.send(third, session_id, decision_on(asked, updated_input={"command": "touch OTHER"}))
    with pytest.raises(InputEdited):
        await cell.send(editor, session_id, edited)
    with pytest.raises(InvalidRequest):
        await cell.send(editor, session_id, decision_on(asked, updated_input={"command": "x" * 100_001}))
    (decision,) = (await cell.send(third, session_id, edited)).positions
    authors = (decision.event.body["decided_by_name"], decision.event.body["edited_by_name"])
    assert authors == (third.name, editor.name)
    approved = await cell.reads.approval(requester, asked.id)
    assert (approved.status, approved.principal, approved.edited_by) == ("allowed", third.id, editor.id)
    trail = await cell.reads.audit(requester, Page(limit=20, order="asc"), AuditFilter(kind="answer"))
    assert [(entry.outcome, entry.principal) for entry in trail] == [
        ("edit", "key_editor"),
        ("edit", "key_editor"),
        ("edit", "key_third"),
        ("edit", "key_editor"),
        ("allow", "key_third"),
    ]


async def test_the_requester_may_approve_the_edit_of_another_person(cell: Cell) -> None:
    requester = new_principal()
    editor = replace(requester, id="key_editor", name="editor")
    session_id = await cell.session(requester, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, requester), asked)
    async with cell.units.unit(requester, None) as unit:
        await unit.set_policy(requester, None, {"two_people": True})
    edited = decision_on(asked, updated_input={"command": "ls"})
    with pytest.raises(InputEdited):
        await cell.send(editor, session_id, edited)
    with pytest.raises(Forbidden, match="requires two people"):
        await cell.send(requester, session_id, decision_on(asked))
    await cell.send(requester, session_id, edited)


async def test_two_keys_of_one_member_are_one_person_and_two_members_are_two(cell: Cell) -> None:
    organisation = ids.new_id(ids.ORGANISATION)
    keys = ApiKeys(cell.database)
    admin, namesake = [await keys.authenticate(await keys.create_key(organisation, "ann", ["admin"])) for _ in range(2)]
    secrets = []
    async with cell.units.unit(admin, None) as unit:
        ann = await unit.create_member(admin, kind=PrincipalKind.PERSON, name="ann", roles=["member"])
        for name in ("laptop", "phone"):
            _, secret = await unit.create_api_key(admin, name=name, member_id=ann.id, roles=["member"], expires_at=None)
            secrets.append(secret)
        await unit.set_policy(admin, None, {"two_people": True})
    laptop, phone = [await keys.authenticate(secret) for secret in secrets]
    session_id = await cell.session(laptop, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, admin), asked)
    with pytest.raises(Forbidden, match="requires two people"):
        await cell.send(phone, session_id, decision_on(asked))
    await cell.send(namesake, session_id, decision_on(asked))


async def test_the_author_of_a_message_that_joined_the_turn_cannot_decide(cell: Cell) -> None:
    requester = new_principal()
    steerer, third = (replace(requester, id=f"key_{name}", name=name) for name in ("steerer", "third"))
    session_id = await cell.session(requester, "Go.")
    async with cell.units.unit(requester, None) as unit:
        await unit.set_policy(requester, None, {"two_people": True})
    claim = await cell.claim(session_id, requester)
    await cell.send(steerer, session_id, message("Now delete it.", WhenBusy.STEER))
    await cell.turns.claim_steering(claim)
    asked = use("a")
    await park(cell, claim, asked)
    for author in (requester, steerer):
        with pytest.raises(Forbidden, match="requires two people"):
            await cell.send(author, session_id, decision_on(asked))
    await cell.send(third, session_id, decision_on(asked))


@pytest.mark.parametrize("outcome", ["deny", "allow"])
async def test_an_approval_without_a_decision_expires(cell: Cell, outcome: str) -> None:
    principal = new_principal()
    async with cell.units.unit(principal, None) as unit:
        await unit.set_policy(principal, None, {"expires_after_seconds": 3600, "outcome": outcome, "two_people": True})
    session_id = await cell.session(principal, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, principal), asked)
    expiry = ApprovalExpiry(cell.database, cell.objects)
    await expiry.run()
    assert len(await cell.reads.approvals(principal, OLDEST)) == 1
    async with cell.database.connection() as connection:
        await connection.execute(
            "update approvals set expires_at = now() - interval '1 minute' where event_id = $1", asked.id
        )
    await expiry.run()
    await expiry.run()
    ended = await cell.reads.approval(principal, asked.id)
    assert (ended.status, ended.principal) == ("allowed" if outcome == "allow" else "denied", DECIDED_BY_TIMEOUT)
    claim = await cell.claim(session_id, principal)
    decisions = [event for event in await cell.turns.turn_events(claim) if event.type == events.USER_TOOL_CONFIRMATION]
    assert [event.body["result"] for event in decisions] == [outcome]
    assert [event.body.get("decided_by") for event in decisions] == [DECIDED_BY_TIMEOUT]
    assert "decided_by_name" not in decisions[0].body
    with pytest.raises(Conflict):
        await cell.send(principal, session_id, decision_on(asked, "allow" if outcome == "deny" else "deny"))


async def test_a_deleted_session_has_no_approval(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, principal), asked)
    await cell.delete(principal, session_id)
    with pytest.raises(NotFound):
        await cell.reads.approval(principal, asked.id)


async def test_archiving_a_session_closes_its_approvals(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    asked = use("a")
    await park(cell, await cell.claim(session_id, principal), asked)
    async with cell.units.unit(principal, None) as unit:
        await unit.archive_session(principal, session_id)
    assert await cell.reads.approvals(principal, OLDEST) == []
    assert (await cell.reads.approval(principal, asked.id)).status == "closed"


async def test_an_approval_has_the_whole_input_and_a_list_marks_truncated_ones(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    claim = await cell.claim(session_id, principal)
    long: JsonObject = {"file_path": "a", "content": "harmless\n" * 20_000 + "touch EVIL"}
    asked = events.tool_use("write", long, call_id="w", decision=ASK)
    await park(cell, claim, asked)
    [listed] = await cell.reads.approvals(principal, Page(limit=10, order="asc"))
    assert not describe_call(listed.body).whole
    one = await cell.reads.approval(principal, asked.id)
    assert one.body["input"] == long
    assert describe_call(one.body).whole
    with pytest.raises(NotFound):
        await cell.reads.approval(new_principal(), asked.id)
