"""Wire models of threads: the primary thread of a session, and the threads of its subagents."""

from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import Field

from footplate.api.wire.request_base import Parameters, Text, optional_timestamp, timestamp
from footplate.api.wire.session.events import MAX_EVENTS
from footplate.api.wire.session.sessions import Status, serialize_stats, serialize_token_usage
from footplate.domain.agents.agents_and_config import fill_default_policies
from footplate.domain.json import JsonObject
from footplate.domain.sessions.threads import Thread, primary_id
from footplate.domain.sessions.turns import Session, SessionStatus

_OMITTED_AGENT_FIELDS: Final = frozenset({"multiagent"})
_UNKNOWN_AGENT: Final[JsonObject] = {
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


def serialize_primary_thread(session: Session) -> JsonObject:
    """Builds the response for the primary thread."""
    return {
        **_shared_fields(session),
        "id": primary_id(session.id),
        "parent_thread_id": None,
        "agent": {
            name: value
            for name, value in fill_default_policies(session.agent).items()
            if name not in _OMITTED_AGENT_FIELDS
        },
        "status": session.status.value,
        "stats": {**serialize_stats(session), "startup_seconds": 0.0},
        "usage": {**serialize_token_usage(session.usage), "active_seconds": session.active_seconds},
        "created_at": timestamp(session.created_at),
        "updated_at": timestamp(session.updated_at),
    }


def serialize_subagent_thread(session: Session, thread: Thread) -> JsonObject:
    token_usage = thread.usage
    return {
        **_shared_fields(session),
        "id": thread.id,
        "parent_thread_id": primary_id(session.id),
        "agent": _find_subagent(session, thread.agent_name),
        "status": thread_status(session, thread),
        "stats": {
            "active_seconds": thread.active_seconds,
            "duration_seconds": max(0.0, round((datetime.now(UTC) - thread.created_at).total_seconds(), 3)),
            "startup_seconds": 0.0,
        },
        "usage": None
        if token_usage is None
        else {**serialize_token_usage(token_usage), "active_seconds": thread.active_seconds},
        "created_at": timestamp(thread.created_at),
        "updated_at": timestamp(thread.updated_at),
    }


def thread_status(session: Session, thread: Thread) -> str:
    """Returns the thread's status. A thread runs only while its session runs: a failed turn leaves nothing running."""
    is_active = thread.is_running or session.status is SessionStatus.TERMINATED
    return session.status.value if is_active else SessionStatus.IDLE.value


def _shared_fields(session: Session) -> JsonObject:
    return {
        "type": "session_thread",
        "session_id": session.id,
        "archived_at": optional_timestamp(session.archived_at),
        "workflow_run_id": None,
    }


def _find_subagent(session: Session, name: str) -> JsonObject:
    """Returns the subagent that the session stores under this name. A fork with another agent may not have it; then
    only the name is known.
    """
    multiagent = session.agent.get("multiagent")
    members = multiagent.get("agents") if isinstance(multiagent, dict) else None
    for member in members if isinstance(members, list) else []:
        if isinstance(member, dict) and member.get("name") == name:
            return fill_default_policies(member)
    return {**_UNKNOWN_AGENT, "name": name}
