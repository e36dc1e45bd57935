"""What a proof found."""

from dataclasses import dataclass, field

from footplate.domain.json import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    text: str
    """The figure as a person reads it, in one line: `100 of 100 turns ended, 0 events lost`."""
    holds: bool
    details: JsonObject = field(default_factory=dict)
    """What it was derived from. No host names, no paths."""


class NotHeld(Exception):
    """A proof that cannot go on: what it found instead of what it claims."""


def require(*, holds: bool, otherwise: str) -> None:
    """Like assert, but kept under `python -O`: a proof must be able to fail."""
    if not holds:
        raise NotHeld(otherwise)
