"""Can the time of an answer tell two kinds of request apart? Asked of samples that were taken alternately. Pure."""

import bisect
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    right: float
    """How often one who sees one time of each kind names the slower kind rightly; 0.5 is chance (Mann-Whitney's U)."""
    z: float
    """The same in standard errors from chance."""
    seconds: float
    """Difference of the medians."""

    @property
    def best_guess(self) -> float:
        return max(self.right, 1 - self.right)


def difference(one: Sequence[float], other: Sequence[float]) -> Difference:
    ordered = sorted(other)
    below = sum((bisect.bisect_left(ordered, value) + bisect.bisect_right(ordered, value)) / 2 for value in one)
    pairs = len(one) * len(other)
    right = below / pairs
    error = math.sqrt((len(one) + len(other) + 1) / (12 * pairs))
    return Difference(right, (right - 0.5) / error, statistics.median(one) - statistics.median(other))
