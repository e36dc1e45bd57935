"""Extracts all simple commands, at any depth, and all redirects and assignments from the syntax tree of a command line.

Only the syntax forms listed here are supported. Other nodes of the tree are visited as well, so that deny rules match
the commands in them. Each unsupported node adds a fault, and a command line with a fault is never allowed by default.
Text that the parser skipped also adds a fault, because the shell might execute it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from tree_sitter import Node

from footplate.gate.shell import syntax_parser
from footplate.gate.shell.script_model import Assignment, Redirect, Script, SimpleCommand, Stdin
from footplate.gate.shell.word_expansion import Word, WordReader

MAX_DEPTH: Final = 40
MAX_COMMANDS: Final = 200
"""Simple commands in one command line."""
_BLANKS_IN_LINE: Final = re.compile(rb"(?:[ \t]|\\\n)*")
_BLANKS_AND_NEWLINES: Final = re.compile(rb"(?:[ \t\n]|\\\n)*")
_SINGLE_LINE_NODES: Final = frozenset({"command", "file_redirect", "declaration_command", "unset_command"})
"""Syntax forms that end at a newline."""
_STATEMENT_NODES: Final = frozenset({
    "program", "list", "pipeline", "subshell", "if_statement", "elif_clause", "else_clause", "while_statement",
    "do_group", "negated_command", "case_statement", "case_item", "for_statement", "redirected_statement",
    "compound_statement",
})  # fmt: skip
_LOOP_NODES: Final = frozenset({"while_statement", "for_statement", "function_definition"})
_KNOWN_TOKENS: Final = frozenset({
    ";", "&", "&&", "||", "|", "|&", "\n", "(", ")", "{", "}", "if", "then", "else", "elif", "fi", "while", "until",
    "do",
    "done", "for", "in", "case", "esac", ";;", ";&", ";;&", "!", "select",
})  # fmt: skip
_DUPLICATES: Final = frozenset({">&", "<&", ">&-", "<&-"})
_HEREDOC: Final = re.compile(r"(?:\\?([A-Za-z0-9_.-]+)|'([A-Za-z0-9_.-]+)'|\"([A-Za-z0-9_.-]+)\")")
_ARITHMETIC: Final = re.compile(r"-(?:eq|ne|lt|le|gt|ge|v|R)")


class _NodeContext(NamedTuple):
    """The context in which a node is visited."""

    stdin: Stdin = Stdin.INHERITED
    repeated: bool = False
    extra: tuple[Node, ...] = ()
    """Arguments that the syntax tree has elsewhere, because they follow a redirect."""


def parse_script(command: str) -> Script:
    """Parse a command line. Never raises: problems are in the `faults` of the result."""
    source = syntax_parser.parse_syntax(command)
    script = Script(faults=list(source.faults))
    if source.root is not None:
        _ScriptWalker(source.text, script).visit(source.root, _NodeContext(), 0)
    return script


class _ScriptWalker:
    """Walks the syntax tree and adds its commands, redirects, assignments and faults to a script."""

    def __init__(self, source: bytes, script: Script) -> None:
        self._source = source
        self._script = script
        self._words = WordReader(source)

    def visit(self, node: Node, at: _NodeContext, depth: int) -> None:
        if depth > MAX_DEPTH:
            return self._add_fault("it is nested too deeply")
        if len(self._script.commands) >= MAX_COMMANDS:
            return self._add_fault(f"it has more than {MAX_COMMANDS} commands")
        handler = self._HANDLERS.get(node.type)
        if handler is not None:
            handler(self, node, at, depth)
        else:
            self._add_fault(f"`{self._text(node)[:40]}` is not supported")
            self._visit_children(node, at, depth)
        if self._words.substitutions:
            self._follow_substitutions(at, depth)
        return None

    def _visit_statement(self, node: Node, at: _NodeContext, depth: int) -> None:
        self._check_gaps(node)
        kind = node.type
        inner = _NodeContext(at.stdin, at.repeated or kind in _LOOP_NODES)
        values = kind in {"for_statement", "case_statement", "case_item"}
        first = True
        for child in node.children:
            if not child.is_named:
                if child.type not in _KNOWN_TOKENS or child.is_missing:
                    self._add_fault(f"`{self._text(child)[:40]}` is not supported")
            elif values and child.type in _WORD_NODES:
                self._add_faults(self._words.read_word(child))
            else:
                piped = kind == "pipeline" and not first
                self.visit(child, _NodeContext(Stdin.PIPE, inner.repeated) if piped else inner, depth + 1)
                first = False

    def _visit_redirected(self, node: Node, at: _NodeContext, depth: int) -> None:
        self._check_gaps(node)
        body: Node | None = None
        stdin, extra = at.stdin, list(at.extra)
        for child in node.named_children:
            if child.type == "file_redirect":
                found, more = self._add_redirect(child)
                stdin, extra = found or stdin, [*extra, *more]
            elif child.type == "heredoc_redirect":
                stdin, extra = Stdin.TEXT, [*extra, *self._visit_heredoc(child, at, depth)]
            elif child.type == "herestring_redirect":
                stdin = Stdin.TEXT
                self._visit_herestring(child)
            elif body is None:
                body = child
            else:
                self._add_fault(f"`{self._text(child)[:40]}` is not supported")
                self.visit(child, at, depth + 1)
        if body is not None:
            if extra and body.type != "command":
                self._add_fault("the words after a redirect are ambiguous")
            self.visit(body, _NodeContext(stdin, at.repeated, tuple(extra)), depth + 1)
        elif extra:
            self._add_command(extra, "", at, [])

    def _visit_command(self, node: Node, at: _NodeContext, depth: int) -> None:
        self._check_gaps(node)
        words: list[Node] = []
        stdin = at.stdin
        for child in node.children:
            kind = child.type
            if kind in _WORD_NODES or kind == "command_name":
                words.append(child)
            elif kind == "variable_assignment":
                self._add_assignment(child, exported=True)
            elif kind == "file_redirect":
                found, more = self._add_redirect(child)
                stdin = found or stdin
                words.extend(more)
            elif kind == "herestring_redirect":
                stdin = Stdin.TEXT
                self._visit_herestring(child)
            elif kind == "heredoc_redirect":
                stdin = Stdin.TEXT
                words.extend(self._visit_heredoc(child, at, depth))
            else:
                self._add_fault(f"`{self._text(child)[:40]}` is not supported")
                self._visit_children(child, at, depth) if kind != "ERROR" else self.visit_broken(child, at, depth)
        source = "" if at.extra else self._text(node)  # the syntax tree does not have the command in one piece
        self._add_command([*words, *at.extra], source, _NodeContext(stdin, at.repeated), [])

    def visit_broken(self, node: Node, at: _NodeContext, depth: int) -> None:
        """Visit a node with a syntax error. Its words may be a command."""
        words = [child for child in node.named_children if child.type in _WORD_NODES or child.type == "command_name"]
        if words:
            self._add_command(words, self._text(node), at, [])
        self._visit_children(node, at, depth)

    def _add_command(self, nodes: Sequence[Node], source: str, at: _NodeContext, faults: list[str]) -> None:
        read = self._words.read_word
        words = tuple([read(node) for node in nodes])
        if words:
            found = (*faults, *[fault for word in words for fault in word.faults])
            self._script.commands.append(SimpleCommand(words, source, at.stdin, at.repeated, found))

    def _add_redirect(self, node: Node) -> tuple[Stdin | None, list[Node]]:
        """Add one redirect. The syntax tree may have arguments of the command beside its target: return them."""
        self._check_gaps(node)
        operator = next((child.type for child in node.children if not child.is_named), "")
        targets = [child for child in node.named_children if child.type not in {"file_descriptor", "ERROR"}]
        if any(child.type == "ERROR" for child in node.named_children):
            operator = ""
        if operator in {">&-", "<&-"}:
            return None, targets
        if not targets:
            self._add_fault(f"`{self._text(node)[:40]}` has no target")
            return None, []
        target = self._words.read_word(targets[0])
        self._script.redirects.append(Redirect(operator, target, self._text(node)))
        return (Stdin.FILE if operator == "<" else None), targets[1:]

    def _visit_heredoc(self, node: Node, at: _NodeContext, depth: int) -> list[Node]:
        """Visit a here-document. The syntax tree also puts the rest of the line before it inside, so that is visited
        too.
        """
        arguments: list[Node] = []
        start = body = end = None
        for child in node.named_children:
            kind = child.type
            if kind == "heredoc_start":
                start = child
            elif kind == "heredoc_body":
                body = child
                self._visit_expansions(child)
            elif kind == "heredoc_end":
                end = child
            elif kind == "file_redirect":
                arguments.extend(self._add_redirect(child)[1])
            elif kind in _WORD_NODES:
                arguments.append(child)
            elif kind == "pipeline":
                self._visit_children(child, _NodeContext(Stdin.PIPE, at.repeated), depth)
            elif kind != "file_descriptor":
                self._visit_children(child, at, depth)
                self._add_fault("the words after a here-document are ambiguous")
        if start is None or end is None or not self._heredoc_ends_at(node, start, body, end):
            self._add_fault("the end of a here-document is ambiguous")
        return arguments

    def _heredoc_ends_at(self, node: Node, start: Node, body: Node | None, end: Node) -> bool:
        """Check the end of a here-document by the shell's rule: the first line that consists of the delimiter alone."""
        found = _HEREDOC.fullmatch(self._text(start))
        if found is None or body is None:
            return False
        delimiter = (found[1] or found[2] or found[3]).encode()
        tabs = self._source[node.start_byte : node.start_byte + 6].lstrip(b"0123456789").startswith(b"<<-")
        at = self._source.find(b"\n", start.end_byte) + 1
        if at != body.start_byte:
            return False
        while 0 < at <= len(self._source):
            stop = self._source.find(b"\n", at)
            line = self._source[at : stop if stop >= 0 else len(self._source)]
            if (line.lstrip(b"\t") if tabs else line) == delimiter:
                return end.end_byte == at + len(line)
            at = stop + 1
        return False

    def _visit_herestring(self, node: Node) -> None:
        for child in node.named_children:
            if child.type in _WORD_NODES:
                self._add_faults(self._words.read_word(child))
            elif child.type != "file_descriptor":
                self._add_fault(f"`{self._text(node)[:40]}` is not supported")

    def _visit_assignments(self, node: Node, _at: _NodeContext, _depth: int) -> None:
        if node.type == "variable_assignments":
            self._check_gaps(node)
        for each in node.named_children if node.type == "variable_assignments" else [node]:
            self._add_assignment(each, exported=False)

    def _visit_function(self, node: Node, _at: _NodeContext, depth: int) -> None:
        self._add_fault("it defines a function")
        self._visit_children(node, _NodeContext(Stdin.PIPE, repeated=True), depth)

    def _add_assignment(self, node: Node, *, exported: bool) -> None:
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        if name is None or name.type != "variable_name" or (value is not None and value.type not in _WORD_NODES):
            self._add_fault(f"`{self._text(node)[:40]}` is not supported")
            self._visit_expansions(node)
            return
        word = self._words.read_word(value) if value is not None else Word("")
        self._add_faults(word)
        self._script.assignments.append(Assignment(self._text(name), word, exported, self._text(node)))

    def _visit_declaration(self, node: Node, at: _NodeContext, _depth: int) -> None:
        """Visit `export`, `declare` and similar commands: assignments that apply to all later programs."""
        self._check_gaps(node)
        words: list[Node] = []
        for child in node.children:
            if child.type == "variable_assignment":
                self._add_assignment(child, exported=True)
            else:
                words.append(child)
        verb = self._text(words[0]) if words else ""
        if verb != "export" or any(not _PLAIN_NAME.fullmatch(self._text(word)) for word in words):
            read = tuple(Word(self._text(word)) for word in words[:1]) + tuple(map(self._words.read_word, words[1:]))
            faults = ("it changes how variables are evaluated",)
            self._script.commands.append(SimpleCommand(read, self._text(node), at.stdin, at.repeated, faults))

    def _visit_test(self, node: Node, _at: _NodeContext, _depth: int) -> None:
        """Visit `[ … ]` or `[[ … ]]`. Nothing runs, unless arithmetic or a variable is evaluated."""
        pending = list(node.named_children)
        double = self._text(node).startswith("[[")
        while pending:
            each = pending.pop()
            if each.type in {"binary_expression", "unary_expression", "parenthesized_expression", "negated_expression"}:
                operators = [
                    self._text(child) for child in each.children if not child.is_named or child.type == "test_operator"
                ]
                if any(_ARITHMETIC.fullmatch(text) and (double or text in {"-v", "-R"}) for text in operators):
                    self._add_fault("it evaluates variables as arithmetic expressions")
                pending.extend(child for child in each.named_children if child.type != "test_operator")
            elif each.type in _WORD_NODES or each.type in {"extglob_pattern", "regex"}:
                self._add_faults(self._words.read_word(each))
            else:
                self._add_fault(f"`{self._text(each)[:40]}` is not supported")
                self._visit_expansions(each)
        if not double and not self._text(node).startswith("["):
            self._add_fault("it evaluates variables as arithmetic expressions")

    def _visit_comment(self, node: Node, _at: _NodeContext, _depth: int) -> None:
        before = self._source[max(0, node.start_byte - 2) : node.start_byte]
        if before[-1:] not in {b"", b" ", b"\t", b"\n", b";"} or before[:1] == b"\\":
            self._add_fault("the start of a comment is ambiguous")

    def _visit_expansions(self, node: Node) -> None:
        """Visit the expansions in a text. Their substitutions are followed, the rest is plain text."""
        for child in node.named_children:
            if child.type not in {"heredoc_content", "string_content", "variable_name", "simple_expansion"}:
                word = self._words.read_word(child)
                self._add_faults(word)

    def _visit_children(self, node: Node, at: _NodeContext, depth: int) -> None:
        for child in node.named_children:
            if child.type not in _WORD_NODES:
                self.visit(child, at, depth + 1)
            else:
                self._words.read_word(child)

    def _follow_substitutions(self, at: _NodeContext, depth: int) -> None:
        """Visit the commands inside substitutions, because they run as well."""
        while self._words.substitutions:
            node = self._words.substitutions.pop()
            for child in node.named_children:
                self.visit(child, _NodeContext(repeated=at.repeated), depth + 1)

    def _check_gaps(self, node: Node) -> None:
        """Check that there is only whitespace between the children of a node, and that a line continuation does not
        split a word.
        """
        at, source = node.start_byte, self._source
        gaps = []
        for child in node.children:
            if (start := child.start_byte) != at:
                gaps.append(source[at:start])
            at = child.end_byte
        if at != node.end_byte:
            gaps.append(source[at : node.end_byte])
        blanks = _BLANKS_IN_LINE if node.type in _SINGLE_LINE_NODES else _BLANKS_AND_NEWLINES
        for gap in gaps:
            if gap != b" " and (not blanks.fullmatch(gap) or not gap.replace(b"\\\n", b"")):
                self._add_fault("it contains shell syntax that cannot be analysed")

    def _add_faults(self, word: Word) -> None:
        for fault in word.faults:
            self._add_fault(fault)

    def _add_fault(self, text: str) -> None:
        if text not in self._script.faults:
            self._script.faults.append(text)

    def _text(self, node: Node) -> str:
        return self._words.text(node)

    # pyrefly: ignore[bad-assignment]  # inside the class, pyrefly takes `self` of the methods for `Self`
    _HANDLERS: ClassVar[Mapping[str, Callable[["_ScriptWalker", Node, _NodeContext, int], None]]] = {
        **dict.fromkeys(_STATEMENT_NODES, _visit_statement),
        "command": _visit_command,
        "redirected_statement": _visit_redirected,
        "variable_assignment": _visit_assignments,
        "variable_assignments": _visit_assignments,
        "declaration_command": _visit_declaration,
        "unset_command": _visit_declaration,
        "test_command": _visit_test,
        "comment": _visit_comment,
        "function_definition": _visit_function,
    }


_WORD_NODES: Final = frozenset({
    "word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "simple_expansion",
    "expansion", "command_substitution", "process_substitution", "arithmetic_expansion", "brace_expression",
    "variable_name", "special_variable_name", "extglob_pattern", "regex", "test_operator",
})  # fmt: skip
_PLAIN_NAME: Final = re.compile(r"export|[A-Za-z_][A-Za-z0-9_]*")
