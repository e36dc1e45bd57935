"""Asks and answers: calls that wait for a person's word, who may give it, and what becomes of one that nobody gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from footplate.domain.errors import Forbidden
from footplate.domain.json import Json, JsonObject
from footplate.domain.pages import Page
from footplate.domain.principals import Principal

CLOCK: Final = "clock"
"""Whose word it is, of an answer that nobody gave in time."""

TURN: Final = "turn"
"""Whose word it is, of an ask that could not wait any longer for a person: what held it gave up, or was lost."""


LARGEST_EDIT: Final = 100_000
"""Characters of an edited input that waits for another person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    id: str
    """Of the event that asks."""
    session_id: str
    turn_id: str
    title: str | None
    """The session's."""
    body: JsonObject
    """The event's. Empty once the log has been put away; in a list, long texts of a large one are cut."""
    created_at: datetime
    expires_at: datetime | None = None
    closed_at: datetime | None = None
    outcome: str | None = None
    principal: str | None = None
    edited_input: JsonObject | None = None
    """What a person would make the call with instead, where two people have to agree: it waits for another person."""
    edited_by: str | None = None

    @property
    def status(self) -> str:
        if self.closed_at is None:
            return "pending"
        return {"allow": "allowed", "deny": "denied"}.get(self.outcome or "", "closed")


@dataclass(frozen=True, slots=True)
class Author:
    """Who asked for a call, or edited its input."""

    id: str | None
    name: str | None = None

    def is_person(self, principal: Principal) -> bool:
        """Keys of one name are one person. An unknown author may be anybody."""
        return self.id is None or self.id == principal.id or self.name == principal.name


@dataclass(frozen=True, slots=True)
class Edit:
    """An input that a person wrote for a call."""

    event_id: str
    input: JsonObject


class InputEdited(Forbidden):
    """Who edits an input may not approve it too, where two people have to agree. The edits wait for another person."""

    code = "input_edited"

    def __init__(self, session_id: str, edits: Sequence[Edit]) -> None:
        super().__init__(
            "This organisation requires two people, so whoever edits the input of a call cannot approve it. "
            "Your edit waits for another person.",
            help_text="Another person can approve it with their own API key: `footplate approve --edited ID`, or the "
            "same `updated_input`.",
        )
        self.session_id = session_id
        self.edits = edits


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """What an organisation wants of answers."""

    role: str | None = None
    """Who answers has it."""
    two_people: bool = False
    """Whose message the turn works on does not answer, and who edits an input does not approve it."""

    @classmethod
    def load(cls, stored: Mapping[str, Json]) -> "ApprovalPolicy":
        role = stored.get("role")
        return cls(role if isinstance(role, str) else None, stored.get("two_people") is True)

    def check(self, principal: Principal, asker: Author) -> None:
        """Raises `Forbidden`. `asker`: whose message the turn works on."""
        self.check_role(principal)
        if self.two_people and asker.is_person(principal):
            raise Forbidden(
                "This organisation requires two people, so the person whose message led to this call cannot approve or "
                "deny it.",
                help_text="Ask another person to decide, with their own API key.",
            )

    def check_role(self, principal: Principal) -> None:
        if self.role is not None and self.role not in principal.roles:
            raise Forbidden(
                f"Who answers needs the role {self.role!r}, and this key has it not.",
                help_text=f"Use another key, or make one: footplate api-keys create --role {self.role} --name …",
            )


class ApprovalReads(Protocol):
    async def approval(self, principal: Principal, event_id: str) -> Approval: ...
    async def approvals(self, principal: Principal, page: Page, *, session_id: str | None = None) -> Sequence[Approval]:
        """Those that wait."""
