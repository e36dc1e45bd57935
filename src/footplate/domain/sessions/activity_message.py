"""Describes in words what a session does, or why it does not move. The activity has the same as a code."""

from dataclasses import dataclass
from typing import Final

from footplate.domain.sessions import events
from footplate.domain.sessions.steps import PauseReason
from footplate.domain.sessions.turns import Activity, ActivityState, StallReason

_MAX_LENGTH: Final = 200
_CALLS: Final = frozenset({"agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use"})
_REASONS: Final = {
    StallReason.NO_WORKER: "No worker is running. Start one, or ask the operator.",
    StallReason.WORKER_LOST: "Its worker was lost, and no other worker has taken over yet.",
    StallReason.AUTHOR_DISABLED: "The author of its next message is disabled. An administrator can hand over the work.",
    StallReason.TURN_LIMIT: "The limit on concurrent turns is reached.",
    StallReason.SESSIONS: "Waits for its child sessions.",
    StallReason.NO_BACKEND: "No running worker offers the backend of its next turn.",
}
_STATES: Final = {
    ActivityState.QUEUED: "Waits for a worker.",
    ActivityState.RUNNING: "The model is responding.",
    ActivityState.RETRYING: "An attempt failed temporarily, and the next one is due.",
    ActivityState.WAITING_FOR_APPROVAL: "A call waits for approval.",
    ActivityState.WAITING_FOR_ANSWER: "The agent asks a question.",
    ActivityState.WAITING_FOR_RESULT: "Waits for the result of a client.",
    ActivityState.PAUSED: "Paused. Its steps wait until someone plays the session.",
    ActivityState.LIMIT_REACHED: "The last turn reached a limit.",
    ActivityState.TIMED_OUT: "The last turn took too long.",
}
_PAUSES: Final = {
    PauseReason.STEP_FAILED: "Paused because a step failed.",
    PauseReason.GROUP: "Starts when another session of its group has ended.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityDetails:
    """What the message says beside the activity."""

    event_type: str | None = None
    """The oldest call that waits for a person, or else the last event of an open turn."""
    call_name: str | None = None
    """The name of the call, or of the project whose setup runs."""
    call_input: str | None = None
    """The command, the path or the question of the call."""
    pause_reason: str | None = None
    error: str | None = None
    """Why the last turn failed, or how the session ended."""


def describe_activity(activity: Activity, details: ActivityDetails) -> str | None:
    if activity.reason is not None:
        return _REASONS[activity.reason]
    message = _STATES.get(activity.state)
    if activity.state is ActivityState.PAUSED and details.pause_reason:
        message = _PAUSES.get(PauseReason(details.pause_reason), message)
    elif activity.state is ActivityState.RUNNING and details.event_type == events.SETUP_STARTED:
        message = f"Runs the setup of the project {details.call_name}."
    elif activity.state is ActivityState.WAITING_FOR_ANSWER and details.call_input:
        message = details.call_input
    elif (
        activity.state in {ActivityState.RUNNING, ActivityState.WAITING_FOR_APPROVAL, ActivityState.WAITING_FOR_RESULT}
        and details.event_type in _CALLS
        and details.call_name
    ):
        message = f"{details.call_name}: {details.call_input}" if details.call_input else details.call_name
    elif activity.state not in _STATES or (details.error and activity.state is not ActivityState.QUEUED):
        message = details.error or message
    if message is None or len(message) <= _MAX_LENGTH:
        return message
    return f"{message[: _MAX_LENGTH - 1]}…"
