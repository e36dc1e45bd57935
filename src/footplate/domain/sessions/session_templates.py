"""Templates for new sessions, which belong to the organisation, and the sessions that a member has pinned.

A template stores the body of the request that creates a session, as a client sent it. It is validated as that request
is. A client that uses it sends the body, with its own changes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from footplate.domain.errors import Conflict
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import EVERYONE, Audience
from footplate.domain.pagination import Page

TEMPLATE_CHANGED: Final = "session_template.changed"
"""The change of the feed when a template is created, updated or archived."""
PIN_CHANGED: Final = "session_pin.changed"
"""The change of the feed when a member pins or unpins a session. Only the member and administrators see it."""
MAX_TEMPLATES: Final = 500
"""Templates of an organisation that are not archived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTemplateDefinition:
    name: str
    description: str | None = None
    session: JsonObject
    """The body of the request that creates a session."""
    environment_id: str
    project_ids: Sequence[str] = ()
    workspace_id: str | None = None
    audience: Audience = EVERYONE


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSessionTemplate:
    id: str
    organisation: str
    name: str
    description: str | None
    session: JsonObject
    created_by: str
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


class TooManyTemplates(Conflict):
    def __init__(self) -> None:
        super().__init__(
            f"The organisation has {MAX_TEMPLATES} templates, and cannot have more.",
            help_text="Archive those that you do not need, with `footplate templates rm`.",
        )


class SessionTemplateReads(Protocol):
    async def session_template(self, principal: Principal, template_id: str) -> StoredSessionTemplate: ...
    async def session_templates(self, principal: Principal, page: Page) -> Sequence[StoredSessionTemplate]: ...


class SessionTemplateUnit(Protocol):
    async def create_session_template(
        self, principal: Principal, definition: SessionTemplateDefinition
    ) -> StoredSessionTemplate: ...
    async def update_session_template(
        self,
        principal: Principal,
        template_id: str,
        change: Callable[[StoredSessionTemplate], SessionTemplateDefinition],
    ) -> StoredSessionTemplate: ...
    async def archive_session_template(self, principal: Principal, template_id: str) -> StoredSessionTemplate:
        """Remove it from the list. Its name can be used again. Sessions that were created with it stay."""


class PinUnit(Protocol):
    async def pin_session(self, principal: Principal, session_id: str) -> bool:
        """Pin a session for the principal. False: it was pinned before."""

    async def unpin_session(self, principal: Principal, session_id: str) -> bool:
        """Unpin a session. False: it was not pinned."""
