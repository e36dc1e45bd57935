"""A call on the screen shows its complete input, and no input can imitate a line of the screen."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.cli.render.tool_call_format import lay_out_call, lay_out_text, read_call, read_text
from footplate.domain.text.approval_display import describe_call
from footplate.domain.text.visible_text import count_columns, show_block

TEXTS = st.text(st.sampled_from("ab |\\:()\n\r\t\x1b\u200b\u202e\u0301<U+漢é")) | st.text()
INPUTS = st.dictionaries(TEXTS, TEXTS | st.integers() | st.lists(TEXTS), max_size=3)


@pytest.mark.parametrize("width", [60, 140, 1_000_000])
@given(made_with=INPUTS)
def test_the_input_is_recoverable_from_the_screen(width: int, made_with: dict[str, object]) -> None:
    lines = lay_out_call(describe_call({"name": "x", "input": made_with}), width)
    assert all(count_columns(line) <= width for line in lines)
    assert read_call(lines) == {name: (value, 0) for name, value in made_with.items()}


@given(text=TEXTS, max_lines=st.integers(1, 4))
def test_a_list_shows_how_much_of_a_field_is_missing(text: str, max_lines: int) -> None:
    lines = lay_out_call(describe_call({"name": "x", "input": {"command": text}}), 24, max_lines)
    found, missing = read_call(lines)["command"]
    assert text.startswith(found)
    assert len(found) + missing == len(text)


@given(text=TEXTS)
def test_the_text_is_recoverable_from_a_column(text: str) -> None:
    assert read_text(lay_out_text(show_block(text), 24)) == (text, 0)


def test_the_layout_of_a_call() -> None:
    body = {"name": "bash", "input": {"command": "echo harmless\ntouch EVIL " + "x" * 30, "timeout": 5}}
    assert lay_out_call(describe_call(body), 40) == [
        "  command: echo harmless",
        "  | touch EVIL ",
        "  \\ " + "x" * 30,
        "  timeout (json): 5",
    ]
    assert json.loads(json.dumps(read_call(["  a: b"]))) == {"a": ["b", 0]}
