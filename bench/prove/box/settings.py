"""The backends that a worker of this version can be told to use, and that this machine can give."""

from typing import Final, get_args

from footplate.config import Settings

_KNOWN: Final[tuple[str, ...]] = get_args(Settings.model_fields["environment"].annotation)


def backends() -> tuple[str, ...]:
    return _KNOWN


def environment(backend: str) -> dict[str, str]:
    """For a cluster's workers."""
    return {"FOOTPLATE_ENVIRONMENT": backend}
