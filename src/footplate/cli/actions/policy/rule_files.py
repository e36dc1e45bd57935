"""Reads files with permission rules, such as `.claude/settings.json`. The server parses the rules."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import typer

from footplate.cli.actions.policy.explain import find_rule_files, report_rule_error
from footplate.cli.render import terminal_io
from footplate.client import AsyncFootplate
from footplate.domain.errors import FootplateError, InvalidRequest

_LISTS: Final = ("deny", "ask", "allow")


def load_rule_files(files: Sequence[Path] | None, *, as_json: bool) -> list[dict[str, Any]]:
    """Returns the content of the given files, or else of the rule files in the current directory.

    Reports an unreadable file and exits.
    """
    try:
        found = list(files) if files else find_rule_files(Path())
        if not found:
            raise InvalidRequest("No rule files were found in this directory.", help_text="Pass a file with --rules.")
        return [_read_file(path) for path in found]
    except FootplateError as error:
        report_rule_error(error, as_json=as_json)
        raise typer.Exit(terminal_io.Exit.FAILED) from None


async def import_rules(
    client: AsyncFootplate, settings: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], list[str]]:
    """Returns the combined rules and hooks, and notes about what was skipped."""
    rules: dict[str, Any] = {}
    notes: list[str] = []
    for one in settings:
        found = await client.policies.read(one)
        notes += found.notes
        _merge_rules(rules, found.permissions)
    return rules, notes


def _read_file(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRequest(
            f"{path} cannot be read: {error}.", help_text="Choose another file with --rules."
        ) from None
    if not isinstance(content, dict):
        raise InvalidRequest(
            f"{path} is not a JSON object.", help_text='Expected: {"permissions": {"deny": [], "allow": []}}.'
        )
    return content


def _merge_rules(rules: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name in _LISTS:
        rules.setdefault(name, []).extend(more.get(name) or [])
    for event, groups in (more.get("hooks") or {}).items():
        rules.setdefault("hooks", {}).setdefault(event, []).extend(groups)
