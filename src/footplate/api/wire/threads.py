"""Threads on the wire. A session has one, its primary: its events are the session's own."""

from typing import Annotated, Final

from pydantic import Field

from footplate.api.wire.base import Parameters, Text, optional_timestamp, timestamp
from footplate.api.wire.events import MAX_EVENTS
from footplate.api.wire.sessions import Status, stats, usage
from footplate.domain.json import JsonObject
from footplate.domain.threads import primary_id
from footplate.domain.turns import Session

_NOT_REPEATED: Final = frozenset({"multiagent"})


class ListThreads(Parameters):
    limit: Annotated[int, Field(ge=1, le=1000)] = 1000
    page: Text | None = None
    statuses: Annotated[list[Status], Field(alias="statuses[]", default_factory=list)]


class ListThreadEvents(Parameters):
    limit: Annotated[int, Field(ge=1, le=MAX_EVENTS)] = MAX_EVENTS
    page: Text | None = None


def answer(session: Session) -> JsonObject:
    """The primary thread."""
    return {
        "id": primary_id(session.id),
        "type": "session_thread",
        "session_id": session.id,
        "parent_thread_id": None,
        "agent": {name: value for name, value in session.agent.items() if name not in _NOT_REPEATED},
        "status": session.status.value,
        "stats": {**stats(session), "startup_seconds": 0.0},
        "usage": {**usage(session.usage), "active_seconds": session.active_seconds},
        "created_at": timestamp(session.created_at),
        "updated_at": timestamp(session.updated_at),
        "archived_at": optional_timestamp(session.archived_at),
    }
