"""Wire models of hooks, in Claude Code's format. A request that contains an unsupported hook is rejected."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from footplate.api.wire.request_base import Body, Text
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject
from footplate.domain.policy.hooks import FAIL_CLOSED, HookAccess, HookEvent
from footplate.gate.errors import InvalidRule
from footplate.gate.hooks import hook_config
from footplate.gate.hooks.transports import python
from footplate.gate.hooks.transports.http import find_url_problem

MAX_HOOKS: Final = 50
Seconds = Annotated[int, Field(ge=1, le=int(hook_config.MAX_TIMEOUT_SECONDS))]


def _check_matcher(text: str) -> str:
    try:
        hook_config.compile_matcher(text)
    except InvalidRule as error:
        raise ValueError(f"at character {error.position}, {error.problem}") from None
    return text


def _check_installed(name: str) -> str:
    if name not in (known := python.list_installed_hooks()):
        raise ValueError(f"must be an installed hook; installed hooks: {', '.join(known) or 'none'}")
    return name


class CommandHook(Body):
    """A program that runs in the session's environment."""

    type: Literal["command"]
    command: Annotated[Text, Field(min_length=1, max_length=10_000)]
    timeout: Seconds = int(hook_config.DEFAULT_TIMEOUT_SECONDS)


class HttpHook(Body):
    """An HTTP endpoint that the worker calls. Requests are signed as in Standard Webhooks. Only for organisations and
    projects.
    """

    type: Literal["http"]
    url: Annotated[Text, Field(min_length=1, max_length=2000)]
    timeout: Seconds = int(hook_config.DEFAULT_TIMEOUT_SECONDS)


class PythonHook(Body):
    """An entry point (`footplate.hooks`) that the operator installed."""

    type: Literal["python"]
    name: Annotated[Text, Field(min_length=1, max_length=200), AfterValidator(_check_installed)]
    options: Annotated[dict[str, JsonValue], Field(description="Options for the hook.", default_factory=dict)]
    timeout: Seconds = int(hook_config.DEFAULT_TIMEOUT_SECONDS)


AnyHook = Annotated[CommandHook | HttpHook | PythonHook, Field(discriminator="type")]


class HookGroup(Body):
    matcher: Annotated[
        Text,
        Field(
            max_length=1000,
            description="In tool events, matches tool names; in other events, subagent names or reasons. "
            "Uses Claude Code's syntax.",
        ),
        AfterValidator(_check_matcher),
    ] = ""
    hooks: Annotated[list[AnyHook], Field(max_length=MAX_HOOKS)]


Groups = Annotated[list[HookGroup], Field(max_length=MAX_HOOKS)]


class Hooks(Body):
    """Hooks in Claude Code's format, by event: before and after tool calls, and at other events of a session."""

    PreToolUse: Groups = Field(default_factory=list)
    PostToolUse: Groups = Field(default_factory=list)
    UserPromptSubmit: Groups = Field(default_factory=list)
    Stop: Groups = Field(default_factory=list)
    SubagentStop: Groups = Field(default_factory=list)
    PreCompact: Groups = Field(default_factory=list)
    Notification: Groups = Field(default_factory=list)

    @model_serializer(mode="wrap")
    def _omit_empty_events(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        return {event: groups for event, groups in handler(self).items() if groups}

    def list_http_hooks(self) -> Iterator[tuple[str, HttpHook]]:
        """Yields each HTTP hook with its path in this object."""
        for event in HookEvent:
            for index, group in enumerate(getattr(self, event)):
                for number, hook in enumerate(group.hooks):
                    if isinstance(hook, HttpHook):
                        yield f"{event}.{index}.hooks.{number}.url", hook


def refuse_http_hooks(found: Hooks | None) -> Hooks | None:
    """Refuses HTTP hooks of agents and sessions, which must not make the worker call arbitrary hosts."""
    for path, _ in found.list_http_hooks() if found is not None else ():
        raise ValueError(f"{path} is an HTTP hook, which only an organisation or a project can have")
    return found


def check_hosts(found: Hooks | None, access: HookAccess) -> None:
    """Raises `InvalidRequest` for a host that the operator does not allow."""
    for path, hook in found.list_http_hooks() if found is not None else ():
        if (reason := find_url_problem(access, hook.url)) is not None:
            raise InvalidRequest(
                reason, field=f"permissions.hooks.{path}", help_text="See docs/hooks.md for allowed hosts."
            )


def import_hooks(settings_hooks: JsonValue) -> tuple[JsonObject, list[str]]:
    """Returns the supported hooks of a settings file, and notes that name each skipped hook and the reason. A file with
    an unsupported hook that could deny a call is refused instead, because skipping the hook would allow more.
    """
    imported: JsonObject = {}
    notes: list[str] = []
    for event, found in (settings_hooks if isinstance(settings_hooks, dict) else {}).items():
        if event not in {*HookEvent} or not isinstance(found, list):
            notes.append(f"hooks.{event}: not imported because only these events are supported: {', '.join(HookEvent)}")
            continue
        notes_before = len(notes)
        groups = [
            imported_group
            for index, group in enumerate(found)
            if (imported_group := _import_group(group, f"hooks.{event}[{index}]", notes))
        ]
        if event in FAIL_CLOSED and len(notes) > notes_before:
            path, _, reason = notes[notes_before].partition(": not imported because ")
            raise InvalidRequest(
                f"{path} cannot be imported: {reason}. Without it, the rules would allow more than the file does.",
                field=path,
                help_text="Rewrite it as a command hook, or remove it from the file.",
            )
        if groups:
            imported[event] = [*groups]
    return imported, notes


def _import_group(group: JsonValue, where: str, notes: list[str]) -> JsonObject | None:
    listed_hooks = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(group, dict) or not isinstance(listed_hooks, list):
        notes.append(f"{where}: not imported because it is not a group of hooks")
        return None
    imported: list[Json] = []
    matcher: Json = ""
    for index, hook in enumerate(listed_hooks):
        try:
            validated = HookGroup.model_validate({**group, "hooks": [hook]}).model_dump()
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(step) for step in first["loc"][2:] or first["loc"])
            notes.append(f"{where}.hooks[{index}]: not imported because of an error in `{field}`: {first['msg']}")
            continue
        matcher = validated["matcher"]
        imported += validated["hooks"]
    return {"matcher": matcher, "hooks": imported} if imported else None
