"""What the gate says of a call, and on whose word. Values only; rules are read and applied in `footplate.gate`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Final, Protocol

from footplate.domain.errors import Forbidden
from footplate.domain.json import Json, JsonObject, clean_text
from footplate.domain.principals import Principal

TOOL_NAMES: Final = {
    "bash": "Bash",
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "glob": "Glob",
    "grep": "Grep",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
}
"""The reference's names of tools, as Claude Code writes them and as rules have them."""


POLICY_ADMIN: Final = "policy_admin"
WRITERS: Final = frozenset({"admin", POLICY_ADMIN})
"""Roles of keys that may write what every session of an organisation or a project obeys; its first key has `admin`."""


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
    hook: str | None = None
    """The hook that decided."""

    def __post_init__(self) -> None:
        """A reason quotes what a model or a hook said, which may be anything: it can be stored and shown."""
        object.__setattr__(self, "reason", clean_text(self.reason.replace("\0", "…")))

    @property
    def told(self) -> JsonObject | None:
        """For an event: on whose word. None where nobody has a rule."""
        if self.rule is None and self.hook is None and self.outcome is Outcome.ALLOW:
            return None
        layer = self.layer.label if self.layer is not None else None
        told: JsonObject = {"reason": self.reason, "rule": self.rule, "layer": layer}
        return told if self.hook is None else {**told, "hook": self.hook}

    @property
    def refusal(self) -> str:
        """For the model whose call was denied."""
        said = f"the rule {self.rule} of the {self.layer.label}" if self.layer is not None else "the gate"
        if self.hook is not None and self.layer is not None:
            said = f"a hook of the {self.layer.label} ({self.hook})"
        return f"Denied by {said}: {self.reason} The call had no effect. Do not try to get around this."


NOT_JUDGED: Final = Decision(
    Outcome.DENY, "It was not put to the gate: there is no such tool, or its input is not one that the tool takes."
)
"""Of a call that a harness refuses by itself."""


def written(permissions: Mapping[str, Json]) -> dict[Outcome, list[str]]:
    """A layer's rules as they are stored."""
    return {outcome: _texts(permissions.get(outcome)) for outcome in Outcome if permissions.get(outcome)}


def _texts(value: Json) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list) else []


def check_writer(principal: Principal, whose: str) -> None:
    """Whoever may take rules away that others' sessions obey has a role for it. Raises `Forbidden`.

    Rules of an agent and of a session need none: they add to those above, and their leave satisfies the default alone.
    """
    if not principal.roles & WRITERS:
        raise Forbidden(
            f"Who writes the rules of {whose} needs the role {POLICY_ADMIN!r}, and this key has it not.",
            help_text=f"Use another key, or make one: footplate api-keys create --role {POLICY_ADMIN} --name …",
        )


@dataclass(frozen=True, slots=True)
class Written:
    """An organisation's rules, and who wrote them when; nobody, if it has none."""

    permissions: JsonObject
    principal: str | None = None
    updated_at: datetime | None = None
    approvals: JsonObject = field(default_factory=dict)
    """What it wants of people's answers: see `domain.approvals`."""


class PolicyReads(Protocol):
    async def policy(self, principal: Principal) -> Written: ...


class PolicyUnit(Protocol):
    """Part of a transaction of the api's."""

    async def set_policy(
        self, principal: Principal, permissions: JsonObject | None, approvals: JsonObject | None = None
    ) -> Written:
        """What is None stays as it is."""
