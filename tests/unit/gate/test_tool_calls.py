"""Decisions about calls of every tool, with the reference's tool names and with Claude Code's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.gate.rule_setup import CONTEXT, policy

from footplate.domain.json import JsonObject
from footplate.domain.policy.permissions import PermissionOutcome
from footplate.gate.evaluation.tool_call_decision import decide_tool_call
from footplate.gate.rules.domain_pattern import extract_host

RULES = policy(
    "Edit(src/**)",
    "Read(//usr/share/**)",
    "WebFetch(domain:*.good.com)",
    "mcp__github__get_*",
    "WebSearch",
    "Agent(Plan)",
    ask=("Bash(run_in_background:true)",),
    deny=("Read(.env)", "mcp__evil", "Agent(Explore)", "Agent(model:opus)", "Edit(src/keep/**)"),
)


@pytest.mark.parametrize(
    ("tool", "given_", "outcome"),
    [
        ("read", {"file_path": "a.txt"}, "allow"),
        ("Read", {"file_path": "/work/tree/a.txt"}, "allow"),
        ("read", {"file_path": "/etc/passwd"}, "ask"),
        ("read", {"file_path": "/usr/share/x"}, "allow"),
        ("read", {"file_path": "../x"}, "ask"),
        ("read", {"file_path": "a/.env"}, "deny"),
        ("grep", {"pattern": "x"}, "allow"),
        ("grep", {"pattern": "x", "path": "/"}, "ask"),
        ("glob", {"pattern": "**/*.py"}, "allow"),
        ("glob", {"pattern": "/etc/*"}, "ask"),
        ("glob", {"pattern": "../*"}, "ask"),
        ("write", {"file_path": "src/x"}, "allow"),
        ("edit", {"file_path": "src/x"}, "allow"),
        ("edit", {"file_path": "src/keep/x"}, "deny"),
        ("write", {"file_path": "x"}, "ask"),
        ("write", {"file_path": "src/../x"}, "ask"),
        ("write", {"file_path": ".env"}, "deny"),
        ("write", {"file_path": "src/.git/hooks/x"}, "ask"),
        ("write", {"file_path": "src/.claude/settings.json"}, "ask"),
        ("web_fetch", {"url": "https://a.good.com/x"}, "allow"),
        ("web_fetch", {"url": "https://good.com.evil.test"}, "ask"),
        ("web_fetch", {"url": "file:///etc/passwd"}, "ask"),
        ("web_search", {"query": "x"}, "allow"),
        ("mcp__github__get_issue", {}, "allow"),
        ("mcp__github__delete", {}, "ask"),
        ("mcp__evil__anything", {}, "deny"),
        ("Agent", {"subagent_type": "Plan"}, "allow"),
        ("Agent", {"subagent_type": "Explore"}, "deny"),
        ("Task", {"subagent_type": "Plan", "model": "opus"}, "deny"),
        ("bash", {"command": "ls"}, "allow"),
        ("bash", {"command": "ls", "run_in_background": True}, "ask"),
        ("bash", {"restart": True}, "allow"),
        ("bash", {"command": 5}, "ask"),
        ("bash", {}, "ask"),
        ("read", {"file_path": None}, "ask"),
        ("read", {"file_path": "a\0b"}, "ask"),
        ("some_custom_tool", {}, "ask"),
    ],
)
def test_decisions_about_calls(tool: str, given_: JsonObject, outcome: str) -> None:
    assert decide_tool_call(RULES, tool, given_, CONTEXT).outcome.value == outcome


def test_a_rule_for_a_tool_covers_all_of_its_calls() -> None:
    assert (
        decide_tool_call(policy("Edit"), "edit", {"file_path": "/anywhere"}, CONTEXT).outcome is PermissionOutcome.ALLOW
    )
    assert (
        decide_tool_call(policy("Edit"), "write", {"file_path": "/anywhere"}, CONTEXT).outcome is PermissionOutcome.ASK
    )
    assert (
        decide_tool_call(policy("Write"), "edit", {"file_path": "/anywhere"}, CONTEXT).outcome is PermissionOutcome.ASK
    )
    assert decide_tool_call(policy(deny=("*",)), "anything", {}, CONTEXT).outcome is PermissionOutcome.DENY
    assert (
        decide_tool_call(policy("Bash", deny=("mcp__*",)), "mcp__a__b", {}, CONTEXT).outcome is PermissionOutcome.DENY
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://a.good.com\\@evil.test/",
        "http://evil.test\0.good.com/",
        "http://user@a.good.com/",
        "http://a.good.com:99999/",
        "http:///x",
        "//a.good.com",
        "gopher://a.good.com",
        "http://[::1]/",
        "http://a.good.com\n.evil.test",
        "http://\u0430.good.com/",
        "http:// a.good.com",
    ],
)
def test_urls_without_a_certain_host(url: str) -> None:
    assert extract_host(url) is None


@given(
    st.text(),
    st.dictionaries(st.sampled_from(["command", "file_path", "path", "pattern", "url"]), st.text() | st.none()),
)
def test_every_call_gets_a_decision(tool: str, given_: JsonObject) -> None:
    assert decide_tool_call(RULES, tool, given_, CONTEXT).outcome in PermissionOutcome
    for known in ("bash", "read", "write", "glob", "web_fetch"):
        assert decide_tool_call(RULES, known, given_, CONTEXT).outcome in PermissionOutcome
