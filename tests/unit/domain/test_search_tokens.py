"""Indexed text and searches are split into the same words."""

from typing import Any

import pytest

from footplate.domain.json import JsonObject
from footplate.domain.text.search_tokens import SearchTerm, event_tokens, parse_search, split_into_tokens


def test_a_path_and_an_identifier_have_tokens() -> None:
    assert split_into_tokens("src/data_base.py: Größe=12") == ["src", "data", "base", "py", "größe", "12"]
    assert split_into_tokens("x" * 65) == []


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("median Parser", [SearchTerm(["median"]), SearchTerm(["parser"])]),
        ('"make tests" pass', [SearchTerm(["make", "tests"], is_exact=True), SearchTerm(["pass"])]),
        ('"not closed', [SearchTerm(["not", "closed"], is_exact=True)]),
        ("src/a.py", [SearchTerm(["src", "a", "py"])]),
        ("'; drop table x --", [SearchTerm(["drop"]), SearchTerm(["table"]), SearchTerm(["x"])]),
        ("  & | ! :* ", []),
    ],
)
def test_a_search_has_terms(text: str, terms: list[SearchTerm]) -> None:
    assert parse_search(text) == terms


def test_only_messages_and_written_paths_are_indexed() -> None:
    message: dict[str, Any] = {"content": [{"type": "text", "text": "Fix it"}, {"type": "image"}, "x"]}
    assert [*event_tokens("user.message", message)] == ["fix", "it"]
    assert [*event_tokens("agent.tool_use", {"name": "write", "input": {"path": "a/b.py", "content": "secret"}})] == [
        *("a", "b", "py")
    ]
    assert [*event_tokens("agent.tool_use", {"name": "read", "input": {"path": "a"}})] == []
    assert [*event_tokens("agent.tool_use", {"name": "Edit", "input": "x"})] == []


def test_the_limit_of_a_message_counts_all_its_blocks() -> None:
    block: JsonObject = {"type": "text", "text": "word " * 3000 + "last"}
    tokens = [*event_tokens("user.message", {"content": [block, block, block]})]
    assert (len(tokens), tokens.count("last")) == (4001, 1)
