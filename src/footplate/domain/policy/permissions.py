"""Data types for permission rules, their layers and roles, and the decisions on tool calls. `footplate.gate` evaluates
the rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Final, Protocol

from footplate.domain.errors import Forbidden
from footplate.domain.json import Json, JsonObject, clean_text
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import Permission, permissions_of

TOOL_NAMES: Final = {
    "bash": "Bash",
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "glob": "Glob",
    "grep": "Grep",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
    "ask_user": "AskUserQuestion",
}
"""Maps the reference API's tool names to those of Claude Code, which rules use."""


POLICY_ADMIN: Final = "policy_admin"


class PermissionOutcome(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


_STRICTNESS = {PermissionOutcome.ALLOW: 0, PermissionOutcome.ASK: 1, PermissionOutcome.DENY: 2}


def stricter(one: PermissionOutcome, other: PermissionOutcome) -> PermissionOutcome:
    return one if _STRICTNESS[one] >= _STRICTNESS[other] else other


class Layer(IntEnum):
    """The level at which a rule was written. A lower number is a higher layer."""

    ORGANISATION = 0
    PROJECT = 1
    AGENT = 2
    SESSION = 3

    @property
    def label(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Decision:
    outcome: PermissionOutcome
    reason: str
    """The reason, for a person to read."""
    rule: str | None = None
    """The text of the rule that decided. None: a default or a built-in check decided."""
    layer: Layer | None = None
    hook: str | None = None
    """The hook that decided."""

    def __post_init__(self) -> None:
        """Clean the reason for storage and display, because it may quote arbitrary text from a model or a hook."""
        object.__setattr__(self, "reason", clean_text(self.reason.replace("\0", "…")))

    @property
    def event_fields(self) -> JsonObject | None:
        """The event field that says which rule or hook decided. None if the call was allowed without either."""
        if self.rule is None and self.hook is None and self.outcome is PermissionOutcome.ALLOW:
            return None
        layer = self.layer.label if self.layer is not None else None
        fields: JsonObject = {"reason": self.reason, "rule": self.rule, "layer": layer}
        return fields if self.hook is None else {**fields, "hook": self.hook}

    @property
    def refusal(self) -> str:
        """The message to the model whose call was denied."""
        source = f"the rule {self.rule} of the {self.layer.label}" if self.layer is not None else "the gate"
        if self.hook is not None and self.layer is not None:
            source = f"a hook of the {self.layer.label} ({self.hook})"
        return f"Denied by {source}: {self.reason} The call had no effect. Do not try to get around this."


NOT_EVALUATED: Final = Decision(
    PermissionOutcome.DENY,
    "The gate did not evaluate the call: the tool does not exist, or the input is not valid for it.",
)
"""The decision for a call that the harness itself refuses."""


def read_rules(permissions: Mapping[str, Json]) -> dict[PermissionOutcome, list[str]]:
    """Return the stored rules of a layer, by outcome."""
    return {outcome: _texts(permissions.get(outcome)) for outcome in PermissionOutcome if permissions.get(outcome)}


def _texts(value: Json) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list) else []


def check_policy_writer(principal: Principal, owner: str) -> None:
    """Raise `Forbidden` if the principal may not write rules that apply to other users' sessions.

    Rules of an agent or a session need no role: they cannot remove rules of higher layers, and what they allow only
    replaces the default.
    """
    if Permission.CHANGE_POLICY not in permissions_of(principal.roles):
        raise Forbidden(
            f"Writing the rules of {owner} needs the role 'admin' or {POLICY_ADMIN!r}, "
            "which this API key does not have.",
            help_text=f"Use another key, or create one: footplate api-keys create --role {POLICY_ADMIN} --name …",
        )


@dataclass(frozen=True, slots=True)
class OrganisationPolicy:
    """An organisation's policy, and the principal who last wrote it. None if it was never written."""

    permissions: JsonObject
    principal: str | None = None
    updated_at: datetime | None = None
    approvals: JsonObject = field(default_factory=dict)
    """Its requirements for approval decisions: see `ApprovalPolicy`."""


@dataclass(frozen=True, slots=True)
class ExpectedPolicy:
    """The policy that a change replaces. The change is refused if the stored one is another."""

    updated_at: datetime | None
    """None: it was never written."""


class PolicyReads(Protocol):
    async def policy(self, principal: Principal) -> OrganisationPolicy: ...


class PolicyUnit(Protocol):
    """The part of the API's unit of work that writes policies."""

    async def set_policy(
        self,
        principal: Principal,
        permissions: JsonObject | None,
        approvals: JsonObject | None = None,
        *,
        expected: ExpectedPolicy | None = None,
    ) -> OrganisationPolicy:
        """Replace the policy. Permissions and approvals that are None stay unchanged. Raise `Conflict` if the stored
        policy is not the expected one.
        """
