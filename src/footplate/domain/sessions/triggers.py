"""Triggers: other systems start sessions, or add steps to one, by a signed request (a *delivery*).

A delivery has a JSON payload, whose values the steps of the trigger can use. The payload is not trusted: a value
becomes the text of a prompt or one quoted word of a command, and nothing else. The store decides about each delivery in
the transaction that creates the session, so a delivery that arrives twice takes effect once.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from footplate.domain.errors import InvalidRequest, RateLimited
from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import EVERYONE, Audience
from footplate.domain.pagination import Page
from footplate.domain.sessions import step_references
from footplate.domain.sessions.deployments import RunError, SessionTemplate
from footplate.domain.sessions.step_references import PAYLOAD_OPENING, Reference
from footplate.domain.sessions.steps import StepDefinition

MAX_TRIGGERS: Final = 1_000
"""The number of triggers of an organisation."""
DEFAULT_PER_MINUTE: Final = 60
MAX_PER_MINUTE: Final = 6_000
MAX_TITLE: Final = 200
"""Characters of a title with the values of a payload."""
MIN_RETENTION: Final = timedelta(hours=1)
"""How long a delivery is stored at least. Signatures are valid for five minutes before and after their time, so a
delivery that is repeated later is refused, and the row is needed for ten minutes."""
_PAYLOAD: Final = "payload"


class DeliveryOutcome(StrEnum):
    SESSION_CREATED = "session_created"
    STEPS_ADDED = "steps_added"
    IGNORED = "ignored"
    """The condition of the trigger is false."""
    FAILED = "failed"
    """Nothing was changed. The same delivery may be sent again."""


class TriggerLimitExceeded(RateLimited):
    code = "limit_exceeded"

    def __init__(self, max_per_minute: int, retry_after: float) -> None:
        super().__init__(
            f"This trigger accepts {max_per_minute} deliveries per minute, and has received them.",
            help_text="Send the delivery again later, with the same `webhook-id`.",
            retry_after=retry_after,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerDefinition:
    """The fields of a trigger that clients set."""

    name: str
    template: SessionTemplate
    """What each session is created with. For an existing session, only its steps are used."""
    session_id: str | None = None
    """The session that gets the steps. None: each delivery creates a session."""
    environment_id: str | None = None
    """Required for new sessions."""
    title: str | None = None
    """The title of new sessions, in which references to the payload are replaced. None: the name of the trigger."""
    condition: str | None = None
    """A CEL expression over the payload. If it is false, the delivery is ignored."""
    max_per_minute: int = DEFAULT_PER_MINUTE
    description: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    audience: Audience = EVERYONE
    is_paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A trigger without its secrets."""

    id: str
    organisation: str
    definition: TriggerDefinition
    principal_id: str
    """In whose name deliveries act: who created or changed it last."""
    owner_id: str
    old_secret_expires_at: datetime | None
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerKeys:
    """What is needed to verify a delivery."""

    organisation: str
    secrets: Sequence[str]
    """The current secret, and the previous one while it is valid."""
    principal: Principal | None
    """In whose name the delivery acts. None: the member is disabled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedDelivery:
    """A delivery whose signature was verified."""

    trigger_id: str
    delivery_id: str
    """The id that the sender gave it. A retry has the same one."""
    body_hash: bytes
    payload: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerDelivery:
    """What a delivery has done."""

    id: str
    trigger_id: str
    delivery_id: str
    outcome: DeliveryOutcome
    session_id: str | None
    error: RunError | None
    attempts: int
    created_at: datetime
    attempted_at: datetime


@dataclass(frozen=True, slots=True)
class DeliveredWork:
    """What a delivery starts: the steps with the values of its payload, and the title of a new session."""

    title: str
    steps: Sequence[tuple[StepDefinition, JsonObject]]


CheckCommand = Callable[[str], None]
"""Raises `InvalidRequest` for a command with a reference in a place where it is not allowed."""


def check_definition(definition: TriggerDefinition, check_command: CheckCommand) -> None:
    """Raise `InvalidRequest` for a condition that is not valid, or a reference in a place where it is not allowed."""
    if definition.condition is not None:
        step_references.check_condition(definition.condition, where="condition", variable=_PAYLOAD)
    title = definition.title or ""
    if len(_find_payload_references([title], "title")) != title.count("${"):
        raise InvalidRequest(
            "title: only references to the payload can be used in a title, such as ${payload.KEY}", field="title"
        )
    for number, (step, overrides) in enumerate(definition.template.steps):
        where = f"steps.{number}"
        _find_payload_references(step.reference_texts, where)
        for command in [step.command, *(request.text or "" for request in step.requests if request.steps[0].command)]:
            check_command(command)
        allowed = sum(text.count(PAYLOAD_OPENING) for text in step.reference_texts)
        if sum(text.count(PAYLOAD_OPENING) for text in _strings_of([step.dump(), overrides])) != allowed:
            raise InvalidRequest(
                f"{where}: a reference to the payload cannot be used in this field",
                field=where,
                help_text="Use it in the text of a prompt, in a command, in the instructions of an external step, or "
                "in the message of a commit. For `steps` of a parallel session, use it in an earlier step instead.",
            )


def is_met(definition: TriggerDefinition, payload: JsonObject) -> bool:
    """Return whether a delivery acts. Raises `Permanent` if the condition has no value for this payload."""
    condition = definition.condition
    return condition is None or step_references.evaluate_condition(condition, payload, variable=_PAYLOAD)


def build_work(definition: TriggerDefinition, payload: JsonObject) -> DeliveredWork:
    """Return what a delivery starts. Raises `InvalidRequest` if the payload has not the value of a reference."""

    def value_of(reference: Reference) -> str:
        return find_value(payload, reference.path or "")

    title = definition.name
    if definition.title is not None:
        title = step_references.replace_references(definition.title, value_of, with_payload=True)
    work = []
    for step, overrides in definition.template.steps:
        references = _find_payload_references(step.reference_texts, "steps")
        values = {reference.path or "": value_of(reference) for reference in references}
        work.append((replace(step, payload_values=values) if values else step, overrides))
    return DeliveredWork(" ".join(title.split())[:MAX_TITLE] or definition.name, work)


def find_value(payload: JsonObject, path: str) -> str:
    """Return a value of the payload as text. Objects and lists become JSON. Raises `InvalidRequest` if it has none."""
    found: Json = payload
    for key in path.split(".") if path else ():
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isascii() and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            raise InvalidRequest(
                f"The payload has no value for ${{payload.{path}}}.",
                field=_PAYLOAD,
                help_text="Change the reference in the trigger, or add a condition such as has(payload.KEY).",
            )
    if found is None:
        return ""
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _find_payload_references(texts: Sequence[str], where: str) -> list[Reference]:
    found = [one for text in texts for one in step_references.find_references(text, where=where, with_payload=True)]
    return [reference for reference in found if reference.path is not None]


def _strings_of(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts: Sequence[Json] = ()
    if isinstance(value, Mapping):
        parts = [*value, *value.values()]
    elif isinstance(value, list):
        parts = value
    return [text for part in parts for text in _strings_of(part)]


class TriggerUnit(Protocol):
    """Changes to triggers. Who creates or changes one is the member in whose name its deliveries act. Every change is
    in the audit trail.
    """

    async def create_trigger(self, principal: Principal, definition: TriggerDefinition) -> tuple[Trigger, str]:
        """Create a trigger and return its secret, which cannot be read again."""

    async def update_trigger(
        self, principal: Principal, trigger_id: str, change: Callable[[Trigger], TriggerDefinition]
    ) -> Trigger: ...

    async def archive_trigger(self, principal: Principal, trigger_id: str) -> Trigger:
        """End a trigger for good. Its sessions and deliveries stay."""

    async def rotate_trigger_secret(
        self, principal: Principal, trigger_id: str, *, overlap: timedelta
    ) -> tuple[Trigger, str]:
        """Replace the secret and return the new one. The old one is valid too for the time of `overlap`."""


class TriggerReads(Protocol):
    async def trigger(self, principal: Principal, trigger_id: str) -> Trigger: ...
    async def triggers(self, principal: Principal, page: Page) -> Sequence[Trigger]: ...
    async def trigger_deliveries(
        self, principal: Principal, trigger_id: str, page: Page, *, outcome: DeliveryOutcome | None = None
    ) -> Sequence[TriggerDelivery]:
        """Return the deliveries of the last days."""

    async def trigger_keys(self, trigger_id: str) -> TriggerKeys | None:
        """Return what verifies a delivery. None: there is no such trigger, or it is archived. The caller is not
        authenticated, so nothing of it may be in a response.
        """
