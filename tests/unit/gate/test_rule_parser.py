"""Rules in Claude Code's notation: valid rules are parsed, and invalid ones are refused with a position."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.domain.policy.permissions import PermissionOutcome
from footplate.gate.errors import InvalidRule
from footplate.gate.rules.rule_parser import ParameterPattern, parse_rule
from footplate.gate.rules.text_pattern import TextPattern


@pytest.mark.parametrize(
    "text",
    [
        "Bash",
        "Bash(*)",
        "Bash(git log *)",
        "Bash(npm run test:*)",
        "Bash(echo (a))",
        "Read(src/**)",
        "Read(//etc/hosts)",
        "Read(~/.zshrc)",
        "Edit(/docs/**)",
        "Edit(./Finance (2024)/**)",
        "Write",
        "WebFetch(domain:example.com)",
        "WebFetch(domain:*.example.com)",
        "WebFetch(domain:*)",
        "WebSearch",
        "mcp__github",
        "mcp__github__get_issue",
        "mcp__github__get_*",
        "Agent(Explore)",
        "Task(Explore)",
        "deploy_tool",
    ],
)
def test_valid_rules_are_parsed(text: str) -> None:
    for outcome in PermissionOutcome:
        assert parse_rule(text, outcome).text == text


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 1),
        ("  ", 1),
        (" Bash", 1),
        ("Bash ", 5),
        ("Bash(git log", 13),
        ("Bash()", 6),
        ("Bash x", 5),
        ("Bash)", 5),
        ("(x)", 1),
        ("bash(ls)", 1),
        ("Bash(a\u200bb)", 7),
        ("Bash(a\nb)", 7),
        ("Read([)", 6),
        ("Read(!x)", 6),
        ("WebFetch(example.com)", 10),
        ("WebFetch(domain:)", 17),
        ("WebFetch(domain:a..b)", 19),
        ("WebFetch(domain:a.com/x)", 22),
        ("WebSearch(x)", 10),
        ("mcp__", 6),
        ("mcp__a__b(x)", 10),
        ("Bash(command:rm *)", 6),
        ("Bash(" + "a" * 2_000 + ")", 2_001),
    ],
)
def test_invalid_rules_are_refused_with_a_position(text: str, position: int) -> None:
    for outcome in PermissionOutcome:
        with pytest.raises(InvalidRule) as caught:
            parse_rule(text, outcome)
        assert caught.value.position == position
        assert f"at character {position}" in caught.value.message
        assert caught.value.help_text


@pytest.mark.parametrize("text", ["*", "B*", "mcp__*", "mcp__git*", "Write(src/**)", "Glob(src/**)"])
def test_allow_rules_that_would_allow_nothing_or_too_much_are_refused(text: str) -> None:
    with pytest.raises(InvalidRule):
        parse_rule(text, PermissionOutcome.ALLOW)
    assert parse_rule(text, PermissionOutcome.DENY).text == text


@given(st.text(max_size=60), st.sampled_from(PermissionOutcome))
def test_any_text_is_parsed_or_refused(text: str, outcome: PermissionOutcome) -> None:
    with contextlib.suppress(InvalidRule):
        assert parse_rule(text, outcome).text == text


@pytest.mark.parametrize(
    ("pattern", "matched", "others"),
    [
        ("npm run build", ["npm run build"], ["npm run build --watch", "npm run"]),
        ("npm run *", ["npm run build", "npm run", "npm run a b"], ["npm install", "npm running"]),
        ("ls*", ["ls -la", "lsof", "ls"], ["l"]),
        ("git log * main", ["git log -5 main"], ["git log main", "git log -5 main x"]),
        ("* --version", ["node --version"], ["node -v", "--version"]),
        ("* --help *", ["npm --help x"], ["npm --help"]),
        ("a*a", ["aa", "aba"], ["a"]),
        ("a*b*b", ["abb", "axbxb"], ["ab"]),
    ],
)
def test_wildcards(pattern: str, matched: list[str], others: list[str]) -> None:
    """The cases are the table of wildcards in Claude Code's documentation."""
    made = TextPattern.parse(pattern)
    assert all(made.matches(text) for text in matched)
    assert not any(made.matches(text) for text in others)


def test_colon_star_is_space_star() -> None:
    short, long = parse_rule("Bash(ls:*)", PermissionOutcome.ALLOW), parse_rule("Bash(ls *)", PermissionOutcome.ALLOW)
    assert short.specifier == long.specifier


def test_input_fields_are_matched_only_by_deny_rules() -> None:
    assert isinstance(parse_rule("Bash(run_in_background:true)", PermissionOutcome.DENY).specifier, ParameterPattern)
    assert isinstance(parse_rule("Bash(run_in_background:true)", PermissionOutcome.ALLOW).specifier, TextPattern)
