"""Tests whether response times distinguish two kinds of request, from samples that were taken alternately."""

import bisect
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimingDifference:
    hit_rate: float
    """Probability that an observer who sees one time of each kind identifies the slower kind; 0.5 is chance
    (Mann-Whitney U).
    """
    z: float
    """The distance of `right` from chance in standard errors."""
    seconds: float
    """The difference of the medians."""

    @property
    def best_guess(self) -> float:
        return max(self.hit_rate, 1 - self.hit_rate)


def compare_times(one: Sequence[float], other: Sequence[float]) -> TimingDifference:
    ordered = sorted(other)
    below = sum((bisect.bisect_left(ordered, value) + bisect.bisect_right(ordered, value)) / 2 for value in one)
    pairs = len(one) * len(other)
    hit_rate = below / pairs
    error = math.sqrt((len(one) + len(other) + 1) / (12 * pairs))
    return TimingDifference(hit_rate, (hit_rate - 0.5) / error, statistics.median(one) - statistics.median(other))
