"""Loads the settings files, each with the calls to make, and creates the tree in which they are made.

A folder of `tests/security/settings` has the `.claude` directory of a team, and `calls.json`. It has the tool and input
of each call, and how to see that it ran: a text that its result `shows`, or a file that it `leaves`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.support.trust.sandboxed_sessions import Repository

FOLDER: Final = Path(__file__).resolve().parents[3] / "tests" / "security" / "settings"
SETTINGS: Final = "settings.json"
LOCAL: Final = "settings.local.json"
_CALLS: Final = "calls.json"
FILES: Final = {
    "README.md": "the-read-me\n",
    "src/app.py": "the-app = 1\n",
    "src/lib/util.py": "the-util = 1\n",
    "docs/guide.md": "the-guide\n",
    "build/.keep": "",
    "made/.keep": "",
    ".env": "KEY=the-env-secret\n",
    "config/.env": "KEY=the-other-env-secret\n",
    "config/app.toml": "name = 'the-config'\n",
    "secrets/key.txt": "the-secret-key\n",
    "yarn.lock": "the-lock\n",
    "scripts/build.sh": 'touch "made/build$1"\n',
}
LINKS: Final = {"src/way": "../secrets"}


@dataclass(frozen=True, slots=True)
class SettingsCall:
    tool: str
    """Claude Code's name of the tool."""
    input: dict[str, Any]
    shows: str = ""
    leaves: str = ""
    stricter: str = ""
    """The reason why the gate is stricter; empty if it is not."""

    @property
    def title(self) -> str:
        return f"{self.tool} {' '.join(str(value) for value in self.input.values())}"


@dataclass(frozen=True, slots=True)
class SettingsCase:
    name: str
    calls: tuple[SettingsCall, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """The files of its `.claude`, by path in the tree."""

    def settings(self, name: str) -> dict[str, Any] | None:
        text = self.files.get(f".claude/{name}")
        return None if text is None else dict(json.loads(text))


def load_cases() -> list[SettingsCase]:
    return [_load_case(folder) for folder in sorted(FOLDER.iterdir()) if folder.is_dir()]


def _load_case(folder: Path) -> SettingsCase:
    calls = tuple(SettingsCall(**call) for call in json.loads((folder / _CALLS).read_text()))
    files = {
        f".claude/{path.relative_to(folder)}": path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != _CALLS
    }
    return SettingsCase(folder.name, calls, files)


def create_repository(directory: Path, shape: SettingsCase) -> Repository:
    """Creates the repository with one commit, and a file beside it that does not belong to it."""
    made = Repository(directory)
    made.make({**FILES, **shape.files}, LINKS)
    (directory.parent / "elsewhere.txt").write_text("the-elsewhere\n")
    return made
