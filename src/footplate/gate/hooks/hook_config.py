"""Parses the hooks of a layer (organisation, project, agent or session), which are stored with its rules in Claude
Code's format.

A command hook runs in the session's environment. An HTTP hook is a request from the worker to a server, so only
organisations and projects may configure one. A Python hook is an entry point that the operator installs; it runs in a
process beside the worker.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from footplate.domain.json import Json, JsonObject
from footplate.domain.policy.hooks import HookEvent
from footplate.domain.policy.permissions import Layer
from footplate.domain.text.linear_regex import MAX_CHARACTERS, LinearRegex, UnsupportedPattern
from footplate.gate.errors import InvalidRule

DEFAULT_TIMEOUT_SECONDS: Final = 60.0
MAX_TIMEOUT_SECONDS: Final = 600.0
ENTRY_POINT_GROUP: Final = "footplate.hooks"
"""The entry point group of Python hooks."""
_MAX_SHOWN_CHARACTERS: Final = 80
_MAX_BYTES: Final = 16 * 1024
"""Size limit of a compiled matcher. Every call is matched against all matchers."""
_MAX_NAME: Final = 200
"""Characters. Only this many characters of a name are matched."""
_NAME_LIST: Final = re.compile(r"[A-Za-z0-9_|, ]*[A-Za-z0-9_][A-Za-z0-9_|, ]*")
_EVENTS_WITH_MATCHER: Final = frozenset(HookEvent) - {HookEvent.PROMPT, HookEvent.STOP}
"""Events whose hooks use their matcher. It is matched against the name of a tool, a subagent or a trigger."""


class HookKind(StrEnum):
    COMMAND = "command"
    HTTP = "http"
    PYTHON = "python"


TARGET_FIELDS: Final = {HookKind.COMMAND: "command", HookKind.HTTP: "url", HookKind.PYTHON: "name"}
"""The field with the command, the URL or the name of a hook."""
HTTP_HOOK_LAYERS: Final = frozenset({Layer.ORGANISATION, Layer.PROJECT})


@dataclass(frozen=True, slots=True)
class Hook:
    """One configured hook of a layer."""

    event: HookEvent
    layer: Layer
    matcher: LinearRegex
    kind: HookKind
    target: str
    """The command, the URL or the name of the entry point."""
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    options: JsonObject = field(default_factory=dict)
    """Options for a Python hook."""

    def matches(self, about: str) -> bool:
        """Return whether the hook runs for this tool, subagent or trigger."""
        return self.event not in _EVENTS_WITH_MATCHER or self.matcher.search(about[:_MAX_NAME])

    @property
    def name(self) -> str:
        """The name shown to people and models. A URL is reduced to host and path, because its other parts may be
        secret.
        """
        name = self.target
        if self.kind is HookKind.HTTP:
            url = urlsplit(self.target)
            name = f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
        return name if len(name) <= _MAX_SHOWN_CHARACTERS else f"{name[:_MAX_SHOWN_CHARACTERS]}…"


def parse_hooks(layers: Sequence[tuple[Layer, Mapping[str, Json]]]) -> list[Hook]:
    """Parse the hooks of stored layers, the highest layer first. Raises `InvalidRule`."""
    found: list[Hook] = []
    for layer, permissions in sorted(layers, key=lambda each: each[0]):
        hooks = permissions.get("hooks")
        if hooks is None:
            continue
        if not isinstance(hooks, dict) or hooks.keys() - {*HookEvent}:
            names = ", ".join(HookEvent)
            raise InvalidRule(str(hooks), 1, f"hooks must be an object with these event names as keys: {names}")
        for event, groups in hooks.items():
            for group in groups if isinstance(groups, list) else []:
                found += _parse_group(HookEvent(event), layer, group)
    return found


def _parse_group(event: HookEvent, layer: Layer, group: Json) -> list[Hook]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(group, dict) or not isinstance(hooks, list):
        raise InvalidRule(str(group), 1, "this is not a valid group of hooks")
    return [_parse_hook(event, layer, compile_matcher(str(group.get("matcher") or "")), hook) for hook in hooks]


def _parse_hook(event: HookEvent, layer: Layer, matcher: LinearRegex, hook: Json) -> Hook:
    kind = next((each for each in HookKind if isinstance(hook, dict) and hook.get("type") == each), None)
    target = hook.get(TARGET_FIELDS[kind]) if isinstance(hook, dict) and kind is not None else None
    if not isinstance(hook, dict) or kind is None or not isinstance(target, str):
        raise InvalidRule(str(hook), 1, "this is not a valid hook")
    if kind is HookKind.HTTP and layer not in HTTP_HOOK_LAYERS:
        raise InvalidRule(str(hook), 1, "HTTP hooks can only be configured by the organisation or a project")
    seconds, options = hook.get("timeout"), hook.get("options")
    return Hook(
        event,
        layer,
        matcher,
        kind,
        target,
        float(seconds) if isinstance(seconds, int | float) else DEFAULT_TIMEOUT_SECONDS,
        options if isinstance(options, dict) else {},
    )


def compile_matcher(text: str) -> LinearRegex:
    """Compile a matcher as Claude Code does: an empty one and `*` match everything, a list of names matches exactly
    these names, and anything else is a regular expression that may match anywhere in a name. Raises `InvalidRule`.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidRule(
            f"{text[:_MAX_SHOWN_CHARACTERS]}…",
            MAX_CHARACTERS,
            f"a matcher can have at most {MAX_CHARACTERS} characters",
        )
    if text in {"", "*"}:
        return LinearRegex("")
    if _NAME_LIST.fullmatch(text):
        return LinearRegex(rf"\A(?:{'|'.join(name.strip() for name in re.split('[|,]', text))})\z")
    try:
        return LinearRegex(text, _MAX_BYTES)
    except UnsupportedPattern as error:
        raise InvalidRule(
            text, 1, f"this is not a supported regular expression: {error}",
            help_text="Matchers use RE2 syntax, which has no backreferences, lookahead or lookbehind.",
        ) from None  # fmt: skip
