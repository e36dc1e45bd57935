"""Evaluates the words of a shell command: determines the arguments that the shell will pass to the program. Parts that
are known only at run time are marked as unknown.
"""

import re
from typing import Final, NamedTuple

from tree_sitter import Node

UNKNOWN: Final = "\0"
"""Marks the parts of a word that are only known at run time. A command that contains this character itself is not
parsed.
"""
_PLAIN_WORD: Final = re.compile(rb"[A-Za-z0-9_./:=@%+,^-]*")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_STRING_ESCAPE: Final = re.compile(r'\\([$`"\\\n])')
_ANSI_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
_ANSI_LETTERS: Final = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_GLOB: Final = re.compile(r"[*?\[]")
_BRACES: Final = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
_SAFE_EXPANSION: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::?-[\w ./:-]*)?\}")
_NUMBERS: Final = frozenset({"$?", "$#", "$$", "$!"})
_WORD_END: Final = re.compile(r"""[\s;|&<>()$`"'\\]""")
"""Characters that end a word unless they are quoted. If a word contains one, the grammar found the wrong word boundary.
"""
_LITERAL_NODES: Final = frozenset({"word", "number", "variable_name"})
_SUBSTITUTION_NODES: Final = frozenset({"command_substitution", "process_substitution"})


class Word(NamedTuple):
    """One argument of a command."""

    text: str
    globs: bool = False
    """Whether it contains `*`, `?` or `[` that the shell expands."""
    faults: tuple[str, ...] = ()
    """Reasons why the word cannot be evaluated."""
    may_split: bool = False
    """Whether it contains an unquoted variable, so that it may become several words at run time."""

    @property
    def known(self) -> bool:
        return UNKNOWN not in self.text and not self.globs

    @property
    def is_known_except_globs(self) -> bool:
        """Whether the word is known, except for globs."""
        return UNKNOWN not in self.text

    @property
    def may_become_option(self) -> bool:
        """Whether its unknown part may turn the word, or a part of it, into an option."""
        return self.may_split or (self.text[:1] in {UNKNOWN, "-"} and UNKNOWN in self.text.partition("=")[0])


class WordReader:
    """Evaluates the words of one source. It collects the substitutions in `met`, so that the caller can parse their
    commands.
    """

    def __init__(self, source: bytes) -> None:
        self._source = source
        self.substitutions: list[Node] = []

    def read_word(self, node: Node) -> Word:
        kind = node.type
        if kind == "command_name" and (only_child := _find_only_child(node)) is not None:
            node, kind = only_child, only_child.type
        raw = self._source[node.start_byte : node.end_byte]
        if kind in _LITERAL_NODES and _PLAIN_WORD.fullmatch(raw) and not node.named_child_count:
            return Word(raw.decode())
        parts: list[str] = []
        faults: list[str] = []
        unquoted: list[str] = []
        self._add_node(node, parts, unquoted, faults)
        bare = "".join(unquoted)
        if _BRACES.search(bare):
            faults.append("a brace expansion produces several words")
        return Word("".join(parts), _GLOB.search(bare) is not None, tuple(faults), UNKNOWN in bare)

    def text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _add_node(self, node: Node, parts: list[str], unquoted: list[str], faults: list[str]) -> None:  # noqa: C901, PLR0912
        """Add the text of a node to `parts`. `marked` gets only the unquoted text, with one letter in place of each
        quoted piece.
        """
        kind = node.type
        text = self.text(node)
        if kind in {"word", "number", "variable_name", "test_operator", "extglob_pattern", "regex"} and (
            not node.named_child_count
        ):
            parts.append(_ESCAPE.sub(r"\1", text))
            bare = _ESCAPE.sub("q", text)
            unquoted.append(bare)
            if _WORD_END.search(bare) or "\\\n" in text:
                faults.append("the end of a word is ambiguous")
        elif kind in {"concatenation", "command_name"}:
            at = node.start_byte
            for child in node.children:
                if child.start_byte != at:
                    faults.append("a word of the command cannot be parsed")
                at = child.end_byte
                self._add_node(child, parts, unquoted, faults)
        elif kind == "raw_string":
            parts.append(text[1:-1])
            unquoted.append("q")
        elif kind == "string" and text.startswith('"'):
            parts.append(self._read_string(node, faults))
            unquoted.append("q")
        elif kind == "ansi_c_string":
            decoded = _decode_ansi(text[2:-1])
            parts.append(decoded)
            unquoted.append("q")
        elif kind == "simple_expansion" or (kind == "expansion" and _SAFE_EXPANSION.fullmatch(text)):
            parts.append(UNKNOWN)
            unquoted.append("q" if text in _NUMBERS else UNKNOWN)
        elif kind in _SUBSTITUTION_NODES:
            self.substitutions.append(node)
            parts.append(UNKNOWN)
            unquoted.append("q")
            faults.append("a substitution")
        elif kind == "brace_expression":
            parts.append(UNKNOWN)
            faults.append("a brace expansion produces several words")
        elif not node.is_named and kind in {"{", "}", "[", "]", ",", "..", "=", "+", "-", ":"}:
            parts.append(text)
            unquoted.append(text)
        else:
            self._collect_substitutions(node)
            parts.append(UNKNOWN)
            faults.append(f"the value of `{text[:40]}` is only known at run time")

    def _read_string(self, node: Node, faults: list[str]) -> str:
        inner: list[str] = []
        at = node.start_byte + 1
        for child in node.named_children:
            if child.type == "string_content":
                continue
            inner.append(_unescape(self._source[at : child.start_byte]))
            self._add_node(child, inner, [], faults)
            at = child.end_byte
        inner.append(_unescape(self._source[at : max(at, node.end_byte - 1)]))
        return "".join(inner)

    def _collect_substitutions(self, node: Node) -> None:
        """Collect the substitutions below a node that is not supported."""
        pending = [node]
        while pending:
            each = pending.pop()
            if each.type in _SUBSTITUTION_NODES:
                self.substitutions.append(each)
            else:
                pending.extend(each.named_children)


def _find_only_child(node: Node) -> Node | None:
    """Return the only child of a node if it spans the whole node."""
    children = node.children
    if len(children) != 1 or (children[0].start_byte, children[0].end_byte) != (node.start_byte, node.end_byte):
        return None
    return children[0]


def _unescape(raw: bytes) -> str:
    return _STRING_ESCAPE.sub(lambda found: "" if found[1] == "\n" else found[1], raw.decode("utf-8", "replace"))


def _decode_ansi(text: str) -> str:
    def letter(found: "re.Match[str]") -> str:
        for group, base in ((1, 16), (2, 16), (3, 16), (4, 8)):
            if found[group] is not None:
                code = int(found[group], base)
                return chr(code) if 0 < code < 0x80 else UNKNOWN  # noqa: PLR2004 - the locale decides on other bytes
        return _ANSI_LETTERS.get(found[5], UNKNOWN)

    return _ANSI_ESCAPE.sub(letter, text)
