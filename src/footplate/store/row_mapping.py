"""Converts database rows to domain objects."""

from datetime import datetime
from typing import Any

import asyncpg

from footplate.domain.agents.agents_and_config import Agent, EnvironmentRecord
from footplate.domain.json import JsonObject
from footplate.domain.organisations.visibility import Audience
from footplate.domain.ports.deployment_health import WorkerDescription, WorkerRecord
from footplate.domain.sessions.activity import ActivityFacts, derive_activity
from footplate.domain.sessions.activity_message import ActivityDetails, describe_activity
from footplate.domain.sessions.ending import EndOutcome, SessionEnd
from footplate.domain.sessions.events import Event, Position, Usage
from footplate.domain.sessions.steps import PauseReason
from footplate.domain.sessions.turns import (
    Activity,
    ActivityState,
    ForkedFrom,
    Mode,
    Session,
    SessionState,
    SessionStatus,
    Turn,
    TurnStatus,
)

Row = asyncpg.Record


def load_position(row: Row) -> Position:
    return Position(
        seq=row["seq"],
        event=Event(row["type"], row["body"] or {}, row["event_id"]),
        created_at=row["created_at"],
        processed_at=row["processed_at"],
        turn_id=row["turn_id"],
    )


def load_usage(row: Row) -> Usage:
    return Usage(
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        cache_read_tokens=row["cache_read"],
        cache_write_tokens=row["cache_write"],
        requests=row["requests"],
        cost_microusd=row["cost_microusd"],
    )


def load_turn(row: Row) -> Turn:
    return Turn(
        id=row["id"],
        session_id=row["session_id"],
        status=TurnStatus(row["status"]),
        attempt=row["attempt"],
        failures=row["failures"],
        handovers=row["handed_over"],
        input_event_id=row["input_event_id"],
        first_seq=row["first_seq"],
        config=row["config"],
        usage=load_usage(row),
        tools={name: (calls, failed, us / 1e6) for name, (calls, failed, us) in (row["tools"] or {}).items()},
        last_interaction_at=row["last_interaction_at"],
        result=row["result"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
    )


def load_session(row: Row) -> Session:
    activity, state = load_activity(row)
    return Session(
        id=row["id"],
        organisation=row["organisation"],
        agent=row["agent"],
        environment_id=row["environment_id"],
        backend=row["environment"].get("backend"),
        environment=row["environment"],
        status=SessionStatus(row["status"]),
        activity=activity,
        state=state,
        activity_message=describe_activity(activity, _activity_details(row)),
        activity_since=_activity_since(row, activity),
        title=row["title"],
        metadata=row["metadata"],
        context=row["context"],
        usage=load_usage(row),
        last_interaction_at=row.get("last_interaction_at"),
        active_seconds=row["active_seconds"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        archived_at=row["archived_at"],
        forked_from=_forked_from(row["fork"]),
        mode=Mode(row["mode"]),
        project_ids=row["project_ids"],
        project_names={each["id"]: each["name"] for each in row.get("projects") or ()},
        workspace_id=row["workspace_id"],
        bases=row["bases"],
        resources=row["resources"],
        permissions=row["permissions"],
        created_by=row["principal"],
        owner_id=row["owner"] or row["principal"],
        owner_name=row.get("owner_name"),
        audience=Audience.load(row["visible_to"]),
        ends_when_done=row["ends_when_done"],
        end=_session_end(row),
        group_id=row["group_id"],
        parent_id=row.get("parent_id"),
        deployment_id=row.get("deployment_id"),
        conversation_id=row.get("conversation_id"),
    )


def load_activity(row: Row) -> tuple[Activity, SessionState]:
    """A row of a session that was just inserted has only the status."""
    last_turn = row.get("last_turn") or {}
    return derive_activity(
        ActivityFacts(
            status=SessionStatus(row["status"]),
            has_input=row.get("wake", False),
            is_deferred=row.get("is_deferred", False),
            has_open_turn=row.get("has_open_turn", False),
            needs_approval=row.get("needs_approval", False),
            asks_question=row.get("asks_question", False),
            holder_alive=row.get("holder_alive"),
            any_worker_alive=row.get("any_worker_alive", True),
            lacks_backend=row.get("lacks_backend", False),
            author_disabled=row.get("author_disabled", False),
            is_paused=row.get("is_paused", False),
            paused_by_group=row.get("pause_reason") == PauseReason.GROUP,
            paused_by_failure=row.get("pause_reason") == PauseReason.STEP_FAILED,
            has_failed=row.get("has_failed", False),
            last_turn=last_turn.get("status"),
            last_turn_succeeded=last_turn.get("success") is not False,
            waits_for_sessions=last_turn.get("waits_for_sessions") is True,
        )
    )


def _activity_details(row: Row) -> ActivityDetails:
    event, last_turn = row.get("current_event") or {}, row.get("last_turn") or {}
    return ActivityDetails(
        event_type=event.get("type"),
        call_name=event.get("name"),
        call_input=event.get("input"),
        pause_reason=row.get("pause_reason"),
        error=row["end_reason"] if row["ended_at"] is not None else last_turn.get("error"),
    )


def _activity_since(row: Row, activity: Activity) -> datetime | None:
    """Returns since when a session waits or works. None: it is at rest, or the time is not known."""
    if activity.state in {ActivityState.QUEUED, ActivityState.STALLED}:
        since: datetime | None = row.get("wake_at") or row.get("claimed_at")
        return since
    event = row.get("current_event")
    return None if event is None else datetime.fromisoformat(event["created_at"])


def _session_end(row: Row) -> SessionEnd | None:
    if row["ended_at"] is None:
        return None
    return SessionEnd(
        outcome=EndOutcome(row["end_outcome"]),
        reason=row["end_reason"],
        ended_by=row["ended_by"],
        ended_at=row["ended_at"],
    )


def _forked_from(fork: JsonObject | None) -> ForkedFrom | None:
    if fork is None:
        return None
    return ForkedFrom(fork["session_id"], fork["event_id"], fork["position"])  # pyrefly: ignore[bad-argument-type]  # as we stored it


def load_agent(row: Row) -> Agent:
    return Agent(**_field_values(row, Agent))


def load_worker(row: Row) -> WorkerRecord:
    return WorkerRecord(
        id=row["id"],
        host=row["host"],
        description=WorkerDescription(
            version=row["version"],
            backends=row["backends"],
            harnesses=row["harnesses"],
            max_turns=row["max_turns"],
        ),
        started_at=row["started_at"],
        last_seen_at=row["last_seen_at"],
        running_turns=row["running_turns"],
        is_alive=row["is_alive"],
    )


def load_environment(row: Row) -> EnvironmentRecord:
    return EnvironmentRecord(**_field_values(row, EnvironmentRecord))


def _field_values(row: Row, dataclass_type: type) -> dict[str, Any]:
    return {name: row[name] for name in dataclass_type.__dataclass_fields__}
