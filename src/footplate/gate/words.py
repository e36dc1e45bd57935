"""Parses the output of hooks, in Claude Code's JSON format, and interprets it for each event. All kinds of hooks share
it.

In one point hooks are stricter than in Claude Code: before a tool call and before a prompt, a hook that fails counts as
a denial.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from footplate.domain.hooks import FAIL_CLOSED, Heard, HookEvent
from footplate.domain.json import Json, clean_object, clean_text
from footplate.domain.permissions import Decision, Outcome
from footplate.gate.hooks import Hook

LONGEST_ANSWER: Final = 1 << 20
_WORDS: Final = {
    "allow": Outcome.ALLOW,
    "approve": Outcome.ALLOW,
    "ask": Outcome.ASK,
    "deny": Outcome.DENY,
    "block": Outcome.DENY,
}
_MOST_SAID: Final = 2000
_MOST_CONTEXT: Final = 10_000
"""The same limit as in Claude Code."""
_ANSWER: Final = re.compile(r'"(?:permissionDecision|decision)"\s*:')
"""Finds a decision inside text for people. Ignoring it could lose a denial."""
TOO_MUCH: Final = "The hook's output is too large."


@dataclass(frozen=True, slots=True)
class Word:
    """The parsed output of one hook run."""

    answer: Mapping[str, Json] = field(default_factory=dict)
    text: str = ""
    """The output, if it is not JSON."""
    refusal: str | None = None
    """The reason of a denial by exit code."""
    failure: str | None = None
    """Why the hook failed to produce a decision."""


def read(printed: bytes) -> Word:
    """Parse the output of a hook. As in Claude Code, plain text is not a decision. The result contains only text that
    can be stored, whatever the hook printed.
    """
    if len(printed) > LONGEST_ANSWER:
        return Word(failure=TOO_MUCH)
    try:
        text = printed.decode().strip()
        if not text.startswith("{"):
            if _ANSWER.search(text):
                return Word(failure="The hook printed other text around its JSON output.")
            return Word(text=clean_text(text))
        return Word(answer=clean_object(json.loads(text, parse_constant=_refuse)))
    except (ValueError, RecursionError):
        return Word(failure=f"The hook's output is not valid: {printed[:20]!r}.")


def read_json(printed: bytes) -> Word:
    """Parse the output of a hook that must return JSON or nothing."""
    word = read(printed)
    return Word(failure=f"The hook's output is not a JSON object: {word.text[:20]!r}.") if word.text else word


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def decision(hook: Hook, word: Word) -> Decision | None:
    """Interpret the output of a hook before a tool call. Returns None if the hook made no decision."""
    said, reason = _said(word)
    if said is None and _changes(word):
        said = "allow"
    if word.failure is not None:
        outcome, reason = Outcome.DENY, word.failure
    elif said is None:
        return None
    elif said in _WORDS:
        outcome = _WORDS[said]
        reason = reason or f"The hook decided {outcome.value}."
    else:
        outcome, reason = Outcome.DENY, f"The hook returned an unknown decision: {said[:40]!r}."
    if outcome is not Outcome.DENY and _changes(word):
        outcome, reason = (
            Outcome.DENY,
            "The hook returned another input for the call, but hooks cannot change the input here.",
        )
    return Decision(outcome, reason[:_MOST_SAID], layer=hook.layer, hook=hook.name)


def _changes(word: Word) -> bool:
    """Return whether the hook changes the input: its approval would then be for another call."""
    own = word.answer.get("hookSpecificOutput")
    return isinstance(own, dict) and own.get("updatedInput") is not None


def heard(hook: Hook, word: Word) -> Heard:
    """Interpret the output of a hook for any event other than `PreToolUse`."""
    named = f"a hook of the {hook.layer.label} ({hook.name})"
    if word.failure is not None:
        failure = f"{named} failed: {word.failure[:_MOST_SAID]}"
        if hook.event in FAIL_CLOSED:
            return Heard(f"{failure} Nothing is accepted until the hook works again.")
        return Heard(told=(f"{failure[0].upper()}{failure[1:]}",) if hook.event is HookEvent.AFTER_TOOL else ())
    said, reason = _said(word)
    block = None
    if said is not None and _WORDS.get(said, Outcome.DENY) is Outcome.DENY:
        block = reason[:_MOST_SAID] or "The hook gave no reason."
    own = word.answer.get("hookSpecificOutput")
    context = own.get("additionalContext") if isinstance(own, dict) else None
    if context is None and hook.event is HookEvent.PROMPT:
        context = word.text
    return Heard(block, (str(context)[:_MOST_CONTEXT],) if context else ())


def _said(word: Word) -> tuple[str | None, str]:
    if word.refusal is not None:
        return "deny", word.refusal
    answer = word.answer
    if answer.get("continue") is False:
        return "deny", str(answer.get("stopReason") or "")
    own = answer.get("hookSpecificOutput")
    if isinstance(own, dict) and own.get("permissionDecision") is not None:
        return str(own["permissionDecision"]), str(own.get("permissionDecisionReason") or "")
    said = answer.get("decision")
    return (None if said is None else str(said)), str(answer.get("reason") or "")
