"""Hooks at other events than before a call: their input, and the effects of their output and of a failure."""

import json
from pathlib import Path

import pytest
from tests.unit.gate.test_turn_gate import GateSetup

from footplate.domain.agents.agents_and_config import ResolvedConfig, Subagent
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Author
from footplate.domain.policy.hooks import HookEvent, HookFeedback
from footplate.domain.policy.permissions import Layer

BLOCK = 'echo \'{"decision": "block", "reason": "not yet"}\''
CONTEXT = 'echo \'{"hookSpecificOutput": {"additionalContext": "by the way"}}\''


@pytest.fixture
def place(tmp_path: Path) -> GateSetup:
    return GateSetup(tmp_path)


def make_hooks(event: HookEvent, *commands: str, matcher: str = "") -> JsonObject:
    hooks: JsonObject = {"matcher": matcher, "hooks": [{"type": "command", "command": each} for each in commands]}
    return {"hooks": {event.value: [hooks]}}


async def run_hooks(place: GateSetup, event: HookEvent, *commands: str, about: str = "", **more: str) -> HookFeedback:
    place.rules.layers = {Layer.ORGANISATION: make_hooks(event, *commands, **more)}
    return await place.gate().run_hooks(event, {"field": 1}, about=about)


@pytest.mark.parametrize("event", [each for each in HookEvent if each is not HookEvent.BEFORE_TOOL])
@pytest.mark.requirement("S7")
async def test_each_event_runs_its_hooks_and_is_recorded(place: GateSetup, event: HookEvent) -> None:
    assert await run_hooks(place, event, "cat > told.json", about="bash") == HookFeedback()
    payload = json.loads((place.root / "told.json").read_text())
    assert (payload["hook_event_name"], payload["field"], payload["cwd"]) == (event.value, 1, str(place.root))
    assert payload.get("tool_name") == ("Bash" if event is HookEvent.AFTER_TOOL else None)
    (entry,) = place.recorded
    assert (entry.outcome, entry.content and entry.content["hook_event"]) == ("none", event.value)


@pytest.mark.parametrize("event", [HookEvent.AFTER_TOOL, HookEvent.PROMPT, HookEvent.STOP])
async def test_no_hook_runs_after_one_that_blocks(place: GateSetup, event: HookEvent) -> None:
    assert (await run_hooks(place, event, BLOCK, "touch later")).block_reason == "not yet"
    assert not (place.root / "later").exists()
    assert (await run_hooks(place, event, "echo because >&2; exit 2")).block_reason == "because"
    assert [entry.outcome for entry in place.recorded] == ["block", "block"]


async def test_additional_context_reaches_the_model(place: GateSetup) -> None:
    assert (await run_hooks(place, HookEvent.AFTER_TOOL, CONTEXT, "echo words")).messages == ("by the way",)
    assert (await run_hooks(place, HookEvent.PROMPT, CONTEXT, "echo words")).messages == ("by the way", "words")


async def test_a_failing_hook_blocks_a_prompt(place: GateSetup) -> None:
    feedback = await run_hooks(place, HookEvent.PROMPT, "exit 7")
    assert feedback.block_reason is not None
    assert "failed with exit code 7" in feedback.block_reason
    assert [entry.outcome for entry in place.recorded] == ["block"]
    place.rules.layers = {Layer.PROJECT: {"hooks": {"SessionStart": []}}}
    feedback = await place.gate().run_hooks(HookEvent.PROMPT, {})
    assert feedback.block_reason is not None
    assert "is invalid" in feedback.block_reason
    assert await place.gate().run_hooks(HookEvent.STOP, {}) == HookFeedback()


@pytest.mark.parametrize("event", [HookEvent.AFTER_TOOL, HookEvent.STOP, HookEvent.NOTIFICATION])
async def test_a_failure_after_the_fact_is_recorded_and_blocks_nothing(place: GateSetup, event: HookEvent) -> None:
    feedback = await run_hooks(place, event, "exit 7", BLOCK)
    assert feedback.block_reason == "not yet"
    assert [entry.outcome for entry in place.recorded] == ["failed", "block"]
    assert [("failed with exit code 7" in message) for message in feedback.messages] == (
        [True] if event is HookEvent.AFTER_TOOL else []
    )


async def test_matchers_select_hooks(place: GateSetup) -> None:
    await run_hooks(place, HookEvent.AFTER_TOOL, "touch ran", matcher="Write", about="bash")
    assert not (place.root / "ran").exists()
    await run_hooks(place, HookEvent.SUBAGENT_STOP, "touch ran", matcher="scout", about="cook")
    assert not (place.root / "ran").exists()
    await run_hooks(place, HookEvent.STOP, "touch ran", matcher="whatever")
    assert (place.root / "ran").exists()


async def test_a_subagents_hooks_run_only_for_the_subagent(place: GateSetup) -> None:
    scout = Subagent(
        name="scout", description="", model="m", system="", permissions=make_hooks(HookEvent.AFTER_TOOL, BLOCK)
    )
    config = ResolvedConfig(harness="claude", model="m", system="", subagents=(scout,))
    gate = place.gate(config)
    assert (await gate.run_hooks(HookEvent.AFTER_TOOL, {}, about="Bash")).block_reason is None
    assert (await gate.run_hooks(HookEvent.AFTER_TOOL, {}, about="Bash", agent="scout")).block_reason == "not yet"


@pytest.mark.requirement("F6")
@pytest.mark.requirement("S8")
async def test_hooks_receive_the_context_of_the_session_and_the_author_of_the_turn(place: GateSetup) -> None:
    place.context = {"ticket": "F-6"}
    place.author = Author("memb_1", "Ann", "person")
    await run_hooks(place, HookEvent.STOP, "cat > told.json")
    payload = json.loads((place.root / "told.json").read_text())
    assert payload["context"] == {"ticket": "F-6"}
    assert payload["principal"] == {"id": "memb_1", "name": "Ann", "kind": "person"}
