"""The events of webhooks: which ones a change of a session or deployment causes, and their payloads.

Names are those of the reference API where it has one. A payload has ids and states, and no content of the session: a
receiver reads that with its own API key.
"""

from collections.abc import Sequence
from typing import Final

from footplate.domain.json import Json, JsonObject, as_object
from footplate.domain.organisations.webhooks import WebhookEndpoint
from footplate.domain.sessions import batches, deployments, events, feed, steps, threads
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.feed import FeedChange

TEST: Final = "webhook.test"
STATUS_IDLED: Final = "session.status_idled"
REQUIRES_ACTION: Final = "session.requires_action"
RUN_STARTED: Final = "session.status_run_started"
THREAD_IDLED: Final = "session.thread_idled"
APPROVAL_REQUESTED: Final = "approval.requested"
APPROVAL_DECIDED: Final = "approval.decided"
QUESTION_ASKED: Final = "question.asked"
CUSTOM_TOOL_CALLED: Final = "custom_tool.called"

DESCRIPTIONS: Final = {
    feed.SESSION_CREATED: "was created",
    events.SESSION_UPDATED: "was updated",
    feed.SESSION_ARCHIVED: "was archived",
    events.SESSION_DELETED: "was deleted",
    RUN_STARTED: "started to work",
    STATUS_IDLED: "is idle",
    REQUIRES_ACTION: "waits for you",
    events.STATUS_RESCHEDULED: "waits for another attempt",
    events.STATUS_TERMINATED: "has ended",
    threads.CREATED: "started a subagent",
    THREAD_IDLED: "has an idle subagent",
    events.SESSION_ERROR: "had an error",
    APPROVAL_REQUESTED: "needs approval",
    APPROVAL_DECIDED: "got a decision on a call",
    QUESTION_ASKED: "asks a question",
    CUSTOM_TOOL_CALLED: "needs the result of a custom tool",
    steps.CREATED: "has a new step",
    steps.UPDATED: "has a changed step",
    steps.MOVED: "has a moved step",
    steps.STARTED: "started a step",
    "step.call_started": "started an approved command",
    steps.ENDED: "ended a step",
    steps.PLAYBACK: "was paused or continued",
    batches.JOB_ENDED: "ended as a job of a batch",
    batches.ENDED: "was the last job of a batch",
    feed.LIMIT_REACHED: "waits because a limit is reached",
    deployments.CREATED: "was created as a schedule",
    deployments.UPDATED: "was changed as a schedule",
    deployments.PAUSED: "was paused as a schedule",
    deployments.UNPAUSED: "continues as a schedule",
    deployments.ARCHIVED: "was removed as a schedule",
    deployments.RUN_SUCCEEDED: "started a session",
    deployments.RUN_FAILED: "could not start a session",
}
"""All types that an endpoint can select, and what each says about the session or deployment."""

_WORKSPACE: Final = "default"
"""The reference API divides organisations into workspaces. An organisation of Footplate has one."""
_TYPES: Final = {
    events.STATUS_RUNNING: RUN_STARTED,
    threads.IDLE: THREAD_IDLED,
    events.USER_TOOL_CONFIRMATION: APPROVAL_DECIDED,
    events.AGENT_TOOL_USE: APPROVAL_REQUESTED,
    events.AGENT_MCP_TOOL_USE: APPROVAL_REQUESTED,
}
_FIELDS: Final = (
    "attempt",
    "batch_id",
    "counts",
    "custom_id",
    "deployment_id",
    "deployment_name",
    "ended_by",
    "index",
    "outcome",
    "reason",
    "result",
    "scheduled_at",
    "session_id",
    "session_thread_id",
    "state",
    "step_id",
    "stop_reason",
    "tool_use_id",
)
"""The fields of an event that its payload has too."""
_SLACK_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "/", "*": None, "`": "'"})


