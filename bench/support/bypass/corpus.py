"""Loads the corpus: commands that try to break a team's rules, and everyday commands that the rules allow.

There is a file for each group of techniques, with commands for each set of rules. `nested` wraps each command in
further shell constructs.
"""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.domain.policy.permissions import Layer
from footplate.gate.rules.claude_settings import import_settings
from footplate.gate.rules.layered_policy import Policy

FOLDER: Final = Path(__file__).resolve().parents[3] / "tests" / "security"
SETS: Final = ("team", "denied", "paths")


@dataclass(frozen=True, slots=True)
class BypassCase:
    group: str
    rules: str
    command: str
    wrapper: str = ""
    """The construct that wraps the command; empty if none does."""

    def fill_placeholders(self, tree: Path, outside: Path) -> str:
        return (
            self.command.replace("{tree}", str(tree)).replace("{outname}", outside.name).replace("{out}", str(outside))
        )


def load_cases() -> list[BypassCase]:
    return [
        BypassCase(file.stem, rules, command)
        for file in sorted((FOLDER / "bypasses").glob("*.json"))
        if not file.name.endswith(".settings.json")
        for rules, commands in json.loads(file.read_text()).items()
        for command in commands
    ]


def wrap_case(case: BypassCase) -> Iterator[BypassCase]:
    """Yields the same command inside other shell constructs."""
    text = case.command
    forms = {
        "after": f"ls\n{text}",
        "subshell": f"( {text}\n)",
        "group": f"{{ {text}\n}}",
        "condition": f"if true; then {text}\nfi",
        "loop": f"for i in 1; do {text}\ndone",
        "substitution": f"echo $( {text}\n)",
        "shell": f"bash -c {shlex.quote(text)}",
        "evaluated": f"eval {shlex.quote(text)}",
        "twice": f"timeout 20 sh -c {shlex.quote(f'bash -c {shlex.quote(text)}')}",
    }
    for how, command in forms.items():
        yield BypassCase(case.group, case.rules, command, how)


def load_everyday_commands() -> list[str]:
    return (FOLDER / "everyday.txt").read_text().splitlines()


def load_policy(rules: str) -> Policy:
    """Returns the policy of one of the sets, or of `everyday`."""
    folder = FOLDER if rules == "everyday" else FOLDER / "bypasses"
    return Policy(import_settings((folder / f"{rules}.settings.json").read_text(), Layer.PROJECT).rules)
