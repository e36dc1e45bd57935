"""The description of a call shows its complete input, whatever it contains."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.domain.text.approval_display import ShownField, call_label, describe_call
from footplate.domain.text.visible_text import recover_text

VALUES = st.text() | st.integers() | st.lists(st.text()) | st.none() | st.dictionaries(st.text(), st.booleans())


def _recover(field: ShownField) -> object:
    text = recover_text(field.text)[0]
    return text if field.kind == "text" else json.loads(text)


@pytest.mark.parametrize(
    ("name", "call_input", "text"),
    [
        ("bash", {"command": "echo hi"}, "echo hi"),
        ("bash", {"command": "\ncd x\nmake"}, "\ncd x\nmake"),
        ("edit", {"file_path": "a.py", "old_string": "x"}, "a.py"),
        ("bash", {"restart": True}, '{"restart": true}'),
        ("mine", {"a": "é"}, '{"a": "é"}'),
        ("mine", {}, ""),
        ("mine", None, ""),
    ],
)
def test_the_label_of_a_call_is_its_main_argument(name: str, call_input: dict[str, object] | None, text: str) -> None:
    assert call_label(name, call_input) == text


@given(st.dictionaries(st.text(), VALUES))
def test_the_input_is_recoverable_from_the_description(made_with: dict[str, object]) -> None:
    shown = describe_call({"name": "bash", "input": made_with})
    assert {recover_text(field.name)[0]: _recover(field) for field in shown.input} == made_with


def test_a_write_shows_its_content_and_a_command_all_its_lines() -> None:
    write = describe_call({"name": "write", "input": {"file_path": "a", "content": "one\ntwo\u202e"}})
    assert write.input == (ShownField("file_path", "text", "a"), ShownField("content", "text", "one\ntwo<U+202E>"))
    command = describe_call({"name": "bash", "input": {"command": "echo harmless" + "\n" * 47 + "touch EVIL4"}})
    assert command.input[0].text == "echo harmless<U+000A*46>\ntouch EVIL4"


def test_names_and_reasons_are_escaped_too() -> None:
    body = {"name": "x\x1b", "mcp_server_name": "s", "agent_name": "a\nb", "permission": {"reason": "\u200b"}}
    shown = describe_call(body)
    assert (shown.name, shown.agent_name, shown.reason) == ("s.x<U+001B>", "a<U+000A>b", "<U+200B>")
    assert shown.input == ()


def test_a_list_shows_the_beginning_and_is_marked_incomplete() -> None:
    body = {"name": "x", "input": {"a": "b" * 10, "c": [1, 2, 3], "d": "e"}}
    shown = describe_call(body, max_characters=15)
    assert [(field.name, field.text) for field in shown.input] == [("a", "b" * 10), ("c", "[1,<+6 more>")]
    assert not shown.whole
    assert not describe_call(body, max_characters=10).whole
    assert describe_call(body, max_characters=100).whole
    assert not describe_call({**body, "truncated": {"bytes": 1}}).whole


def test_another_input_is_shown_instead() -> None:
    assert describe_call({"name": "bash", "input": {"command": "a"}}, {"command": "b"}).input[0].text == "b"
