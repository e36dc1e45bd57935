"""Permission rules on the wire: Claude Code's own lists. One that cannot be read is refused here, with its position."""

from functools import partial
from typing import Annotated, Final

from pydantic import AfterValidator, Field, JsonValue

from footplate.api.wire.base import Body, timestamp
from footplate.domain.json import Json, JsonObject
from footplate.domain.permissions import Layer, Outcome, Written
from footplate.gate.errors import InvalidRule
from footplate.gate.rules import parse_rule
from footplate.gate.settings import Imported

MAX_RULES: Final = 1000


def _readable(text: str, *, outcome: Outcome) -> str:
    try:
        parse_rule(text, outcome)
    except InvalidRule as error:
        advice = f". {error.help_text}" if error.help_text else ""
        raise ValueError(f"at character {error.position}, {error.problem}{advice}") from None
    return text


def _rule(outcome: Outcome) -> AfterValidator:
    return AfterValidator(partial(_readable, outcome=outcome))


class Permissions(Body):
    """Rules of one layer. `deny` comes before `ask`, and `ask` before `allow`, whichever layer wrote them."""

    deny: Annotated[list[Annotated[str, _rule(Outcome.DENY)]], Field(max_length=MAX_RULES, default_factory=list)]
    ask: Annotated[list[Annotated[str, _rule(Outcome.ASK)]], Field(max_length=MAX_RULES, default_factory=list)]
    allow: Annotated[list[Annotated[str, _rule(Outcome.ALLOW)]], Field(max_length=MAX_RULES, default_factory=list)]


class PolicyUpdate(Body):
    """The organisation's rules, as a whole."""

    permissions: Permissions


class SettingsImport(Body):
    settings: Annotated[dict[str, JsonValue], Field(description="The content of a `.claude/settings.json`.")]


def stored(permissions: Permissions | None) -> JsonObject:
    return {} if permissions is None else permissions.model_dump()


def shown(permissions: JsonObject) -> JsonObject:
    return {
        outcome.value: permissions.get(outcome.value) or [] for outcome in (Outcome.DENY, Outcome.ASK, Outcome.ALLOW)
    }


def answer(policy: Written) -> JsonObject:
    return {
        "type": "policy",
        "layer": Layer.ORGANISATION.label,
        "permissions": shown(policy.permissions),
        "updated_by": policy.principal,
        "updated_at": None if policy.updated_at is None else timestamp(policy.updated_at),
    }


def imported(found: Imported) -> JsonObject:
    lists: dict[str, list[Json]] = {"deny": [], "ask": [], "allow": []}
    for placed in found.rules:
        lists[placed.rule.outcome].append(placed.rule.text)
    return {"type": "imported_permissions", "permissions": {**lists}, "notes": [*found.notes]}
