"""Streamed text is wrapped at the terminal's width without loss, wherever it is cut into pieces."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from footplate.cli.render.line_wrap import LineWrapper

TEXT = st.text(alphabet="ab é\n`漢", max_size=200)


def _shown(pieces: list[str], width: int) -> str:
    wrapped = LineWrapper(width)
    return "".join(wrapped.wrap(piece) for piece in pieces) + wrapped.flush()


@given(TEXT, st.integers(10, 40), st.lists(st.integers(0, 200), max_size=5))
def test_the_position_of_cuts_does_not_matter(text: str, width: int, cuts: list[int]) -> None:
    offsets = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(offsets)]
    assert _shown(pieces, width) == _shown([text], width)


@given(TEXT, st.integers(10, 40))
def test_no_text_is_lost(text: str, width: int) -> None:
    assert _shown([text], width).split() == text.split()


@given(st.lists(st.text(alphabet="abc", min_size=1, max_size=10), max_size=40), st.integers(10, 40))
def test_no_line_is_too_wide(texts: list[str], width: int) -> None:
    assert all(len(line) <= width for line in _shown([" ".join(texts)], width).splitlines())


def test_lines_break_at_spaces() -> None:
    assert _shown(["one two thr", "ee four"], 10) == "one two\nthree four\n"


def test_code_is_not_wrapped() -> None:
    code = "```\nan_assignment = of_something(that_is, far_too_wide)\n```\n"
    assert _shown([code], 20) == code


def test_indentation_is_preserved() -> None:
    assert _shown(["- a\n  - b\n"], 20) == "- a\n  - b\n"
