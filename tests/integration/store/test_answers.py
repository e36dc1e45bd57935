"""A retried request takes effect once: recognised by its idempotency key, or by the retry count that the SDK sends."""

import asyncio
import hashlib

import pytest

from footplate.domain.errors import InvalidRequest, Unavailable
from footplate.domain.principals import Principal
from footplate.domain.services import Answer, Attempt

from .cell import Cell, message, somebody, text_of


def _attempt(session_id: str, text: str, *, key: str | None = None, retry: int = 0) -> Attempt:
    return Attempt(
        method="POST",
        path=f"/v1/sessions/{session_id}/events",
        body_hash=hashlib.sha256(text.encode()).digest(),
        idempotency_key=key,
        retry_count=retry,
    )


async def _send(cell: Cell, principal: Principal, session_id: str, text: str, attempt: Attempt) -> Answer:
    """Sends a message as the API does."""
    async with cell.units.unit(principal, attempt) as unit:
        if unit.replay is not None:
            return unit.replay
        accepted = await unit.send(principal, session_id, [message(text)])
        answer = Answer(200, {"data": [accepted.positions[0].event.id]})
        await unit.remember(answer)
        return answer


async def _texts(cell: Cell, principal: Principal, session_id: str) -> list[str]:
    return [text_of(position) for position in await cell.positions(session_id, principal)]


async def test_a_key_gives_the_same_answer_again(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    attempt = _attempt(session_id, "hi", key="k")
    answers = [await _send(cell, principal, session_id, "hi", attempt) for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert await _texts(cell, principal, session_id) == ["hi"]


async def test_a_key_with_another_body_is_refused_and_changes_nothing(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await _send(cell, principal, session_id, "hi", _attempt(session_id, "hi", key="k"))
    with pytest.raises(InvalidRequest):
        await _send(cell, principal, session_id, "ho", _attempt(session_id, "ho", key="k"))
    assert await _texts(cell, principal, session_id) == ["hi"]


async def test_a_key_belongs_to_its_owner_and_its_path(cell: Cell, principal: Principal) -> None:
    other = somebody()
    colleague = somebody(principal.organisation)
    for who in (principal, other, colleague):
        session_id = await cell.session(who)
        await _send(cell, who, session_id, "hi", _attempt("same", "hi", key="k"))
        assert await _texts(cell, who, session_id) == ["hi"]
        second = await cell.session(who)
        await _send(cell, who, second, "hi", _attempt(second, "hi", key="k"))
        assert await _texts(cell, who, second) == ["hi"]


@pytest.mark.parametrize("key", ["k", None])
async def test_a_retry_waits_for_its_first_try(cell: Cell, principal: Principal, key: str | None) -> None:
    session_id = await cell.session(principal)
    attempts = [_attempt(session_id, "hi", key=key, retry=number) for number in range(3)]
    async with cell.units.unit(principal, attempts[0]) as first:
        retries = []
        for attempt in attempts[1:]:
            retries.append(asyncio.create_task(_send(cell, principal, session_id, "hi", attempt)))
            done, _ = await asyncio.wait(retries, timeout=0.3)
            assert not done
        await first.send(principal, session_id, [message("hi")])
        await first.remember(Answer(200, {"data": "of the first"}))
    assert await asyncio.gather(*retries) == [Answer(200, {"data": "of the first"})] * 2
    assert await _texts(cell, principal, session_id) == ["hi"]


async def test_the_sdks_retries_are_one_message(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    answers = [
        await _send(cell, principal, session_id, "hi", _attempt(session_id, "hi", retry=number)) for number in (0, 1, 2)
    ]
    assert answers[0] == answers[1] == answers[2]
    assert await _texts(cell, principal, session_id) == ["hi"]


async def test_a_retry_whose_first_try_never_arrived_is_a_message(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    first = await _send(cell, principal, session_id, "hi", _attempt(session_id, "hi", retry=1))
    assert await _send(cell, principal, session_id, "hi", _attempt(session_id, "hi", retry=2)) == first
    assert await _texts(cell, principal, session_id) == ["hi"]


async def test_the_same_text_on_purpose_is_two_messages(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    for retry in (0, 0, 1, 1):
        await _send(cell, principal, session_id, "hi", _attempt(session_id, "hi", retry=retry))
    assert await _texts(cell, principal, session_id) == ["hi", "hi"]


async def test_retries_that_overtake_each_other_are_one_message(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    for retry in (0, 2, 1):
        await _send(cell, principal, session_id, "hi", _attempt(session_id, "hi", retry=retry))
    assert await _texts(cell, principal, session_id) == ["hi"]


async def test_a_retry_never_gets_an_answer_that_was_delivered(cell: Cell, principal: Principal) -> None:
    """Two callers send the same message. One receives its response; the request of the other was cut off early."""
    session_id = await cell.session(principal)
    async with cell.units.unit(principal, _attempt(session_id, "hi", retry=0)) as unit:
        await unit.send(principal, session_id, [message("hi")])
        await unit.remember(Answer(200, {"data": "of the first"}))
    assert unit.answer_id is not None
    await cell.units.delivered(unit.answer_id)
    answer = await _send(cell, principal, session_id, "hi", _attempt(session_id, "hi", retry=1))
    assert answer != Answer(200, {"data": "of the first"})
    assert await _texts(cell, principal, session_id) == ["hi", "hi"]


async def test_a_try_that_failed_leaves_no_answer(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    attempt = _attempt(session_id, "hi", key="k")
    cell.database.break_next = True
    with pytest.raises(Unavailable):
        await _send(cell, principal, session_id, "hi", attempt)
    assert await _texts(cell, principal, session_id) == []
    await _send(cell, principal, session_id, "hi", attempt)
    assert await _texts(cell, principal, session_id) == ["hi"]


async def test_answers_do_not_outlive_their_session(cell: Cell, principal: Principal) -> None:
    kept, gone = [await cell.session(principal) for _ in range(2)]
    for session_id in (kept, gone):
        await _send(cell, principal, session_id, "secret", _attempt(session_id, "secret", key="k"))
    async with cell.units.unit(principal, None) as unit:
        await unit.delete_session(principal, gone)
    assert await cell.rows("answers", gone) == []
    assert len(await cell.rows("answers", kept)) == 1
