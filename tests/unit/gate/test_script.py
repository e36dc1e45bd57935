"""Parsing of command lines, above all where the parser's grammar differs from the shell."""

import pytest

from footplate.gate.shell.command_extraction import parse_script


def _commands(text: str) -> list[list[str]]:
    return [[argument.text for argument in command.words] for command in parse_script(text).commands]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("ls -la", [["ls", "-la"]]),
        ("a && b || c; d | e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("(a; b)", [["a"], ["b"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("while a; do b; done", [["a"], ["b"]]),
        ("case x in a|b) c ;; esac", [["c"]]),
        ("! a", [["a"]]),
        ("a \\\n b", [["a", "b"]]),
        ("# why\na", [["a"]]),
        ("a 'b c' \"d e\" f\\ g $'h\\ti'", [["a", "b c", "d e", "f g", "h\ti"]]),
        ("\\rm r\"\"m 'r'm", [["rm", "rm", "rm"]]),
        ("ls >f x y", [["ls", "x", "y"]]),
        (">f rm x", [["rm", "x"]]),
        ("cat <<'E' x\nb\nE\nls", [["cat", "x"], ["ls"]]),
        ("[ -f x ] && a", [["a"]]),
    ],
)
def test_supported_syntax_is_parsed(text: str, commands: list[list[str]]) -> None:
    assert _commands(text) == commands
    assert parse_script(text).faults == []


@pytest.mark.parametrize(
    "text",
    [
        "r\\\nm x",
        "ls\n\\rm x",
        "ls\rrm x",
        "rm\u00a0x",
        "rm\u200b x",
        "{rm,x}",
        "a &&",
        "a )",
        "f() { a; }",
        "((a=1))",
        "[[ 'a[$(b)]' -eq 1 ]]",
        "[ -v 'a[$(b)]' ]",
        "a[$(b)]=1",
        "cat <<A <<B\na\nA\nb\nB",
        "for i in $(a); do b; done",
        "echo 'x",
        "(" * 60 + "a" + ")" * 60,
    ],
)
def test_unsupported_syntax_is_a_fault(text: str) -> None:
    found = parse_script(text)
    assert found.faults or any(command.faults for command in found.commands)


@pytest.mark.parametrize(
    "text",
    [
        "echo $(rm x)",
        "echo `rm x`",
        "cat <(rm x)",
        "echo ${a:-$(rm x)}",
        "a=$(rm x)",
        "cat <<E\n$(rm x)\nE",
        "echo $((a[$(rm x)]))",
    ],
)
def test_nested_commands_are_found(text: str) -> None:
    assert ["rm", "x"] in _commands(text)
