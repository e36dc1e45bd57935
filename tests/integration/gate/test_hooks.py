"""Hooks before a call: real programs, called as Claude Code calls them. A hook without a decision denies the call."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.gate.test_turn_gate import GateSetup

from footplate.domain.json import JsonObject
from footplate.domain.policy.permissions import Decision, Layer, PermissionOutcome
from footplate.gate.hooks.hook_config import compile_matcher


@pytest.fixture
def place(tmp_path: Path) -> GateSetup:
    return GateSetup(tmp_path)


def make_hooks(command: str, matcher: str = "", seconds: float = 10) -> JsonObject:
    hook: JsonObject = {"type": "command", "command": command, "timeout": seconds}
    return {"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [hook]}]}}


def print_decision(decision: str, reason: str = "") -> str:
    output = {"hookSpecificOutput": {"permissionDecision": decision, "permissionDecisionReason": reason}}
    return f"echo '{json.dumps(output)}'"


async def decide_with_hook(place: GateSetup, command: str, **more: Any) -> Decision:
    place.rules.layers = {Layer.ORGANISATION: make_hooks(command, **more)}
    return await place.decide("bash", command="make")


async def test_a_hook_gets_the_call_in_claude_codes_fields(place: GateSetup) -> None:
    decision = await decide_with_hook(place, "cat > told.json; echo $CLAUDE_PROJECT_DIR > where", matcher="Bash|Write")
    assert decision.outcome is PermissionOutcome.ALLOW
    payload = json.loads((place.root / "told.json").read_text())
    assert (payload["hook_event_name"], payload["tool_name"], payload["tool_input"]) == (
        "PreToolUse",
        "Bash",
        {"command": "make"},
    )
    assert payload["cwd"] == str(place.root)
    assert (place.root / "where").read_text().strip() == str(place.root)
    (place.root / "told.json").unlink()
    await place.decide("read", file_path="x")
    assert not (place.root / "told.json").exists()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (print_decision("deny", "not today"), "not today"),
        ("echo 'it is wrong' >&2; exit 2", "it is wrong"),
        ("exit 1", "failed with exit code 1"),
        ("no-such-program", "failed with exit code 127"),
        ("kill -9 $$", ""),
        ("sleep 60", "did not respond within"),
        ("yes | head -c 20000000", "too large"),
        ("echo '{not json'", "not valid"),
        (f"echo checking; {print_decision('deny', 'not today')}", "text before its JSON output"),
        (print_decision("perhaps"), "'perhaps'"),
        ('echo \'{"continue": false, "stopReason": "enough"}\'', "enough"),
        ('echo \'{"decision": "block", "reason": "old words"}\'', "old words"),
        ("head -c 50 /dev/urandom | tr -d a; printf '\\377'", "not valid"),
    ],
)
async def test_a_hook_without_a_valid_decision_denies_the_call(place: GateSetup, command: str, reason: str) -> None:
    decision = await decide_with_hook(place, command, seconds=1 if command.startswith("sleep") else 20)
    assert decision.outcome is PermissionOutcome.DENY
    assert reason in decision.reason
    assert "a hook of the organisation" in decision.refusal
    assert decision.event_fields is not None
    assert decision.event_fields["hook"]


async def test_a_hooks_approval_replaces_the_default_but_no_rule(place: GateSetup) -> None:
    approving_hooks = make_hooks(print_decision("allow"))
    place.rules.layers = {Layer.PROJECT: {**approving_hooks, "ask": ["Bash(rm *)"], "deny": ["Bash(curl *)"]}}
    assert (await place.decide("bash", command="make")).outcome is PermissionOutcome.ALLOW
    assert (await place.decide("bash", command="rm x")).outcome is PermissionOutcome.ASK
    assert (await place.decide("bash", command="curl x")).outcome is PermissionOutcome.DENY
    place.rules.layers = {Layer.PROJECT: {**make_hooks(print_decision("ask", "who are you?")), "allow": ["Bash"]}}
    decision = await place.decide("bash", command="make")
    assert (decision.outcome, decision.reason) == (PermissionOutcome.ASK, "who are you?")


async def test_the_strictest_of_several_hooks_counts_and_a_denial_is_final(place: GateSetup) -> None:
    def group(*commands: str) -> JsonObject:
        return {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": each} for each in commands]}]}}

    place.rules.layers = {Layer.SESSION: group("touch later"), Layer.ORGANISATION: group("exit 2")}
    assert (await place.decide("bash", command="make")).outcome is PermissionOutcome.DENY
    assert not (place.root / "later").exists()
    place.rules.layers = {Layer.ORGANISATION: group(print_decision("ask"), print_decision("allow"), "true")}
    assert (await place.decide("bash", command="make")).outcome is PermissionOutcome.ASK


@pytest.mark.parametrize(
    "hooks",
    [
        {"SessionStart": []},
        {"PreToolUse": [{"matcher": "("}]},
        {"PreToolUse": [{"matcher": "(", "hooks": [{"type": "command", "command": "true"}]}]},
        {"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]},
        [],
    ],
)
async def test_invalid_hooks_deny_every_call(place: GateSetup, hooks: Any) -> None:
    place.rules.layers = {Layer.PROJECT: {"hooks": hooks}}
    decision = await place.decide("bash", command="ls")
    assert (decision.outcome, decision.hook) == (PermissionOutcome.DENY, None)


@pytest.mark.parametrize(
    ("matcher", "meant", "others"),
    [
        ("", ("Bash", "mcp__notes__note"), ()),
        ("*", ("Bash", "mcp__notes__note"), ()),
        ("Bash", ("Bash",), ("BashOutput", "bash")),
        ("Edit|Write", ("Edit", "Write"), ("NotebookEdit",)),
        ("Edit, Write", ("Edit", "Write"), ("NotebookEdit",)),
        ("^Wr", ("Write",), ("Edit",)),
        ("Edit.*", ("Edit", "NotebookEdit", "MultiEdit"), ("Write",)),
        ("mcp__.*", ("mcp__notes__note",), ("Bash",)),
        ("mcp__notes", (), ("mcp__notes__note",)),
        ("otes__n.", ("mcp__notes__note",), ("Bash",)),
        ("Rea.$", ("Read",), ("ReadMcp",)),
    ],
)
def test_matchers_match_like_claude_codes(matcher: str, meant: tuple[str, ...], others: tuple[str, ...]) -> None:
    compiled = compile_matcher(matcher)
    assert [name for name in (*meant, *others) if compiled.search(name)] == [*meant]


async def test_an_approval_of_another_input_denies_the_call(place: GateSetup) -> None:
    changed_input: JsonObject = {"updatedInput": {"command": "ls"}}
    for more in ({}, {"permissionDecision": "allow"}, {"permissionDecision": "ask"}):
        decision = await decide_with_hook(
            place, f"echo '{json.dumps({'hookSpecificOutput': {**changed_input, **more}})}'"
        )
        assert (decision.outcome, "change the input" in decision.reason) == (PermissionOutcome.DENY, True)
