"""Wire models of threads: the primary thread, whose events are the session's own, and those of subagents."""

from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import Field

from footplate.api.wire.base import Parameters, Text, optional_timestamp, timestamp
from footplate.api.wire.events import MAX_EVENTS
from footplate.api.wire.sessions import Status, stats, usage
from footplate.domain.agents import shown
from footplate.domain.json import JsonObject
from footplate.domain.threads import Thread, primary_id
from footplate.domain.turns import Session, SessionStatus

_NOT_REPEATED: Final = frozenset({"multiagent"})
_UNKNOWN: Final[JsonObject] = {
    "id": "",
    "type": "agent",
    "version": 0,
    "description": None,
    "model": {"id": ""},
    "system": None,
    "tools": [],
    "mcp_servers": [],
    "skills": [],
    "execution_identity": {"type": "service_account"},
}


class ListThreads(Parameters):
    limit: Annotated[int, Field(ge=1, le=1000)] = 1000
    page: Text | None = None
    statuses: Annotated[list[Status], Field(alias="statuses[]", default_factory=list)]


class ListThreadEvents(Parameters):
    limit: Annotated[int, Field(ge=1, le=MAX_EVENTS)] = MAX_EVENTS
    page: Text | None = None


def answer(session: Session) -> JsonObject:
    """Builds the response for the primary thread."""
    return {
        **_shared(session),
        "id": primary_id(session.id),
        "parent_thread_id": None,
        "agent": {name: value for name, value in shown(session.agent).items() if name not in _NOT_REPEATED},
        "status": session.status.value,
        "stats": {**stats(session), "startup_seconds": 0.0},
        "usage": {**usage(session.usage), "active_seconds": session.active_seconds},
        "created_at": timestamp(session.created_at),
        "updated_at": timestamp(session.updated_at),
    }


def answer_of_subagent(session: Session, thread: Thread) -> JsonObject:
    token_usage = thread.usage
    return {
        **_shared(session),
        "id": thread.id,
        "parent_thread_id": primary_id(session.id),
        "agent": _agent_of(session, thread.agent_name),
        "status": status_of(session, thread),
        "stats": {
            "active_seconds": thread.active_seconds,
            "duration_seconds": max(0.0, round((datetime.now(UTC) - thread.created_at).total_seconds(), 3)),
            "startup_seconds": 0.0,
        },
        "usage": None if token_usage is None else {**usage(token_usage), "active_seconds": thread.active_seconds},
        "created_at": timestamp(thread.created_at),
        "updated_at": timestamp(thread.updated_at),
    }


def status_of(session: Session, thread: Thread) -> str:
    """Returns the thread's status. A thread runs only while its session runs: a failed turn leaves nothing running."""
    is_active = thread.works or session.status is SessionStatus.TERMINATED
    return session.status.value if is_active else SessionStatus.IDLE.value


def _shared(session: Session) -> JsonObject:
    return {
        "type": "session_thread",
        "session_id": session.id,
        "archived_at": optional_timestamp(session.archived_at),
        "workflow_run_id": None,
    }


def _agent_of(session: Session, name: str) -> JsonObject:
    """Returns the subagent that the session stores under this name. A fork with another agent may not have it; then
    only the name is known.
    """
    multiagent = session.agent.get("multiagent")
    members = multiagent.get("agents") if isinstance(multiagent, dict) else None
    for member in members if isinstance(members, list) else []:
        if isinstance(member, dict) and member.get("name") == name:
            return shown(member)
    return {**_UNKNOWN, "name": name}
