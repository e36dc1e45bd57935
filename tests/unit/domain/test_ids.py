"""Ids sort by creation time, have a prefix for their type, and are unique."""

import re
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from footplate.domain import ids

_moments = st.integers(0, 2**48 - 1)


def _at(milliseconds: int) -> str:
    with patch("time.time_ns", return_value=milliseconds * 1_000_000):
        return ids.new_id(ids.EVENT)


@given(_moments, _moments)
def test_an_id_created_later_sorts_later(one: int, other: int) -> None:
    if one != other:
        assert (_at(one) < _at(other)) == (one < other)


@given(_moments)
def test_every_id_has_one_form(moment: int) -> None:
    assert re.fullmatch(r"sevt_[0-7][0-9a-hjkmnp-tv-z]{25}", _at(moment))


def test_ids_of_the_same_millisecond_differ() -> None:
    assert len({_at(1) for _ in range(10_000)}) == 10_000
