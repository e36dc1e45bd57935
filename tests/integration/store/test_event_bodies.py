"""Event bodies that do not fit a row: large ones go to the object store, and refused characters are replaced."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from footplate.domain.json import Json, clean_object
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event
from footplate.domain.text.event_truncation import INLINE_LIMIT

from .cell import Cell, text_of

_texts = st.text(st.characters(codec=None), max_size=20)  # including lone surrogates and NUL
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.dictionaries(_texts, _values, max_size=4))
async def test_any_body_is_stored_and_read_back_clean(cell: Cell, principal: Principal, body: dict[str, Any]) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    event = Event(events.AGENT_TOOL_RESULT, body)

    await cell.turns.append(claim, [event], entries=[Entry("k", body)])

    expected = clean_object(body)
    assert (await cell.positions(session_id, principal))[-1].event.body == expected
    assert await cell.turns.entries(claim, 0) == [Entry("k", expected)]


@pytest.mark.parametrize("text", ["a\x00b", "half \ud83d of a pair", "\udc00", "plain"])
async def test_a_message_with_characters_that_columns_refuse_is_accepted(
    cell: Cell, principal: Principal, text: str
) -> None:
    session_id = await cell.session(principal, text)
    expected = "plain" if text == "plain" else text_of((await cell.positions(session_id, principal))[0])
    assert (expected == "plain") is (text == "plain")
    assert "\ufffd" in expected or text == "plain"
    assert (await cell.claim(session_id, principal)).content == [events.text_block(expected)]


@pytest.mark.parametrize("size", [INLINE_LIMIT, 10_000_000])
async def test_a_large_output_is_whole_for_the_harness_and_short_in_the_log(
    cell: Cell, principal: Principal, size: int
) -> None:
    session_id = await cell.session(principal, "go")
    claim = await cell.claim(session_id, principal)
    content: list[Json] = [events.text_block("x" * size)]
    result = events.tool_result("sevt_1", content, is_error=False, call_id="toolu_1")

    await cell.turns.append(claim, [result], entries=[Entry("k", {"output": "x" * size})])

    shown = (await cell.positions(session_id, principal))[-1]
    assert (shown.event.body["tool_use_id"], shown.event.body["is_error"]) == ("sevt_1", False)
    truncated = shown.event.body["truncated"]
    assert isinstance(truncated, dict)
    assert truncated["bytes"] == pytest.approx(size, rel=0.01)
    assert "characters omitted]" in text_of(shown)
    for row in [*await cell.rows("events", session_id), *await cell.rows("entries", session_id)]:
        assert len(str(row["body"])) <= INLINE_LIMIT
    whole = (await cell.turns.turn_events(claim))[-1]
    assert whole.body == result.body
    assert await cell.turns.entries(claim, 0) == [Entry("k", {"output": "x" * size})]


async def test_a_large_message_reaches_the_harness_whole_on_every_attempt(cell: Cell, principal: Principal) -> None:
    text = "x" * 200_000
    session_id = await cell.session(principal, text)
    assert len(text_of((await cell.positions(session_id, principal))[0])) < INLINE_LIMIT
    for _ in range(2):
        assert (await cell.claim(session_id, principal)).content == [events.text_block(text)]


async def test_deleting_a_session_deletes_its_objects(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal)
    claimed = await cell.session(principal, "x" * 200_000)
    folder = cell.folder / principal.organisation
    assert [path.name for path in folder.iterdir()] == [claimed]
    async with cell.units.unit(principal, None) as unit:
        await unit.delete_session(principal, session_id)
        await unit.delete_session(principal, claimed)
    assert not [path for path in folder.rglob("*") if path.is_file()]
    assert not any((await cell.all_rows(claimed)).values())


async def test_a_second_position_shows_the_body_of_the_first(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "go")
    await cell.claim(session_id, principal)
    first, second, _ = await cell.positions(session_id, principal)
    assert (first.event, first.processed_at) == (second.event, None)
    assert second.processed_at is not None
