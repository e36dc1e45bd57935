"""Escapes untrusted text for display, so that a person sees every character and the original can be recovered.

A character that a terminal interprets, hides or draws like another one is shown by its code point, as in `less`:
`<U+202E>`. A run of the same character is shown once with its length: `<U+000A*47>`. `recover_text` is the inverse of
all escaping functions. All functions take linear time.
"""

import re
import unicodedata
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from itertools import groupby
from typing import Final

_PIECE: Final = re.compile(r"(?P<word>[^\x00-\x20\x7f]+)|(?P<char>[\x00-\x20\x7f])(?P=char)*")
_ESCAPE_LEAD: Final = re.compile(r"<(?=U\+|\+[0-9])")
_ESCAPED: Final = re.compile(r"<U\+([0-9A-F]{4,6})(?:\*([0-9]+))?>")
_MISSING_MARK: Final = re.compile(r"<\+([0-9]+) more>\Z")
_UNSAFE_ASCII: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_VISIBLE_ASCII: Final = re.compile(r"[!-~]")
_MAX_SPACES: Final = 24
_MAX_EMPTY_LINES: Final = 3
_MAX_COMBINING: Final = 2
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp", "Me"})
_HIDDEN: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\U00016fe4\U0001d159"
    "\u0335\u0336\u0337\u0338\u20d2\u20d3\u20d8\u20d9\u20da\u20e5\u20e6\u20ea\u20eb"
)
"""Characters that are blank or ignored despite their category, and combining marks that strike out others."""
_VARIATION_SELECTORS: Final = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_ASCII_TWINS: Final = frozenset(
    "\u01c0\u0269\u02d0\u037e\u0387\u0589\u05c0\u05c3\u05f3\u05f4\u2010\u2011\u2012\u2024\u2027\u2032\u2033\u2039\u203a"
    "\u2041\u2043\u2044\u204e\u2052\u2212\u2215\u2216\u2217\u2219\u2223\u2236\u223c\u22c5\u2500\u2502\u2571\u2572\u2758"
    "\u2768\u2769\u276e\u276f\u2774\u2775\u29f5\u29f8\u29f9\u3014\u3015\ua4f8\ua78c\ua789\ufd3e\ufd3f\u212a\u017f"
    "\uff02\uff04\uff06\uff07\uff0d\uff0e\uff0f\uff1b\uff1c\uff1e\uff3c\uff40\uff5c\uff5e"
)
"""Characters that look like an ASCII character: `/`, `-`, `;`, `:`, `|`, quotes, brackets."""
_TWIN_SCRIPTS: Final = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "GEORGIAN", "DESERET")
_TWIN_NAMES: Final = ("MATHEMATICAL ", "FULLWIDTH LATIN", "FULLWIDTH DIGIT", "SEGMENTED DIGIT")
_LATIN_TWINS: Final = frozenset("аеорсухіјѕһԁԛԝвкмнтАВЕКМНОРСТУХІЈЅԌԚԜӀοαικνρτυχγΟΑΒΕΖΗΙΚΜΝΡΤΥΧ")


class Layout(Enum):
    """Where a text is shown. This decides how white space is escaped."""

    LINE = "line"
    """Within a line: every line break and tab is escaped, and so are leading and trailing spaces."""
    BLOCK = "block"
    """A separate block that a person decides on: line breaks stay; tabs, trailing spaces and long runs of empty lines
    are escaped."""
    PROSE = "prose"
    """A separate block for reading: line breaks, tabs and spaces stay unchanged."""


_SIMPLE: Final = {
    Layout.LINE: re.compile(r"<(?=U\+|\+[0-9])|([\x00-\x1f\x7f])\1*| {25,}|\A +| +\Z"),
    Layout.BLOCK: re.compile(r"<(?=U\+|\+[0-9])|\n{4,}|([\x00-\x09\x0b-\x1f\x7f])\1*| {25,}| +(?=\n|\Z)"),
    Layout.PROSE: re.compile(r"<(?=U\+|\+[0-9])|([\x00-\x08\x0b-\x1f\x7f])\1*"),
}
"""What is escaped in a text without deceptive characters. Each run of spaces is scanned only once."""


