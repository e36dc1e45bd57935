"""A body that is too large is shortened to fit a row, marked as truncated, and keeps its shape."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.domain.json import Json, JsonObject
from footplate.domain.sessions import events
from footplate.domain.text.event_truncation import INLINE_LIMIT, truncate_body
from footplate.testing import sdk_validation

from .json_strategies import json_objects

_MOMENT = "2026-11-01T10:00:00Z"


def _size(body: JsonObject) -> int:
    return len(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10_000_000,
        "🐎" * 1_000_000,
        ["line " * 1000] * 1000,
        {f"key{number}": "v" * 100_000 for number in range(100)},
        [[[list(range(64))] * 64] * 64],
        {"k" * 10_000_000: 1},
        [{"deep": [{"deeper": "x" * 10_000}] * 60}] * 60,
        list(range(1_000_000)),
    ],
    ids=["long", "wide", "many", "keys", "small parts", "name", "nested", "numbers"],
)
def test_a_shortened_body_fits_whichever_part_is_large(value: Json) -> None:
    body: JsonObject = {"content": value, "is_error": False}
    cut = truncate_body(body, size=_size(body))
    assert _size(cut) <= INLINE_LIMIT
    assert cut["truncated"] == {"bytes": _size(body)}
    assert cut["is_error"] is False
    assert type(cut["content"]) is type(value)


def test_a_cut_text_keeps_its_beginning_and_shows_how_much_is_missing() -> None:
    text = "".join(str(number) for number in range(100_000))
    cut = truncate_body({"text": text}, size=len(text))["text"]
    assert isinstance(cut, str)
    head, _, note = cut.rpartition("\n")
    assert text.startswith(head)
    assert note == f"[{len(text) - len(head)} characters omitted]"


def test_a_shortened_event_is_still_valid_for_clients() -> None:
    blocks: list[Json] = [events.text_block("x" * 1_000_000) for _ in range(100)]
    result = events.tool_result("sevt_1", blocks, is_error=False, call_id="call_1").body
    cut = truncate_body(result, size=100_000_000)
    sdk_validation.assert_valid_event(
        {"id": "sevt_2", "type": events.AGENT_TOOL_RESULT, "processed_at": _MOMENT, **cut}
    )


@given(json_objects, st.integers(0, 2**40))
def test_a_small_body_is_only_marked(body: JsonObject, size: int) -> None:
    assert truncate_body(body, size=size) == {**body, "truncated": {"bytes": size}}
