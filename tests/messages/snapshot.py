"""Collects every message that can reach a person or a model into messages.txt, to show changes of wording in review.

A message is a text of at least three words in the source of `footplate`: an error, a help text, a log line, a tool
result, a prompt. Docstrings count where they become help texts or descriptions in the OpenAPI document. `--check` fails
if the file is out of date.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.generated_file import ROOT, write_or_check

SOURCE: Final = ROOT / "src" / "footplate"
FILE: Final = Path(__file__).with_name("messages.txt")
_MIN_TOKENS: Final = 3
_TOKEN: Final = re.compile(r"[A-Za-z]{2,}")
_SQL: Final = re.compile(
    r"\s*(select|insert|update|delete|with|create|alter|drop|lock|set|begin|notify|listen|analyze|copy)\s[^.]*"
    r"\b(from|into|set|as|table|in|to|on|local|index|only)\b"
    r"|show \w+$|select \w+\.\*|order by \w+\.|\(?\w+\.\w+ is null$|\(s\.created_at"
)
_SHELL: Final = re.compile(r"^\s*(#!|exec |export \w+=|\[ |\(?cd |set -|import |from \w+ import )")
_SHOWN_BY: Final = {"command", "callback", "get", "post", "put", "patch", "delete", "websocket"}
"""Decorators whose function's docstring is shown: as help of a command or as description of a route."""
_SHOWN_IN: Final = ("api/wire/",)
"""Modules whose docstrings, of classes and of fields, are shown in the OpenAPI document."""


def collect(source: Path = SOURCE) -> Iterator[str]:
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        if "/migrations/versions/" not in name:
            for message in sorted(set(_messages_of(path, name))):
                yield f"{name}: {message}"


def _messages_of(path: Path, name: str) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    hidden = _hidden_docstrings(tree, name)
    for node in ast.walk(tree):
        text = None if id(node) in hidden else _text_of(node, inside)
        if text is not None and _is_message(text):
            yield " ".join(text.split())


def _hidden_docstrings(tree: ast.Module, name: str) -> set[int]:
    """Docstrings, of attributes too, that no person sees outside of the source."""
    if name.startswith(_SHOWN_IN):
        return {id(node.value) for node in tree.body[:1] if isinstance(node, ast.Expr)}
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    shown = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and isinstance(node.body[0], ast.Expr)
        and _is_shown(node)
    }
    return statements - shown


def _is_shown(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    called = [each.func for each in node.decorator_list if isinstance(each, ast.Call)]
    return any(isinstance(each, ast.Attribute) and each.attr in _SHOWN_BY for each in called)


def _text_of(node: ast.AST, inside: set[int]) -> str | None:
    """The text with a placeholder for each value; none for the parts of a text that is already counted."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
        return node.value
    return None


def _is_message(text: str) -> bool:
    if len(_TOKEN.findall(text)) < _MIN_TOKENS or " " not in text.strip():
        return False
    return not (_SQL.match(text.lower()) or _SHELL.match(text) or "\\" in text or "(?" in text or _is_type(text))


def _is_type(text: str) -> bool:
    """Whether the text is a quoted type expression, such as `asyncio.Task[None] | None`."""
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return False
    return isinstance(body, ast.Subscript) or (isinstance(body, ast.BinOp) and isinstance(body.op, ast.BitOr))


def main() -> None:
    write_or_check(FILE, "\n".join(collect()) + "\n", recipe="messages")


if __name__ == "__main__":
    main()
