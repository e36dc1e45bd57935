"""Imports the permission rules of a Claude Code settings file (`.claude/settings.json`).

The imported rules mean the same as in Claude Code, or are stricter. A rule that Claude Code ignores with a warning is
skipped with a note. A rule that Claude Code would reject is rejected here too, with its position.
"""

import json
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json
from footplate.domain.policy.permissions import Layer, PermissionOutcome
from footplate.gate.errors import InvalidRule
from footplate.gate.rules.layered_policy import OUTCOME_ORDER, LayeredRule
from footplate.gate.rules.rule_parser import parse_rule

_MAX_CHARACTERS: Final = 1_000_000
DEFAULT_RULE: Final = "Read(./**)"
"""The rule for a file without rules. Without any rule, everything would be allowed here."""
_LIST_FIELDS: Final = (*OUTCOME_ORDER, "additionalDirectories")
_DEFAULT_MODES: Final = ("default", "manual")
_STRICT_MODES: Final = {
    "dontAsk": "in this mode, Claude Code denies calls that no rule allows, but Footplate would ask for approval",
    "plan": "in this mode, Claude Code changes no files, but Footplate would apply the allow rules",
}
"""Strict modes. Ignoring one would allow more than the file does, so the import is refused."""


@dataclass(frozen=True, slots=True)
class ImportedRules:
    """The result of importing a settings file."""

    rules: tuple[LayeredRule, ...]
    notes: tuple[str, ...]
    """Descriptions of the skipped entries and the reasons, for people."""


def import_settings(text: str, layer: Layer) -> ImportedRules:
    """Import the rules of a settings file into a layer. Raises `InvalidRule` and `InvalidRequest`."""
    permissions = _parse_permissions(text)
    rules: list[LayeredRule] = []
    notes: list[str] = []
    for outcome in OUTCOME_ORDER:
        for index, item in enumerate(_rule_list(permissions, outcome)):
            where = f"permissions.{outcome}[{index}]"
            if not isinstance(item, str):
                raise InvalidRequest(f"{where} is not a string.", field=where, help_text="Write each rule as a string.")
            if (note := _find_skip_reason(item, outcome)) is not None:
                notes.append(f"{where}: {item} {note}")
                continue
            try:
                rules.append(LayeredRule(layer, parse_rule(item, outcome)))
            except InvalidRule as error:
                raise InvalidRule(
                    error.text, error.position, error.problem, help_text=error.help_text, where=where
                ) from None
    mode = permissions.get("defaultMode")
    if isinstance(mode, str) and mode in _STRICT_MODES:
        raise InvalidRequest(
            f"The file sets permissions.defaultMode to {mode}, which Footplate does not support: "
            f"{_STRICT_MODES[mode]}.",
            field="permissions.defaultMode",
            help_text="Remove defaultMode, and add deny rules for calls that must never run.",
        )
    if mode is not None and mode not in _DEFAULT_MODES:
        notes.append(f"permissions.defaultMode: {mode} is not imported: calls that no rule allows require approval")
    if permissions.get("additionalDirectories"):
        notes.append("permissions.additionalDirectories: not imported, because each session has its own directories")
    if not rules:
        rules.append(LayeredRule(layer, parse_rule(DEFAULT_RULE, PermissionOutcome.ALLOW)))
        notes.append(
            f"permissions: the file has no rules, so {DEFAULT_RULE} was added: all other calls require approval"
        )
    return ImportedRules(tuple(rules), tuple(notes))


def _parse_permissions(text: str) -> dict[str, Json]:
    if len(text) > _MAX_CHARACTERS:
        raise InvalidRequest("The settings file is too large.", help_text=f"The limit is {_MAX_CHARACTERS} characters.")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"The settings file is not valid JSON: {error}.", help_text="Fix the file and import it again."
        ) from None
    permissions = content.get("permissions", {}) if isinstance(content, dict) else None
    if not isinstance(permissions, dict):
        raise InvalidRequest("`permissions` is not an object.", field="permissions", help_text="Fix the file.")
    _reject_misspelt_fields(content, permissions)
    return permissions


def _reject_misspelt_fields(content: dict[str, Json], permissions: dict[str, Json]) -> None:
    """Reject rules under a misspelt or misplaced field, because they would be ignored silently."""
    for name, value in content.items():
        if name in OUTCOME_ORDER and isinstance(value, list):
            raise InvalidRequest(
                f"`{name}` is outside `permissions`, so it would be ignored.",
                field=name,
                help_text=f'Write {{"permissions": {{"{name}": […]}}}}.',
            )
        if name != "permissions" and get_close_matches(name, ["permissions"], cutoff=0.85):
            raise InvalidRequest(f"`{name}` is not a known field.", field=name, help_text="Did you mean `permissions`?")
    for name, value in permissions.items():
        if isinstance(value, list) and name not in _LIST_FIELDS:
            raise InvalidRequest(
                f"permissions.{name} is not a known list, so its rules would be ignored.",
                field=f"permissions.{name}",
                help_text="Rules belong in `deny`, `ask` or `allow`. Correct the name or remove the list.",
            )


def _rule_list(permissions: dict[str, Json], outcome: PermissionOutcome) -> list[Json]:
    found = permissions.get(outcome, [])
    if not isinstance(found, list):
        field = f"permissions.{outcome}"
        raise InvalidRequest(f"{field} is not a list.", field=field, help_text="Write a list of rules.")
    return found


def _find_skip_reason(text: str, outcome: PermissionOutcome) -> str | None:
    """Return why a rule is skipped: Claude Code ignores it too, or skipping it makes the imported rules stricter. None
    if the rule is to be imported.
    """
    tool, _, inside = text.partition("(")
    if outcome is PermissionOutcome.ALLOW:
        if inside and tool in {"Write", "NotebookEdit", "MultiEdit", "Glob", "Grep"} and inside != "*)":
            return "has no effect: use Edit and Read rules to allow paths"
        if "*" in tool and not (tool.startswith("mcp__") and "__" in tool[5 : tool.index("*")]):
            return "has no effect: an allow rule needs the full name of the tool"
        if inside and tool in {"Skill", "PowerShell", "Cd", "WebSearch", "SlashCommand"}:
            return "has no effect: Footplate does not support rules of this kind"
    elif inside.startswith("!"):
        return "is not imported: exceptions with ! are not supported, so these paths stay forbidden"
    if inside and tool.startswith("mcp__"):
        return "is ignored, as in Claude Code: rules for MCP tools cannot have parentheses"
    return None