def show_line(text: str, max_columns: int | None = None) -> str:
    """Escape a text for one line of at most `max_columns` columns. A marker says how many characters are missing: `<+12
    more>`.
    """
    if max_columns is None:
        return _escape_whole(text, Layout.LINE)
    pieces: list[tuple[str, int]] = []
    width = 0
    for piece in _escape(text, Layout.LINE):
        pieces.append(piece)
        width += count_columns(piece[0])
        if width > max_columns:
            return _shorten(pieces, len(text), max_columns)
    return "".join(shown for shown, _ in pieces)


def _shorten(pieces: list[tuple[str, int]], length: int, max_columns: int) -> str:
    max_columns -= len(mark_missing(length))
    shown_pieces: list[str] = []
    width, missing = 0, length
    for shown, count in _split(pieces):
        width += count_columns(shown)
        if width > max_columns:
            break
        shown_pieces.append(shown)
        missing -= count
    return "".join([*shown_pieces, mark_missing(missing)])


def show_block(text: str) -> str:
    return _escape_whole(text, Layout.BLOCK)


def show_prose(text: str) -> str:
    return _escape_whole(text, Layout.PROSE)


def mark_missing(count: int) -> str:
    """Return the marker that says how many characters are missing at the end of a text."""
    return f"<+{count} more>"


def neutralise(text: str) -> str:
    """Escape only characters that control or deceive a terminal. Text that is already escaped stays unchanged."""
    if text.isascii():
        return _UNSAFE_ASCII.sub(lambda found: _escape_code_point(found[0], 1), text)
    return "".join(char if char in "\n\t" or not _is_hidden(char) else _escape_code_point(char, 1) for char in text)


def recover_text(text: str) -> tuple[str, int]:
    """Recover the original text, and the number of characters that are missing at its end."""
    missing = 0
    if mark := _MISSING_MARK.search(text):
        missing, text = int(mark[1]), text[: mark.start()]
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) * int(found[2] or 1), text), missing


def count_columns(text: str) -> int:
    """Return the width of the text in terminal columns."""
    return len(text) if text.isascii() else sum(_character_columns(char) for char in text)


def wrap_line(text: str, max_columns: int) -> list[str]:
    """Wrap one line of escaped text at `max_columns` columns. No text is added or removed, and no escape is split."""
    lines: list[str] = []
    line, width = "", 0
    for piece in re.findall(r"<U\+[0-9A-F]{4,6}(?:\*[0-9]+)?>|<\+[0-9]+ more>| +|[^ <]+|<", text):
        for part in [piece] if count_columns(piece) <= max_columns else piece:
            columns = count_columns(part)
            if width + columns > max_columns and line:
                lines.append(line)
                line, width = "", 0
            line += part
            width += columns
    return [*lines, line]


def _escape_whole(text: str, layout: Layout) -> str:
    """Escape a text. Uses one regular expression if only white space needs escaping, as in nearly all texts."""
    if not text.isascii() and any(map(_needs_escaping_check, {*text})):
        return "".join(shown for shown, _ in _escape(text, layout))

    def number(found: re.Match[str]) -> str:
        run = found[0]
        if run[0] == "\n" and layout is Layout.BLOCK:
            return f"{_escape_code_point(run[0], len(run) - 1)}\n"
        return _escape_code_point(run[0], len(run))

    return _SIMPLE[layout].sub(number, text)


def _escape(text: str, layout: Layout) -> Iterator[tuple[str, int]]:
    """Yield pieces of escaped text, each with the number of characters that it represents."""
    lines = _Lines(text, per_line=layout is Layout.BLOCK)
    for found in _PIECE.finditer(text):
        piece = found[0]
        if found["word"] is None:
            yield from _escape_run(found, layout)
        elif piece.isascii():
            yield (_ESCAPE_LEAD.sub("<U+003C>", piece) if "<" in piece else piece), len(piece)
        else:
            strict = layout is not Layout.PROSE
            yield from _escape_token(piece, strict=strict, reorders=strict and lines.are_mixed_at(found.start()))


def _escape_run(found: re.Match[str], layout: Layout) -> Iterator[tuple[str, int]]:
    run, char, text = found[0], found["char"], found.string
    length = len(run)
    if layout is Layout.PROSE:
        plain = char in " \n\t"
    elif char == " ":
        at_end = found.end() == len(text) or (layout is Layout.BLOCK and text[found.end()] == "\n")
        at_start = layout is Layout.LINE and found.start() == 0
        plain = length <= _MAX_SPACES and not at_end and not at_start
    elif char == "\n" and layout is Layout.BLOCK:
        plain = length <= _MAX_EMPTY_LINES
        if not plain:
            yield f"{_escape_code_point(char, length - 1)}\n", length
            return
    else:
        plain = False
    yield (run if plain else _escape_code_point(char, length)), length


