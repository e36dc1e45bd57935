"""What the gate says of a call, and on whose word. Values only; rules are read and applied in `footplate.gate`."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Outcome(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


_STRICTNESS = {Outcome.ALLOW: 0, Outcome.ASK: 1, Outcome.DENY: 2}


def stricter(one: Outcome, other: Outcome) -> Outcome:
    return one if _STRICTNESS[one] >= _STRICTNESS[other] else other


class Layer(IntEnum):
    """Who wrote a rule; the lower the number, the higher the layer."""

    ORGANISATION = 0
    PROJECT = 1
    AGENT = 2
    SESSION = 3

    @property
    def label(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Decision:
    outcome: Outcome
    reason: str
    """In a person's words."""
    rule: str | None = None
    """The rule that decided, as it was written; None: the default, or what is built in."""
    layer: Layer | None = None
