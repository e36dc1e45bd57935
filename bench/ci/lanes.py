"""Reads the lanes of CI from lanes.toml: their commands and their CPU budgets."""

import os
import shlex
import statistics
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LANES: Final = Path(__file__).with_name("lanes.toml")
TOLERANCE: Final = float(os.environ.get("FOOTPLATE_CI_TOLERANCE", "1.3"))
"""A lane fails when it uses more than this many times its budget, after allowing for a slower machine."""
_MIN_LANES: Final = 5
_MAX_SLOWDOWN: Final = 2.0


@dataclass(frozen=True, slots=True)
class Lane:
    name: str
    command: Sequence[str]
    cpu_seconds: float
    """The budget, in seconds of user and system time on the two-core machine where it was measured."""

    def limit(self, slowdown: float) -> float:
        return self.cpu_seconds * TOLERANCE * slowdown

    @property
    def test_paths(self) -> Sequence[str]:
        """The test files and directories that the lane runs."""
        return [argument for argument in self.command if argument.startswith("tests/")]


def load_lanes(path: Path = LANES) -> Mapping[str, Lane]:
    """Returns the lanes by name, in the order of the file."""
    tables = tomllib.loads(path.read_text())
    return {name: _lane(name, **table) for name, table in tables.items()}


def machine_slowdown(used: Mapping[str, float], lanes: Mapping[str, Lane]) -> float:
    """Returns how many times the budgeted CPU time this machine needs: the median of the lanes.

    A lane that grew alone hardly changes the median. Returns 1 for fewer than five lanes, which are too few.
    """
    if len(used) < _MIN_LANES:
        return 1.0
    median = statistics.median(seconds / lanes[name].cpu_seconds for name, seconds in used.items())
    return min(max(1.0, median), _MAX_SLOWDOWN)


def _lane(name: str, *, command: str, cpu_seconds: float) -> Lane:
    return Lane(name, shlex.split(command), cpu_seconds)
