"""The feed of an organisation: the changes of its sessions that people and programs react to, in one order.

A *change* is an event of a session, the creation, archiving or deletion of a session, a change of a deployment, or a
notice that something else has changed, such as the assignment of an inbox item. Its
*position* in the feed is a number without gaps in the organisation. Each viewer receives only the changes of sessions
and deployments that it can see when they are sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations.visibility import SessionAudience, ViewFilter
from footplate.domain.sessions import comments, events, inbox, session_templates, threads
from footplate.domain.sessions.deployments import EVENT_PREFIXES
from footplate.domain.sessions.events import Position

SESSION_CREATED: Final = "session.created"
SESSION_ARCHIVED: Final = "session.archived"
"""Like the creation, it is a change without an event in the log."""
LIMIT_REACHED: Final = "limit.reached"
"""A turn waits because of a limit. It is a change without an event in the log."""
NOTICES: Final = frozenset(
    {inbox.CHANGED, comments.CHANGED, session_templates.TEMPLATE_CHANGED, session_templates.PIN_CHANGED}
)
"""Changes that only clients of the feed receive, to read again what has changed. Webhooks do not have them."""
_WITHOUT_SESSION: Final = (*EVENT_PREFIXES, session_templates.TEMPLATE_CHANGED, session_templates.PIN_CHANGED)
_STATUS_PREFIX: Final = "session.status_"
_EXTENSION_PREFIXES: Final = ("step.", "question.", "batch.")
"""Setups of projects (`project.`) are details of a turn, which the feed does not have."""
_TYPES: Final = frozenset(
    {
        SESSION_CREATED,
        events.SESSION_UPDATED,
        events.SESSION_DELETED,
        events.SESSION_ERROR,
        events.USER_TOOL_CONFIRMATION,
        events.AGENT_CUSTOM_TOOL_USE,
        threads.CREATED,
        threads.IDLE,
    }
)


def is_change(event_type: str, body: Mapping[str, Json]) -> bool:
    """Whether an event is in the feed. The triggers of migration 0035 decide the same."""
    return (
        event_type in _TYPES
        or event_type.startswith((_STATUS_PREFIX, *_EXTENSION_PREFIXES))
        or events.is_approval_request(event_type, body)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedChange:
    position: int
    session_id: str
    """For a change of a deployment or a template: its id. For a pin: the member's id."""
    session_title: str | None
    audience: SessionAudience | None
    """Who can see the session now. None: the session was deleted, and this is not its deletion."""
    event: Position | None
    """None: it no longer exists."""


@dataclass(slots=True, kw_only=True)
class FeedViewer:
    """A client of the feed: what it can see, and what it asked for."""

    organisation: str
    view: ViewFilter
    """Replaced while the feed is open, if the rights of the principal change."""
    types: frozenset[str] = frozenset()
    """Empty: all types."""
    session_id: str | None = None
    project_id: str | None = None

    def can_see(self, change: FeedChange) -> bool:
        if change.audience is None or change.event is None:
            return False
        return (
            (not self.types or change.event.event.type in self.types)
            and self.session_id in {None, change.session_id}
            and (self.project_id is None or self.project_id in change.audience.project_ids)
            and self.view.includes(change.audience)
        )


def to_wire(change: FeedChange) -> JsonObject:
    """Return the change in the form that clients receive: the event, and its session."""
    assert change.event is not None
    if change.event.event.type.startswith(_WITHOUT_SESSION):
        return events.to_wire(change.event)  # its body names what has changed
    session: JsonObject = {
        "session_id": change.session_id,
        "session_position": change.event.seq,
        "session_title": change.session_title,
    }
    return events.to_wire(change.event) | session


class FeedPositionUnusable(InvalidRequest):
    """The feed cannot resume after a position, because the next change was deleted, or the position never existed."""

    code = "feed_position_unusable"

    def __init__(self, position: int) -> None:
        super().__init__(
            f"The feed cannot resume after position {position}: later changes were already deleted, or there is no "
            "such position.",
            field="after",
            help_text="List the sessions again, then connect without a position.",
        )
