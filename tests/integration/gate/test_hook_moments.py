"""Hooks at other events than before a call: their input, and the effects of their output and of a failure."""

import json
from pathlib import Path

import pytest
from tests.unit.gate.test_door import Place

from footplate.domain.agents import ResolvedConfig, Subagent
from footplate.domain.hooks import Heard, HookEvent
from footplate.domain.json import JsonObject
from footplate.domain.permissions import Layer

BLOCK = 'echo \'{"decision": "block", "reason": "not yet"}\''
CONTEXT = 'echo \'{"hookSpecificOutput": {"additionalContext": "by the way"}}\''


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def hooked(event: HookEvent, *commands: str, matcher: str = "") -> JsonObject:
    hooks: JsonObject = {"matcher": matcher, "hooks": [{"type": "command", "command": each} for each in commands]}
    return {"hooks": {event.value: [hooks]}}


async def tell(place: Place, event: HookEvent, *commands: str, about: str = "", **more: str) -> Heard:
    place.rules.layers = {Layer.ORGANISATION: hooked(event, *commands, **more)}
    return await place.gate().run_hooks(event, {"field": 1}, about=about)


@pytest.mark.parametrize("event", [each for each in HookEvent if each is not HookEvent.BEFORE_TOOL])
@pytest.mark.requirement("S7")
async def test_each_moment_is_told_and_recorded(place: Place, event: HookEvent) -> None:
    assert await tell(place, event, "cat > told.json", about="bash") == Heard()
    told = json.loads((place.root / "told.json").read_text())
    assert (told["hook_event_name"], told["field"], told["cwd"]) == (event.value, 1, str(place.root))
    assert told.get("tool_name") == ("Bash" if event is HookEvent.AFTER_TOOL else None)
    (entry,) = place.recorded
    assert (entry.outcome, entry.content and entry.content["hook_event"]) == ("none", event.value)


@pytest.mark.parametrize("event", [HookEvent.AFTER_TOOL, HookEvent.PROMPT, HookEvent.STOP])
async def test_who_blocks_is_the_last(place: Place, event: HookEvent) -> None:
    assert (await tell(place, event, BLOCK, "touch later")).block == "not yet"
    assert not (place.root / "later").exists()
    assert (await tell(place, event, "echo because >&2; exit 2")).block == "because"
    assert [entry.outcome for entry in place.recorded] == ["block", "block"]


async def test_what_the_model_is_told_besides(place: Place) -> None:
    assert (await tell(place, HookEvent.AFTER_TOOL, CONTEXT, "echo words")).told == ("by the way",)
    assert (await tell(place, HookEvent.PROMPT, CONTEXT, "echo words")).told == ("by the way", "words")


async def test_a_prompt_does_not_pass_a_hook_that_fails(place: Place) -> None:
    heard = await tell(place, HookEvent.PROMPT, "exit 7")
    assert heard.block is not None
    assert "failed with exit code 7" in heard.block
    assert [entry.outcome for entry in place.recorded] == ["block"]
    place.rules.layers = {Layer.PROJECT: {"hooks": {"SessionStart": []}}}
    heard = await place.gate().run_hooks(HookEvent.PROMPT, {})
    assert heard.block is not None
    assert "is invalid" in heard.block
    assert await place.gate().run_hooks(HookEvent.STOP, {}) == Heard()


@pytest.mark.parametrize("event", [HookEvent.AFTER_TOOL, HookEvent.STOP, HookEvent.NOTIFICATION])
async def test_afterwards_a_failure_is_recorded_and_stops_nothing(place: Place, event: HookEvent) -> None:
    heard = await tell(place, event, "exit 7", BLOCK)
    assert heard.block == "not yet"
    assert [entry.outcome for entry in place.recorded] == ["failed", "block"]
    assert [("failed with exit code 7" in said) for said in heard.told] == (
        [True] if event is HookEvent.AFTER_TOOL else []
    )


async def test_matchers(place: Place) -> None:
    await tell(place, HookEvent.AFTER_TOOL, "touch ran", matcher="Write", about="bash")
    assert not (place.root / "ran").exists()
    await tell(place, HookEvent.SUBAGENT_STOP, "touch ran", matcher="scout", about="cook")
    assert not (place.root / "ran").exists()
    await tell(place, HookEvent.STOP, "touch ran", matcher="whatever")
    assert (place.root / "ran").exists()


async def test_a_subagents_own_hooks_are_its_own(place: Place) -> None:
    scout = Subagent(
        name="scout", description="", model="m", system="", permissions=hooked(HookEvent.AFTER_TOOL, BLOCK)
    )
    config = ResolvedConfig(harness="claude", model="m", system="", subagents=(scout,))
    gate = place.gate(config)
    assert (await gate.run_hooks(HookEvent.AFTER_TOOL, {}, about="Bash")).block is None
    assert (await gate.run_hooks(HookEvent.AFTER_TOOL, {}, about="Bash", agent="scout")).block == "not yet"


@pytest.mark.requirement("F6")
async def test_hooks_are_told_of_the_context_that_a_session_was_given(place: Place) -> None:
    place.context = {"ticket": "F-6"}
    await tell(place, HookEvent.STOP, "cat > told.json")
    assert json.loads((place.root / "told.json").read_text())["context"] == {"ticket": "F-6"}
