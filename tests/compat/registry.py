"""What each probe shows of the reference: the page docs/compatibility.md is made of nothing else.

    @supported("sessions.create", "title")
    @refused("sessions.create", "budget")
    async def how_it_is_called(door: Door) -> None: ...

A probe is an async function that raises when its claim does not hold. `tests/compat` runs each with the synchronous and
with the asynchronous SDK, and `just prove door-1` all of them in one go.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bench.support.sdk.door import Door

Probe = Callable[[Door], Awaitable[None]]


class Verdict(StrEnum):
    SUPPORTED = "supported"
    REFUSED = "refused"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Claim:
    verdict: Verdict
    note: str
    probe: str


CLAIMS: Final[dict[tuple[str, str], Claim]] = {}
"""By method (`sessions.create`) or type (`CustomToolParams`), and field."""
PROBES: Final[dict[str, Probe]] = {}
METHOD: Final = ""
"""In place of a field: the method or the type as a whole."""


def supported(where: str, *fields: str, note: str = "") -> Callable[[Probe], Probe]:
    return _claim(Verdict.SUPPORTED, where, fields, note)


def refused(where: str, *fields: str, note: str = "") -> Callable[[Probe], Probe]:
    """With 400 and the field's name. A type or method that is refused as a whole needs no claim for its fields."""
    return _claim(Verdict.REFUSED, where, fields, note)


def different(where: str, *fields: str, note: str) -> Callable[[Probe], Probe]:
    return _claim(Verdict.DIFFERENT, where, fields, note)


def probe(function: Probe) -> Probe:
    """For behaviour that is no field's: ids, orders, errors."""
    name = f"{function.__module__.rsplit('.', 1)[-1]}.{function.__name__}"
    PROBES[name] = function
    return function


def _claim(verdict: Verdict, where: str, fields: tuple[str, ...], note: str) -> Callable[[Probe], Probe]:
    def register(function: Probe) -> Probe:
        probe(function)
        for name in fields or (METHOD,):
            key = (where, name)
            known = CLAIMS.get(key)
            claim = Claim(verdict, note, function.__name__)
            if known is not None and known != claim:
                raise ValueError(f"{where} {name} is claimed by {known.probe} and by {function.__name__}")
            CLAIMS[key] = claim
        return function

    return register
