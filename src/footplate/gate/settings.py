"""Rules from a `.claude/settings.json`, so that a team's own files keep their meaning here. Ours may be stricter.

What Claude Code ignores with a warning is left out with a note; what it would refuse is refused, with the place.
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
"""What a file without rules allows: without any rule at all everything would be allowed here."""
_LISTS: Final = (*ORDER, "additionalDirectories")
_MODES: Final = ("default", "manual")
_STRICT: Final = {
    "dontAsk": "what no rule allows is denied there, and here a person is asked",
    "plan": "nothing is written there without a question, and here rules allow it",
}
"""Modes without which a file would allow more than it does."""


@dataclass(frozen=True, slots=True)
class Imported:
    rules: tuple[Placed, ...]
    notes: tuple[str, ...]
    """What was left out and why, for people."""


def import_settings(text: str, layer: Layer) -> Imported:
    """The rules of a settings file, as those of a layer."""
    permissions = _permissions(text)
    rules: list[Placed] = []
    notes: list[str] = []
    for outcome in ORDER:
        for index, item in enumerate(_list(permissions, outcome)):
            where = f"permissions.{outcome}[{index}]"
            if not isinstance(item, str):
                raise InvalidRequest(f"{where} is not a text.", field=where, help_text="A rule is a text.")
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
            f"permissions.defaultMode is {mode}: {_STRICT[mode]}.",
            field="permissions.defaultMode",
            help_text="Take it out if that may be so, or say by rules what nobody may allow.",
        )
    if mode is not None and mode not in _MODES:
        notes.append(f"permissions.defaultMode: {mode} is not taken over: what no rule allows is asked")
    if permissions.get("additionalDirectories"):
        notes.append("permissions.additionalDirectories: not taken over: they belong to a session's workspace")
    if not rules:
        rules.append(Placed(layer, parse_rule(NOTHING_MORE, Outcome.ALLOW)))
        notes.append(f"permissions: there are no rules; {NOTHING_MORE} stands for that: all else is asked about")
    return Imported(tuple(rules), tuple(notes))


def _permissions(text: str) -> dict[str, Json]:
    if len(text) > _LARGEST:
        raise InvalidRequest("The settings are too large.", help_text=f"At most {_LARGEST} characters are read.")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"The settings are not JSON: {error}.", help_text="Mend the file.") from None
    permissions = content.get("permissions", {}) if isinstance(content, dict) else None
    if not isinstance(permissions, dict):
        raise InvalidRequest("`permissions` is not an object.", field="permissions", help_text="Mend the file.")
    _refuse_misspelt(content, permissions)
    return permissions


def _refuse_misspelt(content: dict[str, Json], permissions: dict[str, Json]) -> None:
    """Rules under a name that nobody reads would be rules that nobody obeys."""
    for name, value in content.items():
        if name in ORDER and isinstance(value, list):
            raise InvalidRequest(
                f"`{name}` stands outside of `permissions`, where nobody reads it.",
                field=name,
                help_text=f'It is {{"permissions": {{"{name}": […]}}}}.',
            )
        if name != "permissions" and get_close_matches(name, ["permissions"], cutoff=0.85):
            raise InvalidRequest(f"`{name}` is read by nobody.", field=name, help_text="It is written `permissions`.")
    for name, value in permissions.items():
        if isinstance(value, list) and name not in _LISTS:
            raise InvalidRequest(
                f"permissions.{name} is no list that there is: what it says would not be obeyed.",
                field=f"permissions.{name}",
                help_text="Rules are in `deny`, `ask` and `allow`. Mend its name, or take it out of the file.",
            )


def _list(permissions: dict[str, Json], outcome: Outcome) -> list[Json]:
    found = permissions.get(outcome, [])
    if not isinstance(found, list):
        field = f"permissions.{outcome}"
        raise InvalidRequest(f"{field} is not a list.", field=field, help_text="It is a list of rules.")
    return found


def _ignored(text: str, outcome: Outcome) -> str | None:
    """Why Claude Code passes over a rule, or why leaving it out makes ours stricter; None: it is to be read."""
    tool, _, inside = text.partition("(")
    if outcome is Outcome.ALLOW:
        if inside and tool in {"Write", "NotebookEdit", "MultiEdit", "Glob", "Grep"} and inside != "*)":
            return "allows nothing: paths are said with Edit and Read"
        if "*" in tool and not (tool.startswith("mcp__") and "__" in tool[5 : tool.index("*")]):
            return "allows nothing: a tool's name is said in full"
        if inside and tool in {"Skill", "PowerShell", "Cd", "WebSearch", "SlashCommand"}:
            return "allows nothing here: there is no such rule"
    elif inside.startswith("!"):
        return "is an exception, and there are none here: what it excepted stays forbidden"
    if inside and tool.startswith("mcp__"):
        return "is passed over, as by Claude Code: rules for MCP tools have no parentheses"
    return None