def webhook_types(event: Event) -> Sequence[str]:
    """Return the types of the webhook events that an event causes. Usually it is one."""
    if event.type in feed.NOTICES:
        return ()
    if event.type == events.STATUS_IDLE:
        waits = as_object(event.body.get("stop_reason")).get("type") == "requires_action"
        return (STATUS_IDLED, REQUIRES_ACTION) if waits else (STATUS_IDLED,)
    if event.type == events.AGENT_CUSTOM_TOOL_USE:
        return (QUESTION_ASKED if event.body.get("question") else CUSTOM_TOOL_CALLED,)
    return (_TYPES.get(event.type, event.type),)


def select_types(endpoint: WebhookEndpoint, change: FeedChange) -> Sequence[str]:
    """Return the types of the events that an endpoint receives because of a change."""
    assert change.event is not None
    found = webhook_types(change.event.event)
    return [each for each in found if not endpoint.types or each in endpoint.types]


def build_payload(organisation: str, delivery_id: str, event_type: str, change: FeedChange) -> JsonObject:
    assert change.event is not None
    event = change.event.event
    details: JsonObject = {name: event.body[name] for name in _FIELDS if event.body.get(name) is not None}
    if event.type in {events.AGENT_TOOL_USE, events.AGENT_MCP_TOOL_USE, events.AGENT_CUSTOM_TOOL_USE}:
        details["tool_name"] = event.body.get("name")
    if event.type in {events.SESSION_ERROR, deployments.RUN_FAILED}:
        details["error_type"] = as_object(event.body.get("error")).get("type")
    details |= {"event_id": event.id, "event_type": event.type, "position": change.position}
    at = change.event.processed_at or change.event.created_at
    subject_id = change.session_id
    if event.type in {deployments.RUN_SUCCEEDED, deployments.RUN_FAILED}:
        subject_id = str(event.body["deployment_run_id"])
    return _envelope(organisation, delivery_id, event_type, subject_id, at.isoformat(), details)


def build_test_payload(endpoint: WebhookEndpoint, delivery_id: str, created_at: str) -> JsonObject:
    return _envelope(endpoint.organisation, delivery_id, TEST, endpoint.id, created_at, {})


def _envelope(
    organisation: str, delivery_id: str, event_type: str, subject_id: str, created_at: str, details: JsonObject
) -> JsonObject:
    data: JsonObject = {
        **details,
        "type": event_type,
        "id": subject_id,
        "organization_id": organisation,
        "workspace_id": _WORKSPACE,
    }
    return {"type": "event", "id": delivery_id, "created_at": created_at.replace("+00:00", "Z"), "data": data}


def find_session(payload: JsonObject) -> str | None:
    """Return the session that an event is about, if it is about one: of a run, the session that it started."""
    data = as_object(payload.get("data"))
    event_type = str(data.get("type"))
    found = data.get("session_id" if event_type.startswith(deployments.EVENT_PREFIXES) else "id")
    return None if found is None or event_type == TEST else str(found)


def build_slack_message(payload: JsonObject, title: str | None, link: str | None) -> JsonObject:
    """Build the message for an endpoint with the format `slack`. `link`: the address of the session, if it has one."""
    data = as_object(payload.get("data"))
    event_type, session_id = str(data.get("type")), str(data.get("id"))
    if event_type == TEST:
        return _slack_text("This is a test of a webhook from Footplate.")
    name = _escape(title or str(data.get("deployment_name") or session_id))
    subject = f"<{link}|{name}>" if link else f"*{name}*"
    outcome: Json = data.get("outcome") or data.get("state") or data.get("result") or data.get("tool_name")
    suffix = f": {_escape(str(outcome))}" if outcome else ""
    return _slack_text(f"{subject} {DESCRIPTIONS.get(event_type, event_type)}{suffix}")


def _slack_text(text: str) -> JsonObject:
    section: JsonObject = {"type": "section", "text": {"type": "mrkdwn", "text": text}}
    return {"text": text, "blocks": [section]}


def _escape(text: str) -> str:
    """Remove and escape the control characters of Slack's markup, so that a title can neither link nor mention."""
    return " ".join(text.split()).translate(_SLACK_ESCAPES)
