"""The cost of deciding about a call is limited for any rules and commands. Above the limit, the call is denied."""

import time

import pytest
from tests.unit.gate.rule_setup import CONTEXT

from footplate.domain.policy.permissions import Decision, Layer, PermissionOutcome
from footplate.gate.errors import InvalidRule
from footplate.gate.evaluation import search_decision, shell_command_decision
from footplate.gate.evaluation.tool_call_decision import decide_tool_call
from footplate.gate.hooks.hook_config import compile_matcher
from footplate.gate.rules.layered_policy import Policy
from footplate.gate.rules.path_context import FileTarget
from footplate.gate.rules.rule_parser import parse_rule

DENY = PermissionOutcome.DENY


def _timed(policy: Policy, command: str) -> tuple[Decision, float]:
    began = time.thread_time()
    return shell_command_decision.decide_command(policy, command, CONTEXT), time.thread_time() - began


@pytest.mark.parametrize(
    ("rules", "command"),
    [
        ([f"Bash(*x{number}*y*z*)" for number in range(1000)], "; ".join(["cat " + "x1y" * 15] * 180)),
        (
            [f"Read(//**/{'*a' * 15}{number}*)" for number in range(1000)],
            "cat " + " ".join("a" * (155 + number) for number in range(45)),
        ),
        ([f"Read(**/{'*a' * 15}{number}*)" for number in range(1000)], "cat " + "/".join(["*a" * 30] * 60)),
        ([f"Bash(rm -r -f -{chr(97 + number % 26)} {number} *)" for number in range(1000)], "rm " + "-a -b " * 1500),
    ],
)
def test_many_rules_and_a_long_command_are_denied_in_time(rules: list[str], command: str) -> None:
    policy = Policy.parse({Layer.SESSION: {DENY: rules}})
    _ = policy.forbidden_paths
    decision, seconds = _timed(policy, command)
    assert decision.outcome in {DENY, PermissionOutcome.ASK}
    assert seconds < 2


def test_a_denial_for_cost_has_its_own_reason() -> None:
    policy = Policy.parse({Layer.SESSION: {DENY: [f"Bash(*x{number}*y*)" for number in range(1000)]}})
    decision, _ = _timed(policy, "; ".join(["cat " + "q" * 40] * 180))
    assert decision == shell_command_decision.TOO_EXPENSIVE
    assert (
        shell_command_decision.explain_command(policy, "; ".join(["cat " + "q" * 40] * 180), CONTEXT).decision
        == decision
    )
    assert _timed(policy, "cat q")[0].outcome is not DENY


def test_a_long_field_with_many_rules_is_denied() -> None:
    policy = Policy.parse({Layer.SESSION: {DENY: [f"Bash(description:*a{number}*b*)" for number in range(1000)]}})
    given = {"command": "ls", "description": "a" * 1_000_000}
    assert decide_tool_call(policy, "Bash", given, CONTEXT) == shell_command_decision.TOO_EXPENSIVE


def test_a_search_over_too_many_files_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_decision, "_MAX_STEPS", 10_000)
    policy = Policy.parse({Layer.SESSION: {DENY: ["Read(*.secret)"]}})
    search = search_decision.Search(FileTarget("/work/tree", "/work/tree"), "")
    decision = search_decision.decide_search(policy, search, [f"file-{number}" for number in range(1000)], CONTEXT)
    assert decision is not None
    assert decision.outcome is DENY
    assert "smaller directory" in decision.reason


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (f"Read({'[a-z]*' * 40}!)", "the limit is 40"),
        (f"WebFetch(domain:{'*a.' * 20}com)", r"at most 5 `\*`"),
        (f"WebFetch(domain:{'a' * 300})", "at most 253"),
    ],
)
def test_patterns_that_would_take_long_are_refused(rule: str, problem: str) -> None:
    with pytest.raises(InvalidRule, match=problem):
        parse_rule(rule, DENY)


def test_a_matcher_uses_re2_and_reports_unsupported_syntax() -> None:
    with pytest.raises(InvalidRule, match="too large"):
        compile_matcher("(.?.?.?.?.?){24}!")
    with pytest.raises(InvalidRule, match="not a supported regular expression"):
        compile_matcher(r"(?!Bash)")
    with pytest.raises(InvalidRule, match="at most 1000"):
        compile_matcher("a" * 1001)
    assert compile_matcher("^mcp__.*__(get|list)_").search("mcp__github__get_issue")
    assert not compile_matcher("Edit|Write").search("NotebookEdit")
