"""The result of running a claim: whether it holds, the figure that shows it, and the numbers behind it."""

import math
from dataclasses import dataclass, field
from typing import Final

from footplate.domain.json import JsonObject

MAX_HEADLINE_LENGTH: Final = 15
"""The length of a headline figure, so that docs/evidence.md can be read at a glance."""
NOT_HELD_HEADLINE: Final = "does not hold; the summary has the reason"
CRASHED_HEADLINE: Final = "could not be run; the summary has the error"
"""The claim neither holds nor fails, because running it raised an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    headline: str
    """The one figure that matters, in at most 15 words: `180 kills: all 576 turns ended, no tool ran twice`."""
    summary: str = ""
    """All figures in one paragraph, with their limits."""
    holds: bool
    details: JsonObject = field(default_factory=dict)
    """The measurements behind the figures. No host names, no paths."""

    def __post_init__(self) -> None:
        if len(self.headline.split()) > MAX_HEADLINE_LENGTH:
            raise ValueError(
                f"The headline has more than {MAX_HEADLINE_LENGTH} words: {self.headline!r}. Move some to the summary."
            )


def time_limit(limit: float, *, quick: bool) -> float:
    """Returns the limit at full size, and none for a sample: a sample runs beside other work on a busy machine."""
    return math.inf if quick else limit


class NotHeld(Exception):
    """A claim does not hold. The message states what was found instead."""


def require(*, holds: bool, otherwise: str) -> None:
    """Raises `NotHeld` unless the condition holds. Unlike `assert`, `python -O` does not remove it."""
    if not holds:
        raise NotHeld(otherwise)
