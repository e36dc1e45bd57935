"""The tools with which an agent starts child sessions, waits for them and sends them messages.

Both `native` and `claude` use this module. `spawn_sessions` and `message_session` take effect once for each event of a
call, so a call whose result was lost with its worker is made again with the same event. `wait_sessions` parks the turn
until the group has a result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from footplate import failpoints
from footplate.domain.agents.agents_and_config import CustomTool
from footplate.domain.errors import Refused
from footplate.domain.json import JsonObject, as_object
from footplate.domain.ports.child_sessions import ChildSessions
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import groups
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.groups import MESSAGE_SESSION, SPAWN_SESSIONS, WAIT_SESSIONS, ChildRequest
from footplate.domain.sessions.steps import StepDefinition, StepKind

REPEATABLE_TOOLS: Final = frozenset(groups.SESSION_TOOLS)
"""Tools that take effect at most once for each event of a call, so a call without a result can be made again."""
_MAX_PROMPT_CHARACTERS: Final = 100_000
_ALREADY_WAITING: Final = "Another call already waits for the group {group_id}. Its result is the result of the group."
_UNAVAILABLE: Final = "This session cannot start others. Do the work in this session."


class SessionToolInput(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ChildSession(SessionToolInput):
    prompt: str = Field(
        min_length=1,
        max_length=_MAX_PROMPT_CHARACTERS,
        description="The whole task. The session does not see this conversation.",
    )
    name: str | None = Field(None, min_length=1, max_length=64, description="A short name for the result.")


class SpawnSessions(SessionToolInput):
    """Start other sessions that work on separate tasks in parallel. Each one has your tools and a copy of your files
    as they are now, but does not see this conversation, and its changes do not reach your files. Returns at once with
    the ID of the group and the IDs of the sessions. Call wait_sessions for the results. Sessions that have not ended
    when your turn ends are cancelled.
    """

    sessions: list[ChildSession] = Field(
        min_length=1, max_length=groups.MAX_MEMBERS, description="The sessions to start."
    )
    max_running: int | None = Field(
        None,
        ge=1,
        le=groups.MAX_MEMBERS,
        description=f"How many of them may run at the same time. Default: {groups.DEFAULT_MAX_RUNNING}.",
    )


class WaitSessions(SessionToolInput):
    """Wait until all sessions of a group have ended. Returns for each one how it ended, and its last message."""

    group_id: str = Field(min_length=1, max_length=200, description="The ID that spawn_sessions returned.")


class MessageSession(SessionToolInput):
    """Send a message to a session that you started and that has not ended. It reads the message when it has finished
    what it is doing. Its response is part of the result of its group.
    """

    session_id: str = Field(min_length=1, max_length=200, description="The ID of a session from spawn_sessions.")
    text: str = Field(min_length=1, max_length=_MAX_PROMPT_CHARACTERS, description="The message.")


INPUTS: Final[dict[str, type[SessionToolInput]]] = {
    SPAWN_SESSIONS: SpawnSessions,
    WAIT_SESSIONS: WaitSessions,
    MESSAGE_SESSION: MessageSession,
}


@dataclass(frozen=True, slots=True)
class SessionToolResult:
    text: str
    is_error: bool = False


class SessionTools:
    """The session tools in one attempt of a turn."""

    def __init__(self, turn: TurnContext) -> None:
        self._turn = turn
        self._pending = {_group_id(event): event for event in _pending(turn.turn_events)}
        """The calls that wait for groups, by group ID."""

    async def run(self, name: str, arguments: JsonObject, use_id: str) -> SessionToolResult:
        """Run a call that does not park the turn. `use_id`: the event of the call, which is in the log. What is refused
        is a result for the model.
        """
        if (children := self._turn.children) is None:
            return SessionToolResult(_UNAVAILABLE, is_error=True)
        try:
            return SessionToolResult(await self._run(children, INPUTS[name].model_validate(arguments), use_id))
        except ValidationError as error:
            return SessionToolResult(validation_message(name, error), is_error=True)
        except Refused as error:
            return SessionToolResult(error.advice, is_error=True)

    async def parks(self, name: str, arguments: JsonObject) -> bool:
        """Whether the turn parks for this call. Otherwise `run` returns a result at once: that of a group that has
        ended, or the reason why the call is refused.
        """
        if name != WAIT_SESSIONS or self._turn.children is None or not is_valid(name, arguments):
            return False
        group_id = str(arguments["group_id"])
        if group_id in self._pending:
            return False
        found = await self._turn.children.find_result(group_id)
        return found is not None and not found.has_ended

    async def start_waiting(self, arguments: JsonObject, *, call_id: str) -> Event:
        """Log a call that waits for a group, and connect the group with it. The turn parks for the event."""
        event = groups.waiting_call(WAIT_SESSIONS, arguments, call_id=call_id)
        await self._turn.log.append([event])
        self._pending[str(arguments["group_id"])] = event
        await failpoints.hit("after_ask")
        await self._connect(event)
        return event

    async def wait_again(self) -> None:
        """Connect the groups with the calls that wait for them. An earlier attempt may have been lost before it did."""
        for event in [*self._pending.values()]:
            await self._connect(event)

    async def _connect(self, event: Event) -> None:
        """A group that has ended in the meantime has its result logged. The turn then resumes as soon as it parks."""
        if (children := self._turn.children) is not None:
            result = await children.wait(event.id, _group_id(event))
            if result is not None and result.waited_for_by != event.id:
                await self._turn.log.append([groups.result_event(event.id, result)])

    async def _run(self, children: ChildSessions, given: SessionToolInput, use_id: str) -> str:
        match given:
            case SpawnSessions():
                requests = [_to_request(session) for session in given.sessions]
                group = await children.spawn(use_id, requests, max_running=given.max_running)
                lines = [f"Started {len(group.session_ids)} sessions. Group ID: {group.id}"]
                for number, (session_id, name) in enumerate(zip(group.session_ids, group.names, strict=True), 1):
                    lines.append(f"{name or number}: {session_id}")
                return "\n".join(lines)
            case MessageSession():
                await children.send_message(given.session_id, given.text, use_id)
                return f"The message was sent to {given.session_id}."
            case WaitSessions():
                if given.group_id in self._pending:
                    raise Refused(_ALREADY_WAITING.format(group_id=given.group_id))
                if (result := await children.find_result(given.group_id)) is None:
                    raise Refused(
                        f"There is no group {given.group_id!r}.", help_text="Use the ID that spawn_sessions returned."
                    )
                return result.text
        raise AssertionError(given)


def custom_tools(enabled: Sequence[str]) -> tuple[CustomTool, ...]:
    """The definitions of the enabled session tools, in the form of custom tools."""
    return tuple(
        CustomTool(name=name, description=_description(model), input_schema=model.model_json_schema())
        for name, model in INPUTS.items()
        if name in enabled
    )


def is_valid(name: str, arguments: JsonObject) -> bool:
    try:
        INPUTS[name].model_validate(arguments)
    except ValidationError:
        return False
    return True


def validation_message(name: str, error: ValidationError) -> str:
    """The result of a call whose input is not valid, for the model."""
    problems = [f"{'.'.join(str(place) for place in item['loc']) or 'input'}: {item['msg']}" for item in error.errors()]
    return f"The input of {name} is not valid. {'; '.join(problems)}."


def _description(model: type[SessionToolInput]) -> str:
    return " ".join((model.__doc__ or "").split())


def _to_request(session: ChildSession) -> ChildRequest:
    prompt = StepDefinition(kind=StepKind.PROMPT, content=(ev.text_block(session.prompt),), is_literal=True)
    return ChildRequest(steps=(prompt,), name=session.name)


def _pending(turn_events: Sequence[Event]) -> list[Event]:
    resolved = {
        event.body.get("custom_tool_use_id") for event in turn_events if event.type == ev.USER_CUSTOM_TOOL_RESULT
    }
    return [
        event
        for event in turn_events
        if event.type == ev.AGENT_CUSTOM_TOOL_USE and groups.is_waiting_call(event) and event.id not in resolved
    ]


def _group_id(event: Event) -> str:
    return str(as_object(event.body.get("input")).get("group_id"))
