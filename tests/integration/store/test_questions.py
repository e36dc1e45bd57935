"""Questions wait beside approvals: each is answered once, by a person or by the clock."""

import pytest

from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.pagination import Page
from footplate.domain.policy.approvals import DECIDED_BY_TIMEOUT
from footplate.domain.ports.api import Input
from footplate.domain.sessions import events, questions
from footplate.domain.sessions.events import Event
from footplate.store.log.approval_edits_and_expiry import ApprovalExpiry

from .cell import Cell, new_principal
from .test_approvals import OLDEST, park, use

INPUT: JsonObject = {"questions": [{"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]}]}


def reply_to(question: Event, text: str) -> Input:
    fields = questions.result_fields(question.id, INPUT, {"Which?": text})
    return Input(type=events.USER_CUSTOM_TOOL_RESULT, body=fields)


async def test_a_reply_is_accepted_once_and_names_its_author(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    asked, plain = questions.question(INPUT, call_id="a"), events.custom_tool_use("ask_user", INPUT, call_id="b")
    await park(cell, await cell.claim(session_id, principal), asked, plain, use("c"))
    page = Page(limit=10, order="asc")
    assert [one.id for one in await cell.reads.approvals(principal, page, is_question=True)] == [asked.id]
    assert len(await cell.reads.approvals(principal, OLDEST)) == 1
    for found in (asked.id, plain.id):
        with pytest.raises(NotFound):
            await cell.reads.approval(principal, found)
    first = await cell.send(principal, session_id, reply_to(asked, "A"))
    again = await cell.send(principal, session_id, reply_to(asked, "A"))
    assert [position.event.id for position in again.positions] == [position.event.id for position in first.positions]
    with pytest.raises(Conflict, match=f"already answered by {principal.name}"):
        await cell.send(principal, session_id, reply_to(asked, "B"))
    await cell.send(principal, session_id, reply_to(plain, "A"))
    with pytest.raises(InvalidRequest):  # an ordinary custom tool call
        await cell.send(principal, session_id, reply_to(plain, "A"))
    sent = first.positions[0].event.body
    assert (sent["answered_by"], sent["answered_by_name"]) == (principal.id, principal.name)
    closed = await cell.reads.approval(principal, asked.id, is_question=True)
    assert (closed.status, closed.principal, closed.reply) == ("answered", principal.id, {"Which?": "A"})


@pytest.mark.parametrize("default", [{"Which?": "B"}, None])
async def test_the_default_counts_after_the_deadline(cell: Cell, default: JsonObject | None) -> None:
    principal = new_principal()
    session_id = await cell.session(principal, "Go.")
    more: JsonObject = {"deadline_seconds": 3600, **({"default": default} if default else {})}
    asked = questions.question({**INPUT, **more}, call_id="a")
    await park(cell, await cell.claim(session_id, principal), asked)
    expiry = ApprovalExpiry(cell.database, cell.objects)
    await expiry.run()
    (pending,) = await cell.reads.approvals(principal, OLDEST, is_question=True)
    assert pending.expires_at is not None
    assert (pending.expires_at - pending.created_at).total_seconds() == 3600
    async with cell.database.connection() as connection:
        await connection.execute("update approvals set expires_at = now() - interval '1 minute'")
    await expiry.run()
    await expiry.run()
    ended = await cell.reads.approval(principal, asked.id, is_question=True)
    assert (ended.status, ended.principal, ended.reply) == ("answered", DECIDED_BY_TIMEOUT, default)
    claim = await cell.claim(session_id, principal)
    (result,) = [e for e in await cell.turns.turn_events(claim) if e.type == events.USER_CUSTOM_TOOL_RESULT]
    assert (result.body["answered_by"], "answered_by_name" in result.body) == (DECIDED_BY_TIMEOUT, False)
    assert ('"Which?"="B"' in str(result.body["content"])) is (default is not None)


async def test_questions_expire_as_approvals_unless_they_have_a_deadline(cell: Cell) -> None:
    principal = new_principal()
    async with cell.units.unit(principal, None) as unit:
        await unit.set_policy(principal, None, {"expires_after_seconds": 60})
    session_id = await cell.session(principal, "Go.")
    asked = [questions.question({**INPUT, **more}, call_id="a") for more in ({}, {"deadline_seconds": 5})]
    await park(cell, await cell.claim(session_id, principal), *asked)
    found = await cell.reads.approvals(principal, OLDEST, is_question=True)
    waits = {one.id: one.expires_at - one.created_at for one in found if one.expires_at is not None}
    assert [waits[event.id].total_seconds() for event in asked] == [60, 5]
    await cell.send(principal, session_id, "Leave it.")
    await cell.claim(session_id, principal)
    assert (await cell.reads.approval(principal, asked[0].id, is_question=True)).status == "closed"
    with pytest.raises(InvalidRequest):
        await cell.send(principal, session_id, reply_to(asked[0], "A"))
