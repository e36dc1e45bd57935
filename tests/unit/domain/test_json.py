"""Cleaning makes any value valid for a JSONB column and does not change valid values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.domain.json import Json, JsonObject, clean, clean_object, clean_text

from .json_strategies import json_objects, json_values, texts


@pytest.mark.parametrize(
    ("given", "cleaned"),
    [
        ("plain", "plain"),
        ("žluťoučký 🐎", "žluťoučký 🐎"),
        ("a\x00b", "a\ufffdb"),
        ("\x00\x00", "\ufffd\ufffd"),
        ("", ""),
    ],
)
def test_nul_characters_are_replaced(given: str, cleaned: str) -> None:
    assert clean_text(given) == cleaned


def test_a_lone_surrogate_is_replaced_visibly() -> None:
    cleaned = clean_text("before \ud83d after")
    assert cleaned.startswith("before \ufffd")
    assert cleaned.endswith(" after")


@given(texts)
def test_every_text_becomes_storable_and_stays_so(text: str) -> None:
    cleaned = clean_text(text)
    assert "\x00" not in cleaned
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert clean_text(cleaned) == cleaned


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00")))
def test_valid_text_is_unchanged(text: str) -> None:
    assert clean_text(text) == text


@given(json_values)
def test_every_string_inside_is_cleaned(value: Json) -> None:
    cleaned = clean(value)
    assert clean(cleaned) == cleaned
    for text in _strings(cleaned):
        assert text == clean_text(text)


@given(json_objects)
def test_an_object_stays_an_object_and_is_not_changed_in_place(value: JsonObject) -> None:
    before = repr(value)
    cleaned = clean_object(value)
    assert set(cleaned) == {clean_text(key) for key in value}
    assert repr(value) == before


def _strings(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    if isinstance(value, dict):
        return [*value, *(text for item in value.values() for text in _strings(item))]
    return []
