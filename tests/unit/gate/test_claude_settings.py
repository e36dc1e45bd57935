"""Import of rules from `.claude/settings.json`: imported rules, skipped rules with a note, and refused files."""

import json
from typing import Any

import pytest

from footplate.domain.errors import InvalidRequest
from footplate.domain.policy.permissions import Layer, PermissionOutcome
from footplate.gate.errors import InvalidRule
from footplate.gate.rules.claude_settings import DEFAULT_RULE, ImportedRules, import_settings


def _import(permissions: object) -> ImportedRules:
    return import_settings(json.dumps({"permissions": permissions, "hooks": {}}), Layer.PROJECT)


def test_rules_keep_their_texts_and_get_a_layer() -> None:
    found = _import({"allow": ["Bash(ls *)"], "ask": ["Bash(git push *)"], "deny": ["Read(.env)"]})
    assert {(each.rule.outcome.value, each.rule.text, each.layer) for each in found.rules} == {
        ("allow", "Bash(ls *)", Layer.PROJECT),
        ("ask", "Bash(git push *)", Layer.PROJECT),
        ("deny", "Read(.env)", Layer.PROJECT),
    }
    assert found.notes == ()


@pytest.mark.parametrize(
    "permissions",
    [
        {"allow": ["Write(src/**)"]},
        {"allow": ["*"]},
        {"allow": ["mcp__*"]},
        {"allow": ["mcp__github__get(x)"]},
        {"deny": ["Read(!sample.env)"]},
        {"defaultMode": "bypassPermissions"},
        {"additionalDirectories": ["../other"]},
    ],
)
def test_unsupported_rules_are_skipped_with_a_note(permissions: object) -> None:
    found = _import(permissions)
    assert [placed.rule.text for placed in found.rules] == [DEFAULT_RULE]
    assert len(found.notes) == 2
    assert found.notes[0].startswith("permissions.")


def test_an_invalid_rule_is_refused_with_its_position() -> None:
    with pytest.raises(InvalidRule) as caught:
        _import({"allow": ["Bash(ls *)", "Bash(git"]})
    assert caught.value.message.startswith("permissions.allow[1]: ")
    assert caught.value.position == 9


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"permissions": []}', '{"permissions": {"allow": "Bash"}}', "[" * 100_000]
)
def test_an_invalid_file_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        import_settings(text, Layer.PROJECT)


def test_a_rule_that_is_not_a_string_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"permissions\.deny\[0\]"):
        _import({"deny": [1]})


def test_without_rules_there_is_one_that_makes_asking_the_default() -> None:
    found = import_settings("{}", Layer.PROJECT)
    assert [(placed.rule.outcome, placed.rule.text) for placed in found.rules] == [
        (PermissionOutcome.ALLOW, DEFAULT_RULE)
    ]
    assert "the file has no rules" in found.notes[0]


@pytest.mark.parametrize("mode", ["dontAsk", "plan"])
def test_a_mode_that_allows_less_is_refused(mode: str) -> None:
    with pytest.raises(InvalidRequest, match=mode):
        _import({"defaultMode": mode})


@pytest.mark.parametrize(
    ("content", "field", "help_text"),
    [
        (
            {"permissions": {"denny": ["Bash(rm *)"], "allow": ["Bash"]}},
            "permissions.denny",
            "`deny`, `ask` or `allow`",
        ),
        ({"permisions": {"deny": ["Bash"]}}, "permisions", "Did you mean `permissions`?"),
        ({"permission": {"deny": ["Bash"]}}, "permission", "Did you mean `permissions`?"),
        ({"deny": ["Bash(rm *)"], "permissions": {"allow": ["Bash"]}}, "deny", '{"permissions": {"deny": […]}}'),
    ],
)
def test_rules_under_an_unknown_key_are_refused(content: dict[str, Any], field: str, help_text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        import_settings(json.dumps(content), Layer.ORGANISATION)
    assert caught.value.fields["field"] == field
    assert help_text in str(caught.value.help_text)


def test_other_settings_are_ignored() -> None:
    settings = {"env": {"A": "1"}, "permissions": {"allow": ["Bash"], "disableBypassPermissionsMode": "disable"}}
    assert not import_settings(json.dumps(settings), Layer.ORGANISATION).notes
