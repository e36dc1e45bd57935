"""The result of a measurement, and the statistics functions that measurements share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from footplate.domain.json import JsonObject

ROOT: Final = Path(__file__).resolve().parents[3]
"""The directory of the package `bench`. It is not installed, so child processes need this path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    text: str
    holds: bool
    details: JsonObject = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    """The numbers that a claim shows in its headline."""


def quantile(values: Sequence[float], q: float) -> float:
    """Returns a quantile by nearest rank: always a measured value, never an interpolated one."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def median(values: Sequence[float]) -> float:
    return quantile(values, 0.5)


def milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 1)