def _escape_token(token: str, *, strict: bool, reorders: bool) -> Iterator[tuple[str, int]]:
    twins = _find_twins(token, strict=strict)
    leads = {found.start() for found in _ESCAPE_LEAD.finditer(token)} if "<" in token else set()
    combining = _MAX_COMBINING
    marked: list[tuple[str, bool]] = []
    for index, char in enumerate(token):
        if unicodedata.category(char) in {"Mn", "Mc"}:
            combining += 1
            hidden = combining > _MAX_COMBINING or _is_hidden(char)
        else:
            combining = 0 if char.isalpha() else _MAX_COMBINING
            hidden = _is_hidden(char) or index in twins or index in leads or (reorders and _is_right_to_left(char))
            hidden = hidden or (strict and _is_ascii_twin(char))
        marked.append((char, hidden))
    for (char, hidden), same in groupby(marked):
        length = sum(1 for _ in same)
        yield (_escape_code_point(char, length) if hidden else char * length), length


def _find_twins(token: str, *, strict: bool) -> set[int]:
    """Return the positions of letters that look like Latin ones: next to Latin letters, or in a word that could be
    Latin.
    """
    twins: set[int] = set()
    for found in _LETTERS.finditer(token):
        letters = found[0]
        foreign = [index for index, char in enumerate(letters) if not char.isascii() and _is_of_twin_script(char)]
        if not foreign:
            continue
        others = len(letters) - len(foreign)
        if others or (strict and all(char in _LATIN_TWINS for char in letters)):
            twins |= {found.start() + place for place in foreign}
    return twins


class _Lines:
    """Finds lines with both ASCII characters and right-to-left letters, which a terminal may reorder."""

    def __init__(self, text: str, *, per_line: bool) -> None:
        self._text = text
        self._per_line = per_line
        self._end, self._mixed = -1, False

    def are_mixed_at(self, position: int) -> bool:
        if position > self._end:
            start = self._text.rfind("\n", 0, position) + 1 if self._per_line else 0
            end = self._text.find("\n", position) if self._per_line else -1
            self._end = len(self._text) if end < 0 else end
            line = self._text[start : self._end]
            self._mixed = any(map(_is_right_to_left, line)) and _VISIBLE_ASCII.search(line) is not None
        return self._mixed


def _split(pieces: list[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Split unescaped pieces into characters, so that a text can be cut anywhere except within an escape."""
    for shown, length in pieces:
        if len(shown) == length and not _ESCAPED.search(shown):
            yield from ((char, 1) for char in shown)
        elif "<U+003C>" in shown and length > 1:
            parts = re.findall(r"<U\+003C>|.", shown, re.DOTALL)
            yield from ((part, 1) for part in parts)
        else:
            yield shown, length


def _escape_code_point(char: str, length: int) -> str:
    return f"<U+{ord(char):04X}>" if length == 1 else f"<U+{ord(char):04X}*{length}>"


@lru_cache(maxsize=4096)
def _is_hidden(char: str) -> bool:
    if char == " ":
        return False
    if unicodedata.category(char) in _HIDDEN_CATEGORIES or char in _HIDDEN:
        return True
    return any(ord(char) in selectors for selectors in _VARIATION_SELECTORS)


@lru_cache(maxsize=4096)
def _needs_escaping_check(char: str) -> bool:
    if char <= "\x7f":
        return False
    if unicodedata.category(char)[0] == "M" or _is_hidden(char) or _is_ascii_twin(char):
        return True
    return _is_of_twin_script(char) or _is_right_to_left(char)


@lru_cache(maxsize=4096)
def _is_ascii_twin(char: str) -> bool:
    return char in _ASCII_TWINS or unicodedata.name(char, "").startswith(_TWIN_NAMES)


@lru_cache(maxsize=4096)
def _is_of_twin_script(char: str) -> bool:
    return unicodedata.name(char, "").startswith(_TWIN_SCRIPTS)


@lru_cache(maxsize=4096)
def _is_right_to_left(char: str) -> bool:
    return unicodedata.bidirectional(char) in {"R", "AL", "AN"}


@lru_cache(maxsize=4096)
def _character_columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) == "Mn":
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1
