"""The settings files, each with the calls that are made behind it, and the tree that they are made in.

A folder of `tests/security/settings` is a `.claude` as a team has it, and `calls.json`: of each call the tool, its
input, and by what one knows that it was made: a text that its result `shows`, or a file that it `leaves`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.support.trust.scene import Repository

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
class Call:
    tool: str
    """By Claude Code's name."""
    input: dict[str, Any]
    shows: str = ""
    leaves: str = ""
    stricter: str = ""
    """Which of the reasons it is that ours is stricter; empty: it is not."""

    @property
    def title(self) -> str:
        return f"{self.tool} {' '.join(str(value) for value in self.input.values())}"


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    calls: tuple[Call, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """Of its `.claude`, by their paths in the tree."""

    def settings(self, name: str) -> dict[str, Any] | None:
        text = self.files.get(f".claude/{name}")
        return None if text is None else dict(json.loads(text))


def shapes() -> list[Shape]:
    return [_shape(folder) for folder in sorted(FOLDER.iterdir()) if folder.is_dir()]


def _shape(folder: Path) -> Shape:
    calls = tuple(Call(**call) for call in json.loads((folder / _CALLS).read_text()))
    files = {
        f".claude/{path.relative_to(folder)}": path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != _CALLS
    }
    return Shape(folder.name, calls, files)


def repository(directory: Path, shape: Shape) -> Repository:
    """Committed, with a file beside it that does not belong to it."""
    made = Repository(directory)
    made.make({**FILES, **shape.files}, LINKS)
    (directory.parent / "elsewhere.txt").write_text("the-elsewhere\n")
    return made
