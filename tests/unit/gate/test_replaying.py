"""A replay decides stored calls with other rules as the gate would, and marks decisions that are uncertain."""

from datetime import UTC, datetime
from typing import Any

import pytest

from footplate.domain.json import JsonObject
from footplate.domain.permissions import Layer, PermissionOutcome
from footplate.domain.replays import SessionRules, StoredCall
from footplate.gate.errors import InvalidRule
from footplate.gate.replaying import PolicyReplay, ReplayResult

TOOLSET: JsonObject = {"type": "agent_toolset_20260401"}
PLAIN = SessionRules(agent={"tools": [TOOLSET]})


def call(name: str = "bash", *, server: str | None = None, **given: Any) -> StoredCall:
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


def judge(
    permissions: JsonObject, made: StoredCall, rules: SessionRules = PLAIN, *, layer: Layer = Layer.ORGANISATION
) -> ReplayResult:
    return PolicyReplay(layer, permissions).evaluate_call("org", made, rules)


def test_proposed_rules_decide_with_those_of_other_layers() -> None:
    assert judge({}, call(command="rm x")).decision.outcome is PermissionOutcome.ALLOW
    assert judge({"deny": ["Bash(rm *)"]}, call(command="ls; rm x")).decision.outcome is PermissionOutcome.DENY
    denying = SessionRules(agent={}, layers=[(Layer.SESSION, {"deny": ["Bash(rm *)"]})])
    assert judge({"allow": ["Bash"]}, call(command="rm x"), denying).decision.outcome is PermissionOutcome.DENY
    assert (
        judge({"allow": ["Bash"]}, call(command="rm x"), denying, layer=Layer.SESSION).decision.outcome is Outcome.ALLOW
    )
    agent = SessionRules(agent={"permissions": {"deny": ["Bash(rm *)"]}})
    assert judge({}, call(command="rm x"), agent).decision.layer is Layer.AGENT
    assert judge({"allow": ["Bash"]}, call(command="rm x"), agent, layer=Layer.AGENT).decision.outcome is PermissionOutcome.ALLOW


def test_the_organisations_own_rules_are_replaced() -> None:
    asking = SessionRules(agent={}, layers=[(Layer.ORGANISATION, {"ask": ["Bash"]})])
    assert judge({"allow": ["Bash(make *)"]}, call(command="make x"), asking).decision.outcome is PermissionOutcome.ALLOW


def test_a_servers_tools_are_asked_about_without_rules() -> None:
    server: JsonObject = {"type": "mcp_toolset", "mcp_server_name": "notes"}
    rules = SessionRules(agent={"tools": [server], "mcp_servers": [{"name": "notes", "url": "https://n.example"}]})
    made = call("note", server="notes", line="x")
    assert judge({}, made, rules).decision.outcome is PermissionOutcome.ASK
    assert judge({"allow": ["mcp__notes__note"]}, made, rules).decision.outcome is PermissionOutcome.ALLOW


def test_what_depends_on_links_is_told() -> None:
    rules: JsonObject = {"allow": ["Edit(src/**)"], "deny": ["Edit(secrets/**)"]}
    inside = judge(rules, call("write", file_path="src/a", content=""))
    assert (inside.decision.outcome, inside.depends_on_links) == (PermissionOutcome.ALLOW, True)
    denied = judge(rules, call("write", file_path="secrets/a", content=""))
    assert (denied.decision.outcome, denied.depends_on_links) == (PermissionOutcome.DENY, False)
    assert not judge({"allow": ["Bash(make *)"]}, call(command="make x")).depends_on_links


@pytest.mark.parametrize("root", ["/workspace", "/srv/data/workspaces/org/sesn_1"])
def test_paths_of_the_sessions_tree_are_known_as_such(root: str) -> None:
    made = call("write", file_path=f"{root}/src/a", content="")
    assert judge({"allow": ["Edit(/src/**)"]}, made).decision.outcome is PermissionOutcome.ALLOW
    command = call(command=f"cat '{root}/README.md'")
    assert judge({"deny": ["Bash(rm *)"]}, command).decision.outcome is PermissionOutcome.ALLOW
    other = call("write", file_path="/srv/data/workspaces/org/sesn_2/src/a", content="")
    assert judge({"allow": ["Edit(/src/**)"]}, other).decision.outcome is PermissionOutcome.ASK


def test_hooks_are_named_and_not_asked() -> None:
    hooks: JsonObject = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check"}]}]}
    said = judge({"allow": ["Bash"], "hooks": hooks}, call(command="make"))
    assert (said.decision.outcome, said.hook) == (PermissionOutcome.ALLOW, "check")
    assert judge({"hooks": hooks}, call("read", file_path="x")).hook is None
    assert judge({"deny": ["Bash"], "hooks": hooks}, call(command="make")).hook is None


def test_rules_that_cannot_be_read() -> None:
    with pytest.raises(InvalidRule):
        PolicyReplay(Layer.ORGANISATION, {"allow": ["Bash("]})
    broken = SessionRules(agent={}, layers=[(Layer.SESSION, {"allow": ["Bash("]})])
    assert judge({}, call(command="ls"), broken).decision.outcome is PermissionOutcome.DENY
