"""The type check finds conditions that are always true, and ignores without a rule."""

from pathlib import Path

import pytest
from bench.type_check import find_ignores_without_rule, is_always_true


@pytest.mark.parametrize(
    "shown_type",
    [
        "Coroutine[Unknown, Unknown, bool]",
        "Awaitable[str | None]",
        "Page",
        "Page | Coroutine[Unknown, Unknown, list[int]]",
        "type[int]",
        "Self@footplate.domain.pagination.Page",
    ],
)
def test_a_type_without_a_false_value_is_always_true(shown_type: str) -> None:
    assert is_always_true(shown_type)


@pytest.mark.parametrize(
    "shown_type",
    [
        "str",
        "Page | None",
        "dict[str, Page | None]",
        "Literal['a] | [b', 'c'] | Page",
        "tuple[Order, int] | Page",
        "Any",
    ],
)
def test_a_type_with_a_false_value_may_be_a_condition(shown_type: str) -> None:
    assert not is_always_true(shown_type)


@pytest.mark.parametrize(
    ("comment", "is_refused"),
    [
        ("pyrefly: ignore[bad-return]", False),
        ("pyrefly: ignore", True),
        ("pyrefly: ignore-errors", True),
        ("type: ignore[return-value]", True),
        ("type: ignore", True),
    ],
)
def test_an_ignore_names_a_rule_of_pyrefly(tmp_path: Path, comment: str, is_refused: bool) -> None:  # noqa: FBT001
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "module.py").write_text(f"x = 1  # {comment}\n")
    assert bool(find_ignores_without_rule(tmp_path)) is is_refused
