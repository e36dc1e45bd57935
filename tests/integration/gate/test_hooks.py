"""Hooks before a call: real programs, called as Claude Code calls them. A hook without a decision denies the call."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.gate.test_door import Place

from footplate.domain.json import JsonObject
from footplate.domain.permissions import Decision, Layer, Outcome
from footplate.gate.hooks import matcher_of


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def hooked(command: str, matcher: str = "", seconds: float = 10) -> JsonObject:
    hook: JsonObject = {"type": "command", "command": command, "timeout": seconds}
    return {"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [hook]}]}}


def saying(decision: str, reason: str = "") -> str:
    answer = {"hookSpecificOutput": {"permissionDecision": decision, "permissionDecisionReason": reason}}
    return f"echo '{json.dumps(answer)}'"


async def asked(place: Place, command: str, **more: Any) -> Decision:
    place.rules.layers = {Layer.ORGANISATION: hooked(command, **more)}
    return await place.ask("bash", command="make")


async def test_a_hook_is_told_of_the_call_in_claude_codes_words(place: Place) -> None:
    said = await asked(place, "cat > told.json; echo $CLAUDE_PROJECT_DIR > where", matcher="Bash|Write")
    assert said.outcome is Outcome.ALLOW
    told = json.loads((place.root / "told.json").read_text())
    assert (told["hook_event_name"], told["tool_name"], told["tool_input"]) == (
        "PreToolUse",
        "Bash",
        {"command": "make"},
    )
    assert told["cwd"] == str(place.root)
    assert (place.root / "where").read_text().strip() == str(place.root)
    (place.root / "told.json").unlink()
    await place.ask("read", file_path="x")
    assert not (place.root / "told.json").exists()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (saying("deny", "not today"), "not today"),
        ("echo 'it is wrong' >&2; exit 2", "it is wrong"),
        ("exit 1", "failed with exit code 1"),
        ("no-such-program", "failed with exit code 127"),
        ("kill -9 $$", ""),
        ("sleep 60", "did not respond within"),
        ("yes | head -c 20000000", "too large"),
        ("echo '{not json'", "not valid"),
        (f"echo checking; {saying('deny', 'not today')}", "other text around its JSON output"),
        (saying("perhaps"), "'perhaps'"),
        ('echo \'{"continue": false, "stopReason": "enough"}\'', "enough"),
        ('echo \'{"decision": "block", "reason": "old words"}\'', "old words"),
        ("head -c 50 /dev/urandom | tr -d a; printf '\\377'", "not valid"),
    ],
)
async def test_who_comes_to_no_word_has_said_no(place: Place, command: str, reason: str) -> None:
    said = await asked(place, command, seconds=1 if command.startswith("sleep") else 20)
    assert said.outcome is Outcome.DENY
    assert reason in said.reason
    assert "a hook of the organisation" in said.refusal
    assert said.told is not None
    assert said.told["hook"]


async def test_a_hooks_yes_satisfies_the_default_and_no_rule(place: Place) -> None:
    yes = hooked(saying("allow"))
    place.rules.layers = {Layer.PROJECT: {**yes, "ask": ["Bash(rm *)"], "deny": ["Bash(curl *)"]}}
    assert (await place.ask("bash", command="make")).outcome is Outcome.ALLOW
    assert (await place.ask("bash", command="rm x")).outcome is Outcome.ASK
    assert (await place.ask("bash", command="curl x")).outcome is Outcome.DENY
    place.rules.layers = {Layer.PROJECT: {**hooked(saying("ask", "who are you?")), "allow": ["Bash"]}}
    said = await place.ask("bash", command="make")
    assert (said.outcome, said.reason) == (Outcome.ASK, "who are you?")


async def test_of_several_the_strictest_counts_and_a_no_is_the_last(place: Place) -> None:
    def group(*commands: str) -> JsonObject:
        return {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": each} for each in commands]}]}}

    place.rules.layers = {Layer.SESSION: group("touch later"), Layer.ORGANISATION: group("exit 2")}
    assert (await place.ask("bash", command="make")).outcome is Outcome.DENY
    assert not (place.root / "later").exists()
    place.rules.layers = {Layer.ORGANISATION: group(saying("ask"), saying("allow"), "true")}
    assert (await place.ask("bash", command="make")).outcome is Outcome.ASK


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
async def test_hooks_that_cannot_be_read_close_the_gate(place: Place, hooks: Any) -> None:
    place.rules.layers = {Layer.PROJECT: {"hooks": hooks}}
    said = await place.ask("bash", command="ls")
    assert (said.outcome, said.hook) == (Outcome.DENY, None)


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
def test_a_matcher_means_what_it_means_to_claude_code(
    matcher: str, meant: tuple[str, ...], others: tuple[str, ...]
) -> None:
    compiled = matcher_of(matcher)
    assert [name for name in (*meant, *others) if compiled.search(name)] == [*meant]


async def test_a_yes_to_another_input_is_a_no(place: Place) -> None:
    own: JsonObject = {"updatedInput": {"command": "ls"}}
    for more in ({}, {"permissionDecision": "allow"}, {"permissionDecision": "ask"}):
        said = await asked(place, f"echo '{json.dumps({'hookSpecificOutput': {**own, **more}})}'")
        assert (said.outcome, "another input" in said.reason) == (Outcome.DENY, True)
