"""Hooks on the wire: Claude Code's own form. What is not asked here is refused where it is written."""

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

from footplate.api.wire.base import Body, Text
from footplate.domain.errors import InvalidRequest
from footplate.domain.hooks import FAIL_CLOSED, HookAccess, HookEvent
from footplate.domain.json import Json, JsonObject
from footplate.gate import hooks
from footplate.gate.askers import python
from footplate.gate.askers.http import not_allowed
from footplate.gate.errors import InvalidRule

MAX_HOOKS: Final = 50
Seconds = Annotated[int, Field(ge=1, le=int(hooks.LONGEST))]


def _matcher(text: str) -> str:
    try:
        hooks.matcher_of(text)
    except InvalidRule as error:
        raise ValueError(f"at character {error.position}, {error.problem}") from None
    return text


def _installed(name: str) -> str:
    if name not in (known := python.installed()):
        raise ValueError(f"no such hook is installed here; there are {', '.join(known) or 'none'}")
    return name


class CommandHook(Body):
    """A program that runs in the session's environment."""

    type: Literal["command"]
    command: Annotated[Text, Field(min_length=1, max_length=10_000)]
    timeout: Seconds = int(hooks.SECONDS)


class HttpHook(Body):
    """A server that the worker asks, signed by Standard Webhooks. Of an organisation or a project alone."""

    type: Literal["http"]
    url: Annotated[Text, Field(min_length=1, max_length=2000)]
    timeout: Seconds = int(hooks.SECONDS)


class PythonHook(Body):
    """An entry point (`footplate.hooks`) that the operator installed."""

    type: Literal["python"]
    name: Annotated[Text, Field(min_length=1, max_length=200), AfterValidator(_installed)]
    options: Annotated[dict[str, JsonValue], Field(description="For the hook itself.", default_factory=dict)]
    timeout: Seconds = int(hooks.SECONDS)


AnyHook = Annotated[CommandHook | HttpHook | PythonHook, Field(discriminator="type")]


class HookGroup(Body):
    matcher: Annotated[
        Text,
        Field(max_length=1000, description="Names of tools, as Claude Code has them; of subagents, of reasons."),
        AfterValidator(_matcher),
    ] = ""
    hooks: Annotated[list[AnyHook], Field(max_length=MAX_HOOKS)]


Groups = Annotated[list[HookGroup], Field(max_length=MAX_HOOKS)]


class Hooks(Body):
    """In Claude Code's form: who is asked before and after calls and at other moments of a session."""

    PreToolUse: Groups = Field(default_factory=list)
    PostToolUse: Groups = Field(default_factory=list)
    UserPromptSubmit: Groups = Field(default_factory=list)
    Stop: Groups = Field(default_factory=list)
    SubagentStop: Groups = Field(default_factory=list)
    PreCompact: Groups = Field(default_factory=list)
    Notification: Groups = Field(default_factory=list)

    @model_serializer(mode="wrap")
    def _moments_that_have_some(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        return {event: groups for event, groups in handler(self).items() if groups}

    def asked_by_http(self) -> Iterator[tuple[str, HttpHook]]:
        """With the place of each."""
        for event in HookEvent:
            for index, group in enumerate(getattr(self, event)):
                for number, hook in enumerate(group.hooks):
                    if isinstance(hook, HttpHook):
                        yield f"{event}.{index}.hooks.{number}.url", hook


def of_one_session(found: Hooks | None) -> Hooks | None:
    """For an agent's and a session's own: the worker is not sent anywhere by them."""
    for place, _ in found.asked_by_http() if found is not None else ():
        raise ValueError(f"{place} is a hook by HTTP, which an organisation or a project may name, and nobody else")
    return found


def check_hosts(found: Hooks | None, access: HookAccess) -> None:
    """Raises `InvalidRequest` for a host that the operator does not allow."""
    for place, hook in found.asked_by_http() if found is not None else ():
        if (why := not_allowed(access, hook.url)) is not None:
            raise InvalidRequest(why, field=f"permissions.hooks.{place}", help_text="docs/hooks.md tells more of it.")


def imported_hooks(brought: JsonValue) -> tuple[JsonObject, list[str]]:
    """The hooks of a settings file that are asked here, and what is left out and why. One that could say no, and cannot
    be asked here, is not left out: the file is refused.
    """
    taken: JsonObject = {}
    notes: list[str] = []
    for event, found in (brought if isinstance(brought, dict) else {}).items():
        if event not in {*HookEvent} or not isinstance(found, list):
            notes.append(f"hooks.{event}: not taken over: hooks are asked here at {', '.join(HookEvent)}")
            continue
        before = len(notes)
        groups = [
            kept for index, group in enumerate(found) if (kept := _group(group, f"hooks.{event}[{index}]", notes))
        ]
        if event in FAIL_CLOSED and len(notes) > before:
            place, _, why = notes[before].partition(": not taken over: ")
            raise InvalidRequest(
                f"{place} cannot be asked here: {why}. Without it the file would allow what it forbids now.",
                field=place,
                help_text="Write it as a command hook, or take it out of the file.",
            )
        if groups:
            taken[event] = [*groups]
    return taken, notes


def _group(group: JsonValue, where: str, notes: list[str]) -> JsonObject | None:
    hooks_of = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(group, dict) or not isinstance(hooks_of, list):
        notes.append(f"{where}: not taken over: it is no group of hooks")
        return None
    kept: list[Json] = []
    matcher: Json = ""
    for index, hook in enumerate(hooks_of):
        try:
            made = HookGroup.model_validate({**group, "hooks": [hook]}).model_dump()
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(step) for step in first["loc"][2:] or first["loc"])
            notes.append(f"{where}.hooks[{index}]: not taken over: {field}: {first['msg']}")
            continue
        matcher = made["matcher"]
        kept += made["hooks"]
    return {"matcher": matcher, "hooks": kept} if kept else None
