"""Wire models of permission rules, in Claude Code's format. A request that contains an invalid rule is rejected, and
the error gives the position of the problem.
"""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, JsonValue, model_validator

from footplate.api.wire.policy.hooks import Hooks, import_hooks, refuse_http_hooks
from footplate.api.wire.policy.hooks import check_hosts as check_hook_hosts
from footplate.api.wire.request_base import Body, JsonTime, Text, timestamp
from footplate.domain.json import Json, JsonObject
from footplate.domain.policy.hooks import HookAccess
from footplate.domain.policy.permissions import ExpectedPolicy, Layer, OrganisationPolicy, PermissionOutcome
from footplate.gate.errors import InvalidRule
from footplate.gate.rules.claude_settings import ImportedRules
from footplate.gate.rules.rule_parser import parse_rule

MAX_RULES: Final = 1000
MAX_CHARACTERS: Final = 100_000
"""Total length of the rules of one layer."""


def _check_rule(text: str, *, outcome: PermissionOutcome) -> str:
    try:
        parse_rule(text, outcome)
    except InvalidRule as error:
        advice = f". {error.help_text}" if error.help_text else ""
        raise ValueError(f"at character {error.position}, {error.problem}{advice}") from None
    return text


AllowRule = Annotated[str, AfterValidator(partial(_check_rule, outcome=PermissionOutcome.ALLOW))]


def _rule_validator(outcome: PermissionOutcome) -> AfterValidator:
    return AfterValidator(partial(_check_rule, outcome=outcome))


def _check_total_length(permissions: object) -> object:
    """Checks the total length of the rules before any rule is parsed."""
    lists = [permissions.get(outcome) for outcome in PermissionOutcome] if isinstance(permissions, dict) else []
    texts = [text for each in lists if isinstance(each, list) for text in each if isinstance(text, str)]
    if sum(map(len, texts)) > MAX_CHARACTERS:
        raise ValueError(f"the rules of one layer can have at most {MAX_CHARACTERS:,} characters")
    return permissions


class Permissions(Body):
    """Rules of one layer. `deny` takes precedence over `ask`, and `ask` over `allow`, across all layers."""

    _is_bounded = model_validator(mode="before")(_check_total_length)

    deny: Annotated[
        list[Annotated[str, _rule_validator(PermissionOutcome.DENY)]], Field(max_length=MAX_RULES, default_factory=list)
    ]
    ask: Annotated[
        list[Annotated[str, _rule_validator(PermissionOutcome.ASK)]], Field(max_length=MAX_RULES, default_factory=list)
    ]
    allow: Annotated[
        list[Annotated[str, _rule_validator(PermissionOutcome.ALLOW)]],
        Field(max_length=MAX_RULES, default_factory=list),
    ]
    hooks: Hooks | None = None


class OwnPermissions(Permissions):
    """Rules of an agent or a session."""

    hooks: Annotated[Hooks | None, AfterValidator(refuse_http_hooks)] = None


class ApprovalTerms(Body):
    """Who may decide an approval, and the outcome of an approval that expires."""

    expires_after_seconds: Annotated[int | None, Field(ge=1, le=366 * 86400)] = None
    outcome: Annotated[Literal["deny", "allow"], Field(description="Outcome of an approval that expires.")] = "deny"
    role: Annotated[Text | None, Field(min_length=1, max_length=64)] = None
    two_people: Annotated[
        bool, Field(description="If true, the author of the message that led to a call cannot approve or deny it.")
    ] = False


class PolicyUpdate(Body):
    """Replaces all rules of the organisation, and its approval settings. Omitted fields keep their values."""

    permissions: Permissions | None = None
    approvals: ApprovalTerms | None = None
    expected_updated_at: Annotated[
        JsonTime | None,
        Field(
            description="The `updated_at` of the policy that you read; null if it was never written. If the policy was "
            "changed meanwhile, the request is refused with 409. Omitted: the policy is replaced without a check."
        ),
    ] = None

    @property
    def expected(self) -> ExpectedPolicy | None:
        return ExpectedPolicy(self.expected_updated_at) if "expected_updated_at" in self.model_fields_set else None


class SettingsImport(Body):
    settings: Annotated[dict[str, JsonValue], Field(description="The content of a `.claude/settings.json` file.")]


def dump_terms(approvals: ApprovalTerms | None) -> JsonObject | None:
    return None if approvals is None else approvals.model_dump()


def check_hosts(permissions: Permissions | None, access: HookAccess) -> None:
    if permissions is not None:
        check_hook_hosts(permissions.hooks, access)


def dump_permissions(permissions: Permissions | None) -> JsonObject:
    return {} if permissions is None else permissions.model_dump(exclude_none=True)


def serialize_permissions(permissions: JsonObject) -> JsonObject:
    hooks: JsonObject = {"hooks": permissions["hooks"]} if permissions.get("hooks") else {}
    lists = (PermissionOutcome.DENY, PermissionOutcome.ASK, PermissionOutcome.ALLOW)
    return {**{outcome.value: permissions.get(outcome.value) or [] for outcome in lists}, **hooks}


def rules_differ(one: JsonObject, other: JsonObject) -> bool:
    """Compares two sets of rules. An absent list and an empty list are equal."""
    return serialize_permissions(one) != serialize_permissions(other)


def serialize_policy(policy: OrganisationPolicy) -> JsonObject:
    return {
        "type": "policy",
        "layer": Layer.ORGANISATION.label,
        "permissions": serialize_permissions(policy.permissions),
        "approvals": {**ApprovalTerms().model_dump(), **policy.approvals},
        "updated_by": policy.principal,
        "updated_at": None if policy.updated_at is None else timestamp(policy.updated_at),
    }


def serialize_import(found: ImportedRules, settings: Mapping[str, JsonValue]) -> JsonObject:
    """Builds the response of an import. `settings` is the file, from which the hooks are imported here."""
    lists: dict[str, list[Json]] = {"deny": [], "ask": [], "allow": []}
    for layered in found.rules:
        lists[layered.rule.outcome].append(layered.rule.text)
    hooks, notes = import_hooks(settings.get("hooks"))
    if hooks and settings.get("disableAllHooks") is True:
        hooks = JsonObject()
        notes = ["hooks: not imported because the file sets disableAllHooks"]
    hooks_field: JsonObject = {"hooks": hooks} if hooks else {}
    return {
        "type": "imported_permissions",
        "permissions": {**lists, **hooks_field},
        "notes": [*found.notes, *notes],
    }
