"""Parses a shell command into a syntax tree with tree-sitter. Text that cannot be parsed reliably is reported, and
commands that are too long are not parsed.
"""

import re
import threading
from typing import Final, NamedTuple

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

MAX_CHARACTERS: Final = 10_000
"""Characters. Longer commands are not parsed: they require approval."""
_LANGUAGE: Final = Language(tree_sitter_bash.language())
_INVISIBLE: Final = re.compile(
    r"[^\t\n\x20-\x7e\u00a1-\u00ac\u00ae-\u02ff\u0370-\u061b\u061d-\u070e\u0710-\u115e\u1161-\u167f\u1681-\u17b3"
    r"\u17b6-\u180a\u1810-\u1aaf\u1b00-\u1dbf\u1e00-\u1fff\u2013-\u2027\u2030-\u205e\u2070-\u20cf\u2100-\u2fff\u3001-\u3163"
    r"\u3165-\ud7ff\uf900-\ufdff\ufe30-\ufefe\uff01-\uff9f\uffa1-\uffdc\uffe0-\uffee\U00010000-\U000dffff]"
)
"""Control characters, unusual spaces, joiners and bidirectional marks, which a person cannot see or sees as something
else.
"""
_ASCII_MASK: Final = bytes(range(0x80)) + b"%" * 0x80
"""Replaces all non-ASCII bytes by `%` before parsing. The grammar's scanner uses such characters as an index beyond the
end of a table, so its result is random, and some characters crash the process. To the shell they are letters of a word
that cannot be part of a variable name, and so is `%`. The words themselves are read from the original text.
"""
_local: Final = threading.local()


class ParsedSource(NamedTuple):
    """The text of a command and its syntax tree."""

    text: bytes
    root: Node | None
    """None if the command was not parsed."""
    faults: tuple[str, ...]


def parse_syntax(command: str) -> ParsedSource:
    if "\0" in command:
        return ParsedSource(b"", None, ("it contains a NUL character",))
    if len(command) > MAX_CHARACTERS:
        return ParsedSource(b"", None, (f"it is longer than {MAX_CHARACTERS} characters",))
    faults: list[str] = []
    if hidden := _INVISIBLE.search(command):
        faults.append(f"it contains an invisible character (U+{ord(hidden[0]):04X})")
    text = command.encode("utf-8", "replace")
    root = _thread_parser().parse(text.translate(_ASCII_MASK)).root_node
    if root.has_error:
        faults.append("it has a syntax error")
    return ParsedSource(text, root, tuple(faults))


def _thread_parser() -> Parser:
    """Return the parser of this thread. A parser must not be shared between threads."""
    parser: Parser | None = getattr(_local, "parser", None)
    if parser is None:
        parser = _local.parser = Parser(_LANGUAGE)
    return parser
