"""The settings files of `just prove gate-8`, which compares Claude Code with the gate, cover many shapes."""

import json

from bench.claims.gate.existing_claude_settings import STRICTER_REASONS
from bench.support.claude_settings.settings_cases import LOCAL, SETTINGS, load_cases


def test_there_are_many_shapes_of_permissions_hooks_and_layers() -> None:
    found = load_cases()
    settings = [shape.settings(SETTINGS) or {} for shape in found]
    assert len([each for each in settings if "permissions" in each]) >= 6
    assert len([each for each in settings if "PreToolUse" in each.get("hooks", {})]) >= 3
    assert any(shape.settings(LOCAL) for shape in found)


def test_every_call_has_a_distinct_observable_effect() -> None:
    for shape in load_cases():
        inputs = [json.dumps(call.input, sort_keys=True) for call in shape.calls]
        assert len({*inputs}) == len(inputs), shape.name
        assert all(bool(call.shows) != bool(call.leaves) for call in shape.calls), shape.name


def test_every_reason_for_a_stricter_decision_is_documented_and_used() -> None:
    assert {call.stricter for shape in load_cases() for call in shape.calls} - {""} == set(STRICTER_REASONS)
