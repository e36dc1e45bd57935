"""Registers the claims of probes about the reference. docs/compatibility.md is generated from them.

    @supported("sessions.create", "title")
    @refused("sessions.create", "budget")
    async def how_it_is_called(door: Door) -> None: ...

A probe is an async function that raises if its claim does not hold. `tests/compat` runs each probe with the synchronous
and with the asynchronous SDK, and `just prove door-1` runs all of them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bench.support.sdk.sdk_client import SdkClient

Probe = Callable[[SdkClient], Awaitable[None]]


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
"""Claims by method (`sessions.create`) or type (`CustomToolParams`), and by field."""
PROBES: Final[dict[str, Probe]] = {}
METHOD: Final = ""
"""Used instead of a field for a claim about the whole method or type."""


def supported(where: str, *fields: str, note: str = "") -> Callable[[Probe], Probe]:
    return _claim(Verdict.SUPPORTED, where, fields, note)


def refused(where: str, *fields: str, note: str = "") -> Callable[[Probe], Probe]:
    """Claims a 400 that names the field. A method or type that is refused as a whole needs no claims for its fields."""
    return _claim(Verdict.REFUSED, where, fields, note)


def different(where: str, *fields: str, note: str) -> Callable[[Probe], Probe]:
    return _claim(Verdict.DIFFERENT, where, fields, note)


def probe(function: Probe) -> Probe:
    """Registers a probe of behaviour that belongs to no field: ids, orders, errors."""
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
