"""Imports the permission rules of a Claude Code settings file (`.claude/settings.json`).

The imported rules mean the same as in Claude Code, or are stricter. A rule that Claude Code ignores with a warning is
skipped with a note. A rule that it would reject is rejected, with its position.
"""

import json
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json
from footplate.domain.permissions import Layer, Outcome
from footplate.gate.errors import InvalidRule
from footplate.gate.policy import ORDER, Placed
from footplate.gate.rules import parse_rule

_LARGEST: Final = 1_000_000
NOTHING_MORE: Final = "Read(./**)"
"""The rule for a file without rules. Without any rule, everything would be allowed here."""
_LISTS: Final = (*ORDER, "additionalDirectories")
_MODES: Final = ("default", "manual")
_STRICT: Final = {
    "dontAsk": "Claude Code denies calls that no rule allows, but Footplate asks a person",
    "plan": "Claude Code writes nothing without asking, but Footplate applies the allow rules",
}
"""Strict modes. Ignoring one would allow more than the file does, so the import is refused."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of importing a settings file."""

    rules: tuple[Placed, ...]
    notes: tuple[str, ...]
    """Descriptions of the skipped entries and the reasons, for people."""


def import_settings(text: str, layer: Layer) -> Imported:
    """Import the rules of a settings file into a layer. Raises `InvalidRule` and `InvalidRequest`."""
    permissions = _permissions(text)
    rules: list[Placed] = []
    notes: list[str] = []
    for outcome in ORDER:
        for index, item in enumerate(_list(permissions, outcome)):
            where = f"permissions.{outcome}[{index}]"
            if not isinstance(item, str):
                raise InvalidRequest(f"{where} is not a string.", field=where, help_text="Write each rule as a string.")
            if (note := _ignored(item, outcome)) is not None:
                notes.append(f"{where}: {item} {note}")
                continue
            try:
                rules.append(Placed(layer, parse_rule(item, outcome)))
            except InvalidRule as error:
                raise InvalidRule(
                    error.text, error.position, error.problem, help_text=error.help_text, where=where
                ) from None
    mode = permissions.get("defaultMode")
    if isinstance(mode, str) and mode in _STRICT:
        raise InvalidRequest(
            f"The file sets permissions.defaultMode to {mode}, which Footplate does not support: {_STRICT[mode]}.",
            field="permissions.defaultMode",
            help_text="Remove the mode if this is acceptable. Otherwise add deny rules for calls that must not run.",
        )
    if mode is not None and mode not in _MODES:
        notes.append(f"permissions.defaultMode: {mode} is not imported: calls that no rule allows require approval")
    if permissions.get("additionalDirectories"):
        notes.append("permissions.additionalDirectories: not imported: directories are configured for each session")
    if not rules:
        rules.append(Placed(layer, parse_rule(NOTHING_MORE, Outcome.ALLOW)))
        notes.append(
            f"permissions: the file has no rules, so {NOTHING_MORE} was added: all other calls require approval"
        )
    return Imported(tuple(rules), tuple(notes))


def _permissions(text: str) -> dict[str, Json]:
    if len(text) > _LARGEST:
        raise InvalidRequest("The settings file is too large.", help_text=f"The limit is {_LARGEST} characters.")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"The settings file is not valid JSON: {error}.", help_text="Fix the file and import it again."
        ) from None
    permissions = content.get("permissions", {}) if isinstance(content, dict) else None
    if not isinstance(permissions, dict):
        raise InvalidRequest("`permissions` is not an object.", field="permissions", help_text="Fix the file.")
    _refuse_misspelt(content, permissions)
    return permissions


def _refuse_misspelt(content: dict[str, Json], permissions: dict[str, Json]) -> None:
    """Reject rules under a misspelt or misplaced field, because they would be ignored silently."""
    for name, value in content.items():
        if name in ORDER and isinstance(value, list):
            raise InvalidRequest(
                f"`{name}` is outside of `permissions`, so it would be ignored.",
                field=name,
                help_text=f'Write {{"permissions": {{"{name}": […]}}}}.',
            )
        if name != "permissions" and get_close_matches(name, ["permissions"], cutoff=0.85):
            raise InvalidRequest(f"`{name}` is not a known field.", field=name, help_text="Did you mean `permissions`?")
    for name, value in permissions.items():
        if isinstance(value, list) and name not in _LISTS:
            raise InvalidRequest(
                f"permissions.{name} is not a known list, so its rules would be ignored.",
                field=f"permissions.{name}",
                help_text="Rules belong in `deny`, `ask` or `allow`. Correct the name or remove the list.",
            )


def _list(permissions: dict[str, Json], outcome: Outcome) -> list[Json]:
    found = permissions.get(outcome, [])
    if not isinstance(found, list):
        field = f"permissions.{outcome}"
        raise InvalidRequest(f"{field} is not a list.", field=field, help_text="Write a list of rules.")
    return found


def _ignored(text: str, outcome: Outcome) -> str | None:
    """Return why a rule is skipped: Claude Code ignores it too, or skipping it makes the imported rules stricter. None
    if the rule is to be imported.
    """
    tool, _, inside = text.partition("(")
    if outcome is Outcome.ALLOW:
        if inside and tool in {"Write", "NotebookEdit", "MultiEdit", "Glob", "Grep"} and inside != "*)":
            return "has no effect: paths are allowed with Edit and Read"
        if "*" in tool and not (tool.startswith("mcp__") and "__" in tool[5 : tool.index("*")]):
            return "has no effect: an allow rule needs the full name of the tool"
        if inside and tool in {"Skill", "PowerShell", "Cd", "WebSearch", "SlashCommand"}:
            return "has no effect here: rules of this kind are not supported"
    elif inside.startswith("!"):
        return "is an exception, which is not supported: the excepted paths stay forbidden"
    if inside and tool.startswith("mcp__"):
        return "is ignored, as in Claude Code: rules for MCP tools take no parentheses"
    return None
