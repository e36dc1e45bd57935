"""The corpus: commands that try to do what a team's rules do not allow, and everyday commands that they do.

A file for each group of ways, with commands for each set of rules. `nested` hides each once more, in other forms.
"""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.domain.permissions import Layer
from footplate.gate.policy import Policy
from footplate.gate.settings import import_settings

FOLDER: Final = Path(__file__).resolve().parents[3] / "tests" / "security"
SETS: Final = ("team", "denied", "paths")


@dataclass(frozen=True, slots=True)
class Case:
    group: str
    rules: str
    command: str
    nested: str = ""
    """How it was hidden once more."""

    def placed(self, tree: Path, outside: Path) -> str:
        return (
            self.command.replace("{tree}", str(tree)).replace("{outname}", outside.name).replace("{out}", str(outside))
        )


def cases() -> list[Case]:
    return [
        Case(file.stem, rules, command)
        for file in sorted((FOLDER / "bypasses").glob("*.json"))
        if not file.name.endswith(".settings.json")
        for rules, commands in json.loads(file.read_text()).items()
        for command in commands
    ]


def nested(case: Case) -> Iterator[Case]:
    """The same inside other forms."""
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
        yield Case(case.group, case.rules, command, how)


def everyday() -> list[str]:
    return (FOLDER / "everyday.txt").read_text().splitlines()


def policy(rules: str) -> Policy:
    """One of the sets, or `everyday`."""
    folder = FOLDER if rules == "everyday" else FOLDER / "bypasses"
    return Policy(import_settings((folder / f"{rules}.settings.json").read_text(), Layer.PROJECT).rules)
