"""Untrusted patterns match in linear time or are refused."""

import time

import pytest

from footplate.domain.text.linear_regex import LinearRegex, UnsupportedPattern


@pytest.mark.parametrize("pattern", ["(.?.?.?.?.?){24}!", "(a+)+$", "(a|aa)*b", "(.*a){20}", "a*" * 30 + "!"])
def test_patterns_that_backtrack_exponentially_elsewhere_are_fast(pattern: str) -> None:
    regex = LinearRegex(pattern)
    began = time.thread_time()
    assert not regex.search("a" * 200 + "\0") or pattern == "(.*a){20}"
    assert time.thread_time() - began < 0.5


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(a)\1", "escape"),
        ("(?=a)", "perl operator"),
        ("a{100000}", "repetition"),
        ("(", "missing )"),
        ("((x{30}){30}){30}", "repetition"),
        ("(x{500}){2}" * 40, "too large"),
        ("\ud800", "surrogate"),
    ],
)
def test_unsupported_patterns_are_refused_with_a_reason(pattern: str, reason: str) -> None:
    with pytest.raises(UnsupportedPattern, match=reason.replace(")", r"\)")):
        LinearRegex(pattern)


def test_a_dot_is_any_character_and_names_may_have_any_bytes() -> None:
    assert LinearRegex("a.b").fullmatch("a\nb")
    assert LinearRegex("a.*b").fullmatch("a\udc80b")
    assert not LinearRegex("a").fullmatch("ab")
    assert LinearRegex("^[^/]*$").search("é")
