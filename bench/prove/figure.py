"""What a proof found."""

import math
from dataclasses import dataclass, field

from footplate.domain.json import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    text: str
    """The figure as a person reads it, in one line: `100 of 100 turns ended, 0 events lost`."""
    holds: bool
    details: JsonObject = field(default_factory=dict)
    """What it was derived from. No host names, no paths."""


def time_limit(limit: float, *, quick: bool) -> float:
    """The limit at full size. A sample has none: it runs beside other work, which says nothing about the product."""
    return math.inf if quick else limit


class NotHeld(Exception):
    """A proof that cannot go on: what it found instead of what it claims."""


def require(*, holds: bool, otherwise: str) -> None:
    """Like assert, but kept under `python -O`: a proof must be able to fail."""
    if not holds:
        raise NotHeld(otherwise)
