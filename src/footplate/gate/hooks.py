"""Hooks as they are written: beside the rules of a layer, in Claude Code's form. Pure.

There are three kinds. A command runs in the environment. A server is asked by the worker, by HTTP, so only those who
answer for more than one session may name one. A Python entry point runs beside the worker; the operator installed it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from footplate.domain.hooks import HookEvent
from footplate.domain.json import Json, JsonObject
from footplate.domain.linear_regex import MAX_CHARACTERS, LinearRegex, UnsupportedPattern
from footplate.domain.permissions import Layer
from footplate.gate.errors import InvalidRule

SECONDS: Final = 60.0
LONGEST: Final = 600.0
GROUP: Final = "footplate.hooks"
"""The entry point group of Python hooks."""
_SHOWN: Final = 80
_MAX_BYTES: Final = 16 * 1024
"""Of a compiled matcher: every call is held against all of them."""
_MAX_NAME: Final = 200
"""Characters of a name that a matcher is held against."""
_NAMES: Final = re.compile(r"[A-Za-z0-9_|, ]*[A-Za-z0-9_][A-Za-z0-9_|, ]*")
_MATCHED: Final = frozenset(HookEvent) - {HookEvent.PROMPT, HookEvent.STOP}
"""Those of whose hooks the matcher counts: it is held against a tool, a subagent or a reason."""


class HookKind(StrEnum):
    COMMAND = "command"
    HTTP = "http"
    PYTHON = "python"


WHAT: Final = {HookKind.COMMAND: "command", HookKind.HTTP: "url", HookKind.PYTHON: "name"}
"""The field that says which one it is."""
MAY_NAME_HOSTS: Final = frozenset({Layer.ORGANISATION, Layer.PROJECT})


@dataclass(frozen=True, slots=True)
class Hook:
    event: HookEvent
    layer: Layer
    matcher: LinearRegex
    kind: HookKind
    what: str
    """The command, the URL or the name."""
    seconds: float = SECONDS
    options: JsonObject = field(default_factory=dict)
    """Of a Python hook."""

    def concerns(self, about: str) -> bool:
        return self.event not in _MATCHED or self.matcher.search(about[:_MAX_NAME])

    @property
    def name(self) -> str:
        """For people and models: what a URL has beside its path may be a secret."""
        name = self.what
        if self.kind is HookKind.HTTP:
            url = urlsplit(self.what)
            name = f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
        return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"


def hooks_of(layers: Sequence[tuple[Layer, Mapping[str, Json]]]) -> list[Hook]:
    """From layers as they are stored, the highest first. Raises `InvalidRule`."""
    found = []
    for layer, permissions in sorted(layers, key=lambda each: each[0]):
        hooks = permissions.get("hooks")
        if hooks is None:
            continue
        if not isinstance(hooks, dict) or hooks.keys() - {*HookEvent}:
            raise InvalidRule(str(hooks), 1, f"hooks are of {', '.join(HookEvent)}")
        for event, groups in hooks.items():
            for group in groups if isinstance(groups, list) else []:
                found += _group(HookEvent(event), layer, group)
    return found


def _group(event: HookEvent, layer: Layer, group: Json) -> list[Hook]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(group, dict) or not isinstance(hooks, list):
        raise InvalidRule(str(group), 1, "this is no group of hooks")
    return [_hook(event, layer, matcher_of(str(group.get("matcher") or "")), hook) for hook in hooks]


def _hook(event: HookEvent, layer: Layer, matcher: LinearRegex, hook: Json) -> Hook:
    kind = next((each for each in HookKind if isinstance(hook, dict) and hook.get("type") == each), None)
    what = hook.get(WHAT[kind]) if isinstance(hook, dict) and kind is not None else None
    if not isinstance(hook, dict) or kind is None or not isinstance(what, str):
        raise InvalidRule(str(hook), 1, "this is no hook that can be run")
    if kind is HookKind.HTTP and layer not in MAY_NAME_HOSTS:
        raise InvalidRule(str(hook), 1, "a hook by HTTP is the organisation's or a project's to name")
    seconds, options = hook.get("timeout"), hook.get("options")
    return Hook(
        event,
        layer,
        matcher,
        kind,
        what,
        float(seconds) if isinstance(seconds, int | float) else SECONDS,
        options if isinstance(options, dict) else {},
    )


def matcher_of(text: str) -> LinearRegex:
    """As Claude Code reads it: nothing and `*` are all, names alone are these names, and the rest is an expression that
    may be found anywhere in a name. Raises `InvalidRule`.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidRule(f"{text[:_SHOWN]}…", MAX_CHARACTERS, f"a matcher has at most {MAX_CHARACTERS} characters")
    if text in {"", "*"}:
        return LinearRegex("")
    if _NAMES.fullmatch(text):
        return LinearRegex(rf"\A(?:{'|'.join(name.strip() for name in re.split('[|,]', text))})\z")
    try:
        return LinearRegex(text, _MAX_BYTES)
    except UnsupportedPattern as error:
        raise InvalidRule(
            text, 1, f"this is no regular expression that can be used: {error}",
            help_text="Matchers run on RE2: without backreferences, lookahead and lookbehind.",
        ) from None  # fmt: skip
