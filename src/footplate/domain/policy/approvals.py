"""Data types for approvals (tool calls that wait for a person's decision) and the policy that says who may decide."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from footplate.domain.errors import Forbidden
from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page

DECIDED_BY_TIMEOUT: Final = "clock"
"""The recorded decider when a request for approval expired."""

DECIDED_BY_TURN: Final = "turn"
"""The recorded decider when the turn closed a request itself, because the process that held the call gave up or
was lost."""


MAX_EDIT_CHARACTERS: Final = 100_000
"""Characters in an edited input that waits for another person's approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A tool call that waits for a person's decision, or a question that waits for a person's reply."""

    id: str
    """The id of the event that requests the approval."""
    session_id: str
    turn_id: str
    title: str | None
    """The title of the session."""
    body: JsonObject
    """The body of the event. Empty after the log was archived. In lists, long texts in a large body are truncated."""
    created_at: datetime
    expires_at: datetime | None = None
    closed_at: datetime | None = None
    outcome: str | None = None
    principal: str | None = None
    edited_input: JsonObject | None = None
    """The input as edited by a person, where two people have to agree. It waits for another person's approval."""
    edited_by: str | None = None
    reply: JsonObject | None = None
    """The reply to a question."""

    @property
    def status(self) -> str:
        if self.closed_at is None:
            return "pending"
        return {"allow": "allowed", "deny": "denied", "answer": "answered"}.get(self.outcome or "", "closed")


@dataclass(frozen=True, slots=True)
class InputEdit:
    """A person's edit to the input of a call."""

    event_id: str
    input: JsonObject


class InputEdited(Forbidden):
    """The editor of an input cannot approve it where two people have to agree. The edits wait for another person."""

    code = "input_edited"

    def __init__(self, session_id: str, edits: Sequence[InputEdit]) -> None:
        super().__init__(
            "This organisation requires two people, so the person who edits the input of a call cannot approve it. "
            "Your edit waits for another person.",
            help_text="Another person can approve it with their own API key: `footplate approve --edited ID`, or the "
            "same `updated_input`.",
        )
        self.session_id = session_id
        self.edits = edits


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """An organisation's requirements for approval decisions."""

    role: str | None = None
    """The role that is required to decide."""
    two_people: bool = False
    """Whether the authors of the turn's messages may not decide, and the editor of an input may not approve it."""

    @classmethod
    def load(cls, stored: Mapping[str, Json]) -> "ApprovalPolicy":
        role = stored.get("role")
        return cls(role if isinstance(role, str) else None, stored.get("two_people") is True)

    def check_may_decide(self, principal: Principal, author_ids: Collection[str | None]) -> None:
        """Raise `Forbidden` if the principal may not decide. `author_ids` are the authors of the turn's messages; an
        unknown author may be anyone.
        """
        self.check_role(principal)
        if self.two_people and (not author_ids or None in author_ids or principal.id in author_ids):
            raise Forbidden(
                "This organisation requires two people, so the person whose message led to this call cannot approve or "
                "deny it.",
                help_text="Ask another person to decide, with their own API key.",
            )

    def check_role(self, principal: Principal) -> None:
        if self.role is not None and self.role not in principal.roles:
            raise Forbidden(
                f"Approving or denying a call needs the role {self.role!r}, which this API key does not have.",
                help_text=f"Use another key, or create one: footplate api-keys create --role {self.role} --name …",
            )


class ApprovalReads(Protocol):
    async def approval(self, principal: Principal, event_id: str, *, is_question: bool = False) -> Approval: ...
    async def approvals(
        self, principal: Principal, page: Page, *, session_id: str | None = None, is_question: bool = False
    ) -> Sequence[Approval]:
        """Return the pending approvals, or the pending questions."""
