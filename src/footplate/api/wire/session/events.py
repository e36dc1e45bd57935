"""Wire models of the events that clients send, and query parameters for lists and streams of events."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, JsonValue, StringConstraints, model_validator

from footplate.api.wire.agent.agents import TurnOverrides, normalise_definition_fields
from footplate.api.wire.policy.permissions import AllowRule
from footplate.api.wire.request_base import Body, Context, Id, Parameters, Text, UtcTime, dump_sent_fields
from footplate.api.wire.session.content import MessageContent, ResultContent
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations.roles import Permission
from footplate.domain.policy.approvals import DECIDED_BY_TURN
from footplate.domain.ports.api import AcceptedInputs, Input
from footplate.domain.sessions import events
from footplate.domain.sessions.threads import THREAD_ID
from footplate.domain.sessions.turns import WhenBusy

MAX_EVENTS: Final = 1000
MAX_INITIAL_EVENTS: Final = 50
_CHANGE_TYPE: Final = (
    r"^(session\.(created|updated|deleted|error|status_[a-z]+)|agent\.(tool_use|mcp_tool_use|custom_tool_use)"
    r"|user\.tool_confirmation|(step|question|batch|deployment|deployment_run)\.[a-z_.]+"
    r"|(inbox|session_comment|session_template|session_pin)\.changed)$"
)
"""The event types of the feed (`domain/sessions/feed.py`)."""

EventType = Literal[
    "user.message",
    "user.interrupt",
    "user.tool_confirmation",
    "user.custom_tool_result",
    "user.tool_result",
    "user.define_outcome",
    "system.message",
    "agent.message",
    "agent.thinking",
    "agent.tool_use",
    "agent.tool_result",
    "agent.custom_tool_use",
    "agent.mcp_tool_use",
    "agent.mcp_tool_result",
    "agent.thread_message_received",
    "agent.thread_message_sent",
    "agent.thread_context_compacted",
    "session.error",
    "session.updated",
    "session.usage",
    "session.status_running",
    "session.status_idle",
    "session.status_rescheduled",
    "session.status_terminated",
    "session.thread_created",
    "session.thread_status_running",
    "session.thread_status_idle",
    "session.thread_status_rescheduled",
    "session.thread_status_terminated",
    "span.model_request_start",
    "span.model_request_end",
    "span.outcome_evaluation_start",
    "span.outcome_evaluation_ongoing",
    "span.outcome_evaluation_end",
    "workflow_run.created",
    "workflow_run.status_running",
    "workflow_run.status_idle",
    "workflow_run.status_ended",
    "workflow_run.error",
    "workflow_run.phase_started",
    "workflow_run.phase_ended",
]
StepEventType = Literal[
    "step.created",
    "step.updated",
    "step.moved",
    "step.started",
    "step.call_started",
    "step.ended",
    "step.playback",
]
SetupEventType = Literal["project.setup_started", "project.setup_ended"]


class UserMessage(Body):
    type: Literal["user.message"]
    content: MessageContent
    when_busy: Literal["queue", "steer", "interrupt", "reject"] = "queue"
    overrides: TurnOverrides | None = None
    context: Context | None = None

    def to_input(self) -> Input:
        content: list[Json] = [dump_sent_fields(block) for block in self.content]
        return Input(
            type=events.USER_MESSAGE,
            body={"content": content},
            when_busy=WhenBusy(self.when_busy),
            overrides=normalise_definition_fields(self.overrides) if self.overrides is not None else {},
            context=self.context or {},
        )


class UserInterrupt(Body):
    type: Literal["user.interrupt"]
    session_thread_id: Annotated[
        Id | None, Field(description="Stops only this thread of a subagent. Default: the turn with all its threads.")
    ] = None

    def to_input(self) -> Input:
        body: JsonObject = {} if self.session_thread_id is None else {THREAD_ID: self.session_thread_id}
        return Input(type=events.USER_INTERRUPT, body=body)


class UserCustomToolResult(Body):
    type: Literal["user.custom_tool_result"]
    custom_tool_use_id: Id
    content: ResultContent | None = None
    is_error: bool | None = None

    def to_input(self) -> Input:
        content: list[Json] = [dump_sent_fields(block) for block in self.content or ()]
        return Input(
            type=events.USER_CUSTOM_TOOL_RESULT,
            body={
                "custom_tool_use_id": self.custom_tool_use_id,
                "content": content,
                "is_error": bool(self.is_error),
            },
        )


class UserToolConfirmation(Body):
    """A person's decision on a call that waits for approval."""

    type: Literal["user.tool_confirmation"]
    tool_use_id: Id
    result: Literal["allow", "deny"]
    deny_message: Annotated[Text, StringConstraints(max_length=10_000)] | None = None
    updated_input: Annotated[
        dict[str, JsonValue] | None, Field(description="The call runs with this input instead of the model's.")
    ] = None
    session_rule: Annotated[
        AllowRule | None, Field(description="A rule that allows similar calls for the rest of the session.")
    ] = None

    @model_validator(mode="after")
    def _check_result_fields(self) -> Self:
        if self.deny_message is not None and self.result != "deny":
            raise ValueError("`deny_message` requires the result `deny`")
        if self.result != "allow" and (self.updated_input is not None or self.session_rule is not None):
            raise ValueError("`updated_input` and `session_rule` require the result `allow`")
        return self

    def to_input(self) -> Input:
        extras = ("deny_message", "updated_input", "session_rule")
        optional_fields: JsonObject = {name: value for name in extras if (value := getattr(self, name)) is not None}
        body: JsonObject = {"tool_use_id": self.tool_use_id, "result": self.result, **optional_fields}
        return Input(type=events.USER_TOOL_CONFIRMATION, body=body)


