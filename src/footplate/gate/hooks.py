"""Hooks: programs of the user's own that are asked before a call, in the environment, as Claude Code asks them.

What they read and print is Claude Code's JSON, so that scripts that there are go on working. In one thing they are
stricter here: a hook that does not come to a word, whatever the reason, has said no.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from footplate.domain.json import Json, JsonObject
from footplate.domain.permissions import TOOL_NAMES, Decision, Layer, Outcome
from footplate.domain.ports import CommandResult, Environment
from footplate.gate.errors import InvalidRule

BEFORE: Final = "PreToolUse"
SECONDS: Final = 60.0
LONGEST: Final = 600.0
_REFUSES: Final = 2
"""The exit code that says no, as in Claude Code."""
_WORDS: Final = {
    "allow": Outcome.ALLOW,
    "approve": Outcome.ALLOW,
    "ask": Outcome.ASK,
    "deny": Outcome.DENY,
    "block": Outcome.DENY,
}
_MOST_SAID: Final = 2000
_SHOWN: Final = 80
_LONGEST_ANSWER: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Hook:
    layer: Layer
    matcher: re.Pattern[str]
    command: str
    seconds: float = SECONDS

    def concerns(self, tool: str) -> bool:
        return self.matcher.fullmatch(tool) is not None

    @property
    def name(self) -> str:
        return self.command if len(self.command) <= _SHOWN else f"{self.command[:_SHOWN]}…"


def hooks_of(layers: Sequence[tuple[Layer, Mapping[str, Json]]]) -> list[Hook]:
    """From layers as they are stored, the highest first. Raises `InvalidRule`."""
    found = []
    for layer, permissions in sorted(layers, key=lambda each: each[0]):
        hooks = permissions.get("hooks")
        if hooks is not None and (not isinstance(hooks, dict) or hooks.keys() - {BEFORE}):
            raise InvalidRule(str(hooks), 0, f"hooks are of {BEFORE} alone")
        groups = hooks.get(BEFORE) if isinstance(hooks, dict) else None
        for group in groups if isinstance(groups, list) else []:
            found += _group(layer, group)
    return found


def _group(layer: Layer, group: Json) -> list[Hook]:
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        raise InvalidRule(str(group), 0, "this is no group of hooks")
    hooks = group["hooks"]
    assert isinstance(hooks, list)
    return [_hook(layer, matcher_of(str(group.get("matcher") or "")), hook) for hook in hooks]


def _hook(layer: Layer, matcher: re.Pattern[str], hook: Json) -> Hook:
    if not isinstance(hook, dict) or hook.get("type") != "command" or not isinstance(hook.get("command"), str):
        raise InvalidRule(str(hook), 0, "this is no hook that can be run")
    seconds = hook.get("timeout")
    return Hook(layer, matcher, str(hook["command"]), float(seconds) if isinstance(seconds, int | float) else SECONDS)


def matcher_of(text: str) -> re.Pattern[str]:
    """Names of tools as Claude Code has them; nothing and `*` are all. Raises `InvalidRule`."""
    try:
        return re.compile(".*" if text in {"", "*"} else text, re.DOTALL)
    except re.error as error:
        raise InvalidRule(text, error.pos or 0, f"this is no regular expression: {error.msg}") from None


async def ask(
    hooks: Sequence[Hook], environment: Environment, tool: str, given: JsonObject, *, session_id: str, directory: str
) -> Decision | None:
    """The strictest word of those that this concerns, one after the other; who says no is the last. None: no word."""
    name = TOOL_NAMES.get(tool, tool)
    told = {
        "session_id": session_id,
        "transcript_path": "",
        "cwd": directory,
        "permission_mode": "default",
        "hook_event_name": BEFORE,
        "tool_name": name,
        "tool_input": given,
    }
    strictest: Decision | None = None
    for hook in hooks:
        if not hook.concerns(name):
            continue
        argv = ["env", f"CLAUDE_PROJECT_DIR={environment.root}", "sh", "-c", hook.command]
        result = await environment.run(argv, stdin=json.dumps(told).encode(), timeout=hook.seconds)
        said = read(hook, result)
        if said is not None and said.outcome is Outcome.DENY:
            return said
        if said is not None and (strictest is None or said.outcome is Outcome.ASK):
            strictest = said
    return strictest


def read(hook: Hook, result: CommandResult) -> Decision | None:
    """What a hook said. Pure. None: it has no word on this call."""
    failure = _failure(hook, result)
    if failure is None:
        word, reason = _printed(result.stdout)
        if word is None:
            return None
        if word in _WORDS:
            outcome = _WORDS[word]
            said = (reason or f"It said {outcome.value}.")[:_MOST_SAID]
            return Decision(outcome, said, layer=hook.layer, hook=hook.name)
        failure = f"What it printed is no answer: {word[:40]!r}."
    return Decision(Outcome.DENY, failure, layer=hook.layer, hook=hook.name)


def _failure(hook: Hook, result: CommandResult) -> str | None:
    """Why it has said no without a word, or with one that is not JSON."""
    failure: str | None = None
    if result.timed_out:
        failure = f"It did not answer within {hook.seconds:g} s."
    elif result.exit_code is None or result.error:
        failure = f"It was ended before it answered. {result.error}"
    elif result.truncated or len(result.stdout) > _LONGEST_ANSWER:
        failure = "It printed more than an answer can be."
    elif result.exit_code == _REFUSES:
        failure = _text(result.stderr) or "It said no, and not why."
    elif result.exit_code != 0:
        failure = f"It failed with {result.exit_code}. {_text(result.stderr)}"
    return None if failure is None else failure.strip()


def _printed(printed: bytes) -> tuple[str | None, str]:
    """Its word and why. Words for people are none, as in Claude Code."""
    try:
        text = printed.decode().strip()
        answer = json.loads(text) if text.startswith("{") else {}
    except ValueError:
        return repr(printed[:20]), ""
    return _word(answer)


def _word(answer: Mapping[str, Json]) -> tuple[str | None, str]:
    if answer.get("continue") is False:
        return "deny", str(answer.get("stopReason") or "")
    own = answer.get("hookSpecificOutput")
    if isinstance(own, dict) and own.get("permissionDecision") is not None:
        return str(own["permissionDecision"]), str(own.get("permissionDecisionReason") or "")
    word = answer.get("decision")
    return (None if word is None else str(word)), str(answer.get("reason") or "")


def _text(printed: bytes) -> str:
    return printed.decode(errors="replace").strip()[:_MOST_SAID]
