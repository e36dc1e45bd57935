"""Generated commands: every text gets a decision, and nothing is allowed unless the rules allow it."""

import random
import time

import pytest
from bench.support.generated_commands import command_grammar
from bench.support.generated_commands.damaged_commands import CommandDamager
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.gate.rule_setup import CONTEXT, decide_outcome, policy

from footplate.domain.policy.permissions import Layer, PermissionOutcome
from footplate.gate.evaluation.shell_command_decision import decide_command, explain_command
from footplate.gate.rules.layered_policy import Policy

BREAKER = CommandDamager()
RULES = policy("Bash(ls *)", "Bash(git *)", "Edit(src/**)", deny=("Bash(rm *)", "Read(.env)"))


@given(st.text(max_size=200))
def test_any_text_gets_a_decision(text: str) -> None:
    assert explain_command(RULES, text, CONTEXT).parts


@given(st.binary(max_size=200))
def test_any_bytes_get_a_decision(raw: bytes) -> None:
    assert explain_command(RULES, raw.decode("utf-8", "surrogateescape"), CONTEXT).parts
    assert explain_command(RULES, raw.decode("latin-1"), CONTEXT).parts


@given(st.lists(st.sampled_from([*"{}[](<$;x \n", "<<", "\U000b0ff0", "\U0001f600", "\u20ac", "é"]), max_size=80))
def test_non_ascii_text_always_gets_the_same_decision(bits: list[str]) -> None:
    """The parser's scanner read beyond its tables here and crashed the process once in some thousand runs."""
    text = "".join(bits)
    assert explain_command(RULES, text, CONTEXT) == explain_command(RULES, text, CONTEXT)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("ls café", "allow"),
        ("git commit -m 'Größe \u2013 日本語 😀'", "allow"),
        ("é=1 ls", "ask"),
        ("ls é=1", "allow"),
        ("ls <<é\nx\né", "ask"),
        ("ls <<E\né\nE", "allow"),
        ("ls <<é\nè\nls <<X\né\nrm x\nX", "ask"),
        ("ls {é,b}", "ask"),
        ("ls $é", "ask"),
        ("rm é", "deny"),
    ],
)
def test_non_ascii_letters_are_parts_of_arguments(text: str, outcome: str) -> None:
    assert decide_outcome(RULES, text) == outcome


@given(st.integers(min_value=0))
def test_nothing_is_allowed_unless_all_its_parts_are(seed: int) -> None:
    rng, truth = random.Random(seed), command_grammar.CommandEffects()
    rules = command_grammar.random_rules(rng)
    text = command_grammar.random_command(rng, truth)
    made = Policy.parse(
        {Layer.PROJECT: {PermissionOutcome.ALLOW: [*rules.allow, "Edit(src/*)"], PermissionOutcome.DENY: rules.deny}}
    )
    if explain_command(made, text, CONTEXT).decision.outcome is PermissionOutcome.ALLOW:
        assert not truth.has_unknown_parts
        assert all(map(rules.permits, truth.runs))
        assert all(map(command_grammar.is_writable, truth.writes))


@pytest.mark.parametrize("text", ["x=.env; cat $x", "cat .env$x", "rm \ud800", "ls \0", "cat $(id)/.env"])
def test_the_reason_of_a_decision_can_be_stored(text: str) -> None:
    verdict = explain_command(RULES, text, CONTEXT)
    for decision in (verdict.decision, *(part.decision for part in verdict.parts)):
        assert "\0" not in decision.reason
        decision.reason.encode()


@given(st.integers(min_value=0))
def test_broken_commands_get_the_same_decision_with_and_without_an_explanation(seed: int) -> None:
    text = BREAKER.make_command(random.Random(seed))
    verdict = explain_command(RULES, text, CONTEXT)
    assert verdict.parts
    assert decide_command(RULES, text, CONTEXT) == verdict.decision


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5_000 + "ls" + ")" * 4_000,
        "$(" * 3_000 + "ls" + ")" * 3_000,
        "ls " + "a " * 4_500,
        "ls;" * 3_000,
        "`" * 9_000,
        "{" * 9_000,
        "\\" * 9_999,
        "<<E " * 2_000,
        "if " * 3_000,
        "'" * 9_999,
        "sed '" + "s/;/;" * 90 + "'",
        "ls " + "*" * 9_000,
        "x" * 1_000_000,
        "sh -c '" * 1_000,
        "env " * 2_000 + "ls",
        "a=" * 4_000,
        "tee ." + "*" * 60 + "z" + "?*" * 400,
        "cat " + ".*" * 2_000,
        "sed 's/" + "[a]" * 500 + "/" * 3 + "'",
        "awk '" + "print" * 500 + "'",
        "git diff " + "--a" * 900,
        "tool " + "x=@:" * 900,
    ],
)
def test_huge_and_deep_commands_are_decided_in_time(text: str) -> None:
    start = time.thread_time()
    assert decide_outcome(RULES, text) in {"ask", "allow"}
    assert time.thread_time() - start < 2


def test_an_exact_rule_does_not_cover_redirected_input_or_options() -> None:
    assert decide_outcome(policy("Bash(sh)"), "sh <<E\nmake\nE") == "ask"
    assert decide_outcome(policy("Bash(make)", "Bash(sh)"), "make | sh") == "ask"
    assert decide_outcome(policy("Bash(npm ci)"), "npm ci >/dev/null --script-shell=x") == "ask"
    assert decide_outcome(policy("Bash(npm ci)"), "npm ci >/dev/null") == "allow"
