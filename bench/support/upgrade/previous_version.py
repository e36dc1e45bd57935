"""The previous version, which has to run on the schema of this one. `deploy/previous` names it."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class PreviousVersion:
    commit: str
    schema: str
    """The newest migration that it knows."""


def load_previous_version() -> PreviousVersion:
    return PreviousVersion(**tomllib.loads((ROOT / "deploy" / "previous").read_text()))
