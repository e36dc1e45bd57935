"""A retried request takes effect once: recognised by its idempotency key, or by the retry count that the SDK sends."""

import asyncio
import hashlib

import pytest

from footplate.domain.errors import InvalidRequest, Unavailable
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import RequestAttempt, StoredResponse

from .cell import Cell, message, new_principal, text_of


def _attempt(session_id: str, text: str, *, key: str | None = None, retry: int = 0) -> RequestAttempt:
    return RequestAttempt(
        method="POST",
        path=f"/v1/sessions/{session_id}/events",
        body_hash=hashlib.sha256(text.encode()).digest(),
        idempotency_key=key,
        retry_count=retry,
    )


async def _send(
    cell: Cell, principal: Principal, session_id: str, text: str, attempt: RequestAttempt
) -> StoredResponse:
    """Sends a message as the API does."""
    async with cell.units.unit(principal, attempt) as unit:
        if unit.stored_response is not None:
            return unit.stored_response
        accepted = await unit.send(principal, session_id, [message(text)])
        response = StoredResponse(200, {"data": [accepted.positions[0].event.id]})
        await unit.store_response(response)
        return response


async def _texts(cell: Cell, principal: Principal, session_id: str) -> list[str]:
    return [text_of(position) for position in await cell.positions(session_id, principal)]


async def test_a_repeated_key_returns_the_same_response(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    attempt = _attempt(session_id, "hi", key="k")
    responses = [await _send(cell, principal, session_id, "hi", attempt) for _ in range(3)]
    assert responses[0] == responses[1] == responses[2]
    assert await _texts(cell, principal, session_id) == ["hi"]


async def test_a_key_with_another_body_is_refused_and_changes_nothing(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    await _send(cell, principal, session_id, "hi", _attempt(session_id, "hi", key="k"))
    with pytest.raises(InvalidRequest):
        await _send(cell, principal, session_id, "ho", _attempt(session_id, "ho", key="k"))
    assert await _texts(cell, principal, session_id) == ["hi"]


async def test_a_key_belongs_to_its_owner_and_its_path(cell: Cell, principal: Principal) -> None:
    other = new_principal()
    colleague = new_principal(principal.organisation)
    for caller in (principal, other, colleague):
        session_id = await cell.session(caller)
        await _send(cell, caller, session_id, "hi", _attempt("same", "hi", key="k"))
        assert await _texts(cell, caller, session_id) == ["hi"]
        second = await cell.session(caller)
        await _send(cell, caller, second, "hi", _attempt(second, "hi", key="k"))
        assert await _texts(cell, caller, second) == ["hi"]


@pytest.mark.parametrize("key", ["k", None])
async def test_a_retry_waits_for_the_first_attempt(cell: Cell, principal: Principal, key: str | None) -> None:
    session_id = await cell.session(principal)
    attempts = [_attempt(session_id, "hi", key=key, retry=number) for number in range(3)]
    async with cell.units.unit(principal, attempts[0]) as first:
        retries = []
        for attempt in attempts[1:]:
            retries.append(asyncio.create_task(_send(cell, principal, session_id, "hi", attempt)))
            done, _ = await asyncio.wait(retries, timeout=0.3)
            assert not done
        await first.send(principal, session_id, [message("hi")])
        await first.store_response(StoredResponse(200, {"data": "of the first"}))
    assert await asyncio.gather(*retries) == [StoredResponse(200, {"data": "of the first"})] * 2
    assert await _texts(cell, principal, session_id) == ["hi"]


async def test_the_sdks_retries_are_one_message(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    responses = [
        await _send(cell, principal, session_id, "hi", _attempt(session_id, "hi", retry=number)) for number in (0, 1, 2)
    ]
    assert responses[0] == responses[1] == responses[2]
    assert await _texts(cell, principal, session_id) == ["hi"]


async def test_a_retry_whose_first_attempt_never_arrived_is_a_message(cell: Cell, principal: Principal) -> None:
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


async def test_a_retry_never_receives_a_response_that_was_delivered(cell: Cell, principal: Principal) -> None:
    """Two callers send the same message. One receives its response; the request of the other was cut off early."""
    session_id = await cell.session(principal)
    async with cell.units.unit(principal, _attempt(session_id, "hi", retry=0)) as unit:
        await unit.send(principal, session_id, [message("hi")])
        await unit.store_response(StoredResponse(200, {"data": "of the first"}))
    assert unit.response_id is not None
    await cell.units.discard_response(unit.response_id)
    response = await _send(cell, principal, session_id, "hi", _attempt(session_id, "hi", retry=1))
    assert response != StoredResponse(200, {"data": "of the first"})
    assert await _texts(cell, principal, session_id) == ["hi", "hi"]


async def test_a_failed_attempt_stores_no_response(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    attempt = _attempt(session_id, "hi", key="k")
    cell.database.lose_next_commit = True
    with pytest.raises(Unavailable):
        await _send(cell, principal, session_id, "hi", attempt)
    assert await _texts(cell, principal, session_id) == []
    await _send(cell, principal, session_id, "hi", attempt)
    assert await _texts(cell, principal, session_id) == ["hi"]


async def test_responses_are_deleted_with_their_session(cell: Cell, principal: Principal) -> None:
    existing, deleted = [await cell.session(principal) for _ in range(2)]
    for session_id in (existing, deleted):
        await _send(cell, principal, session_id, "secret", _attempt(session_id, "secret", key="k"))
    async with cell.units.unit(principal, None) as unit:
        await unit.delete_session(principal, deleted)
    assert await cell.rows("answers", deleted) == []
    assert len(await cell.rows("answers", existing)) == 1