UserEvent: TypeAlias = UserMessage | UserInterrupt | UserToolConfirmation | UserCustomToolResult


class SendEvents(Body):
    events: Annotated[
        list[Annotated[UserEvent, Field(discriminator="type")]], Field(min_length=1, max_length=MAX_EVENTS)
    ]


def required_permission(event_type: str) -> Permission:
    """Returns the permission that sending an event requires."""
    return Permission.APPROVE if event_type == events.USER_TOOL_CONFIRMATION else Permission.OPERATE


def to_inputs(sent: Sequence[UserEvent]) -> list[Input]:
    return [event.to_input() for event in sent]


def serialize_sent_events(accepted: AcceptedInputs) -> list[Json]:
    """Returns the sent events in their latest state, each once, without events that the server added."""
    sent = [position for position in accepted.positions if _is_input(position)]
    latest = {position.event.id: events.to_wire(position) for position in sent}
    return list(latest.values())


def _is_input(position: events.Position) -> bool:
    """Whether a client sent the event. Calls that an interrupt closes are decided by the turn."""
    body = position.event.body
    return position.event.type.startswith("user.") and DECIDED_BY_TURN not in {
        body.get("decided_by"),
        body.get("answered_by"),
    }


WithExtensions = Annotated[
    bool, Field(description="Include event types that the reference API does not have, such as `step.*`.")
]


class ListEvents(Parameters):
    limit: Annotated[int, Field(ge=1, le=MAX_EVENTS)] = MAX_EVENTS
    order: Literal["asc", "desc"] | None = None
    page: Text | None = None
    types: Annotated[
        list[Literal[EventType, StepEventType, SetupEventType]],
        Field(alias="types[]", default_factory=list, description="`step.*` only with `extensions=true`."),
    ]
    created_at_gt: Annotated[UtcTime | None, Field(alias="created_at[gt]")] = None
    created_at_gte: Annotated[UtcTime | None, Field(alias="created_at[gte]")] = None
    created_at_lt: Annotated[UtcTime | None, Field(alias="created_at[lt]")] = None
    created_at_lte: Annotated[UtcTime | None, Field(alias="created_at[lte]")] = None
    extensions: WithExtensions = False

    def check_types(self) -> None:
        """Raises `InvalidRequest` for types that only a list with extensions has."""
        if not self.extensions and any(events.is_extension(name) for name in self.types):
            raise InvalidRequest(
                "types[]: a type of the reference API, unless the list includes the types of Footplate",
                field="types[]",
                help_text="Add `extensions=true`, or leave out the types that start with `step.` or `project.`.",
            )


class StreamFeed(Parameters):
    """`after` is the ID of the last frame received, for clients that cannot set `Last-Event-ID`."""

    after: Text | None = None
    types: Annotated[
        list[Annotated[Text, StringConstraints(pattern=_CHANGE_TYPE)]],
        Field(alias="types[]", default_factory=list, description="Only changes of these event types."),
    ]
    session_id: Annotated[Text | None, Field(description="Only changes of this session.")] = None
    project_id: Annotated[Text | None, Field(description="Only changes of sessions with this project.")] = None


class StreamEvents(Parameters):
    """`after` is the ID of the last frame received, for clients that cannot set `Last-Event-ID`."""

    after: Text | None = None
    event_deltas: Annotated[
        list[Literal["agent.message", "agent.thinking"]], Field(alias="event_deltas[]", default_factory=list)
    ]
    extensions: WithExtensions = False
