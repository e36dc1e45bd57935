"""A replay decides stored calls with other rules as the gate would, and marks decisions that are uncertain."""

from datetime import UTC, datetime
from typing import Any

import pytest

from footplate.domain.json import JsonObject
from footplate.domain.policy.permissions import Layer, PermissionOutcome
from footplate.domain.policy.policy_replay import SessionRules, StoredCall
from footplate.gate.errors import InvalidRule
from footplate.gate.policy_replay import PolicyReplay, ReplayResult

TOOLSET: JsonObject = {"type": "agent_toolset_20260401"}
PLAIN = SessionRules(agent={"tools": [TOOLSET]})


def make_call(name: str = "bash", *, server: str | None = None, **given: Any) -> StoredCall:
    now = datetime.now(UTC)
    return StoredCall(
        id="audt_1",
        created_at=now,
        session_id="sesn_1",
        turn_id=None,
        event_id="sevt_1",
        original_outcome=PermissionOutcome.ALLOW,
        name=name,
        server=server,
        input=given,
    )


def replay_call(
    permissions: JsonObject, made: StoredCall, rules: SessionRules = PLAIN, *, layer: Layer = Layer.ORGANISATION
) -> ReplayResult:
    return PolicyReplay(layer, permissions).evaluate_call("org", made, rules)


def test_proposed_rules_decide_with_those_of_other_layers() -> None:
    assert replay_call({}, make_call(command="rm x")).decision.outcome is PermissionOutcome.ALLOW
    assert (
        replay_call({"deny": ["Bash(rm *)"]}, make_call(command="ls; rm x")).decision.outcome is PermissionOutcome.DENY
    )
    denying = SessionRules(agent={}, layers=[(Layer.SESSION, {"deny": ["Bash(rm *)"]})])
    assert (
        replay_call({"allow": ["Bash"]}, make_call(command="rm x"), denying).decision.outcome is PermissionOutcome.DENY
    )
    assert (
        replay_call({"allow": ["Bash"]}, make_call(command="rm x"), denying, layer=Layer.SESSION).decision.outcome
        is PermissionOutcome.ALLOW
    )
    agent = SessionRules(agent={"permissions": {"deny": ["Bash(rm *)"]}})
    assert replay_call({}, make_call(command="rm x"), agent).decision.layer is Layer.AGENT
    assert (
        replay_call({"allow": ["Bash"]}, make_call(command="rm x"), agent, layer=Layer.AGENT).decision.outcome
        is PermissionOutcome.ALLOW
    )


def test_the_organisations_own_rules_are_replaced() -> None:
    asking = SessionRules(agent={}, layers=[(Layer.ORGANISATION, {"ask": ["Bash"]})])
    assert (
        replay_call({"allow": ["Bash(make *)"]}, make_call(command="make x"), asking).decision.outcome
        is PermissionOutcome.ALLOW
    )


def test_tools_of_a_server_need_approval_without_rules() -> None:
    server: JsonObject = {"type": "mcp_toolset", "mcp_server_name": "notes"}
    rules = SessionRules(agent={"tools": [server], "mcp_servers": [{"name": "notes", "url": "https://n.example"}]})
    made = make_call("note", server="notes", line="x")
    assert replay_call({}, made, rules).decision.outcome is PermissionOutcome.ASK
    assert replay_call({"allow": ["mcp__notes__note"]}, made, rules).decision.outcome is PermissionOutcome.ALLOW


def test_a_decision_that_depends_on_links_is_marked() -> None:
    rules: JsonObject = {"allow": ["Edit(src/**)"], "deny": ["Edit(secrets/**)"]}
    inside = replay_call(rules, make_call("write", file_path="src/a", content=""))
    assert (inside.decision.outcome, inside.depends_on_links) == (PermissionOutcome.ALLOW, True)
    denied = replay_call(rules, make_call("write", file_path="secrets/a", content=""))
    assert (denied.decision.outcome, denied.depends_on_links) == (PermissionOutcome.DENY, False)
    assert not replay_call({"allow": ["Bash(make *)"]}, make_call(command="make x")).depends_on_links


@pytest.mark.parametrize("root", ["/workspace", "/srv/data/workspaces/org/sesn_1"])
def test_paths_of_the_sessions_tree_are_known_as_such(root: str) -> None:
    made = make_call("write", file_path=f"{root}/src/a", content="")
    assert replay_call({"allow": ["Edit(/src/**)"]}, made).decision.outcome is PermissionOutcome.ALLOW
    command = make_call(command=f"cat '{root}/README.md'")
    assert replay_call({"deny": ["Bash(rm *)"]}, command).decision.outcome is PermissionOutcome.ALLOW
    other = make_call("write", file_path="/srv/data/workspaces/org/sesn_2/src/a", content="")
    assert replay_call({"allow": ["Edit(/src/**)"]}, other).decision.outcome is PermissionOutcome.ASK


def test_hooks_are_named_and_not_run() -> None:
    hooks: JsonObject = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check"}]}]}
    replayed = replay_call({"allow": ["Bash"], "hooks": hooks}, make_call(command="make"))
    assert (replayed.decision.outcome, replayed.hook) == (PermissionOutcome.ALLOW, "check")
    assert replay_call({"hooks": hooks}, make_call("read", file_path="x")).hook is None
    assert replay_call({"deny": ["Bash"], "hooks": hooks}, make_call(command="make")).hook is None


def test_invalid_rules_are_refused_or_deny() -> None:
    with pytest.raises(InvalidRule):
        PolicyReplay(Layer.ORGANISATION, {"allow": ["Bash("]})
    broken = SessionRules(agent={}, layers=[(Layer.SESSION, {"allow": ["Bash("]})])
    assert replay_call({}, make_call(command="ls"), broken).decision.outcome is PermissionOutcome.DENY
