"""Reads the lanes of CI from lanes.toml: what each one runs, and how much CPU time it may use."""

import os
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LANES: Final = Path(__file__).with_name("lanes.toml")
TOLERANCE: Final = float(os.environ.get("FOOTPLATE_CI_TOLERANCE", "1.3"))
"""A lane fails when it uses more than this many times its budget, which was measured on the machine that CI runs on."""


@dataclass(frozen=True, slots=True)
class Lane:
    name: str
    command: Sequence[str]
    cpu_seconds: float
    """The budget, in seconds of user and system time on the two-core machine that CI runs on."""

    @property
    def limit(self) -> float:
        return self.cpu_seconds * TOLERANCE

    @property
    def test_paths(self) -> Sequence[str]:
        """The files and directories of tests that the lane runs."""
        return [word for word in self.command if word.startswith("tests/")]


def load_lanes(path: Path = LANES) -> Mapping[str, Lane]:
    """Every lane by its name, in the order of the file."""
    tables = tomllib.loads(path.read_text())
    return {name: _lane(name, **table) for name, table in tables.items()}


def _lane(name: str, *, command: str, cpu_seconds: float) -> Lane:
    return Lane(name, shlex.split(command), cpu_seconds)
