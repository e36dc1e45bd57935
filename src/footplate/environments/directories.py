"""Where a session's commands work: in a directory of its own or, on a developer's own machine, in one that it names."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from footplate.domain.errors import InvalidRequest

KEY: Final = "directory"
"""In a session's context."""


def working_directory(own: Path, variables: Mapping[str, str], *, may_be_named: bool) -> Path:
    """`own` is made if need be; a named one has to be there, because a misspelt one would be worked in for nothing."""
    own.mkdir(parents=True, exist_ok=True)
    named = json.loads(variables.get("FOOTPLATE_CONTEXT", "{}")).get(KEY)
    if not may_be_named or not isinstance(named, str):
        return own
    if not Path(named).is_absolute() or not Path(named).is_dir():
        raise InvalidRequest(
            f"The session's context.{KEY} {named!r} is no directory on the worker's machine.",
            field=f"context.{KEY}",
            help_text="Give the absolute path of one that exists where the workers run, or leave it out.",
        )
    return Path(named)
