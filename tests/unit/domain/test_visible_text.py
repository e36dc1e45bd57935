"""Every character of an untrusted text is visible, and the text is recoverable from the output."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.domain.text.visible_text import (
    Layout,
    _escape,
    count_columns,
    mark_missing,
    neutralise,
    recover_text,
    show_block,
    show_line,
    show_prose,
    wrap_line,
)

HOSTILE = (
    "\n\r\t \x00\x07\x1b\x7f\x85\x9b\u00a0\u00ad\u061c\u200b\u200e\u200f\u202e\u2028\u2066\u3000\u3164\ue000\ufe0f"
)
HOSTILE += "\ufeff\U000e0041\ud800\u0301\u0338\u2044\u0430aй<U+*0>\\/é漢א7"
TEXTS = st.text(st.sampled_from(HOSTILE)) | st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize("show", [show_line, show_block, show_prose])
@given(text=TEXTS)
def test_the_text_is_recoverable_from_the_output(show: object, text: str) -> None:
    assert callable(show)
    assert recover_text(show(text)) == (text, 0)


@given(text=TEXTS, room=st.integers(20, 60))
def test_a_shortened_line_is_recoverable_and_shows_how_much_is_missing(text: str, room: int) -> None:
    shown = show_line(text, room)
    assert count_columns(shown) <= room
    found, missing = recover_text(shown)
    assert text.startswith(found)
    assert len(found) + missing == len(text)


@given(text=TEXTS, room=st.integers(2, 60))
def test_folding_keeps_everything(text: str, room: int) -> None:
    shown = show_line(text)
    lines = wrap_line(shown, room)
    assert "".join(lines) == shown
    assert all(count_columns(line) <= room for line in lines)


@given(text=TEXTS)
def test_no_control_or_hidden_character_remains(text: str) -> None:
    hidden = {char for char in HOSTILE if not char.isprintable()} - {"\n", "\t"}
    for shown in (show_line(text), show_block(text), show_prose(text), neutralise(text)):
        assert not hidden & {*shown}
        assert neutralise(shown) == shown
    assert not {"\n", "\t"} & {*show_line(text)}


@pytest.mark.parametrize("layout", list(Layout))
@given(text=TEXTS | st.text(st.sampled_from("a< \n\r\tU+1é漢 \x1b"), max_size=60))
def test_the_fast_path_and_the_slow_path_agree(layout: Layout, text: str) -> None:
    short = {Layout.LINE: show_line, Layout.BLOCK: show_block, Layout.PROSE: show_prose}[layout]
    assert short(text) == "".join(shown for shown, _ in _escape(text, layout))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("echo harmless" + "\n" * 47 + "touch EVIL4", "echo harmless<U+000A*47>touch EVIL4"),
        ("a\u200bb\u200e\u200f\u061c", "a<U+200B>b<U+200E><U+200F><U+061C>"),
        ("\x1b[31m", "<U+001B>[31m"),
        ("printf 'a\\nb' <in >out", "printf 'a\\nb' <in >out"),
        ("<U+202E>", "<U+003C>U+202E>"),
        ("<+5 more>", "<U+003C>+5 more>"),
        ("a" + " " * 500 + "b ", "a<U+0020*500>b<U+0020>"),
        ("z" + "\u0301" * 9, "z\u0301\u0301<U+0301*7>"),
        ("p\u0430ypal", "p<U+0430>ypal"),
        ("\u0441\u0430\u0442", "<U+0441><U+0430><U+0442>"),
        ("привет, Welt é 漢字 👍", "привет, Welt é 漢字 👍"),
        ("rm \u2010rf \u2215etc", "rm <U+2010>rf <U+2215>etc"),
        ("\uff52m \U0001d428k", "<U+FF52>m <U+1D428>k"),
        ("echo א; rm -rf /", "echo <U+05D0>; rm -rf /"),
        ("שלום עולם", "שלום עולם"),
    ],
)
def test_characters_of_a_line_are_escaped(text: str, shown: str) -> None:
    assert show_line(text) == shown


def test_a_block_keeps_its_lines_and_collapses_empty_ones() -> None:
    assert show_block("a\n\tb \nc\r\n") == "a\n<U+0009>b<U+0020>\nc<U+000D>\n"
    assert show_block("a" + "\n" * 47 + "b") == "a<U+000A*46>\nb"


def test_the_mark_counts_missing_characters() -> None:
    assert show_line("x" * 100, 30) == "x" * 19 + mark_missing(81)


def test_long_texts_take_linear_time() -> None:
    for unit in ("<", " \n", "é", "א a\n", "\u0301", "<U+", "\u200b\u200c"):
        text = unit * (200_000 // len(unit))
        began = time.process_time()
        wrap_line(show_line(text), 60)
        show_block(text)
        assert time.process_time() - began < 5
