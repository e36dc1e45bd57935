"""What a hook said, in Claude Code's JSON, and what that means at each moment. Pure, and the same for all kinds.

In one thing hooks are stricter here: before a call and before a prompt, one that comes to no word has said no.
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
"""As of Claude Code's own."""
_ANSWER: Final = re.compile(r'"(?:permissionDecision|decision)"\s*:')
"""An answer that stands among words for people: a no in it must not get lost."""
TOO_MUCH: Final = "It printed more than an answer can be."


@dataclass(frozen=True, slots=True)
class Word:
    answer: Mapping[str, Json] = field(default_factory=dict)
    text: str = ""
    """What it printed, if that is no JSON."""
    refusal: str | None = None
    """It said no by its exit code, and why."""
    failure: str | None = None
    """Why it came to no word."""


def read(printed: bytes) -> Word:
    """Words for people are no answer, as in Claude Code. A hook may say anything: what comes out can be stored."""
    if len(printed) > LONGEST_ANSWER:
        return Word(failure=TOO_MUCH)
    try:
        text = printed.decode().strip()
        if not text.startswith("{"):
            if _ANSWER.search(text):
                return Word(failure="It printed something else around its answer.")
            return Word(text=clean_text(text))
        return Word(answer=clean_object(json.loads(text, parse_constant=_refuse)))
    except (ValueError, RecursionError):
        return Word(failure=f"What it printed is no answer: {printed[:20]!r}.")


def read_json(printed: bytes) -> Word:
    """Of one that is asked for nothing but JSON, or nothing."""
    word = read(printed)
    return Word(failure=f"What it answered is no JSON object: {word.text[:20]!r}.") if word.text else word


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def decision(hook: Hook, word: Word) -> Decision | None:
    """Before a call. None: it has no word on this one."""
    said, reason = _said(word)
    if said is None and _changes(word):
        said = "allow"
    if word.failure is not None:
        outcome, reason = Outcome.DENY, word.failure
    elif said is None:
        return None
    elif said in _WORDS:
        outcome = _WORDS[said]
        reason = reason or f"It said {outcome.value}."
    else:
        outcome, reason = Outcome.DENY, f"What it printed is no answer: {said[:40]!r}."
    if outcome is not Outcome.DENY and _changes(word):
        outcome, reason = Outcome.DENY, "It wants another input for the call, and hooks cannot change one here."
    return Decision(outcome, reason[:_MOST_SAID], layer=hook.layer, hook=hook.name)


def _changes(word: Word) -> bool:
    """Its yes is to another call than the one that would be made."""
    own = word.answer.get("hookSpecificOutput")
    return isinstance(own, dict) and own.get("updatedInput") is not None


def heard(hook: Hook, word: Word) -> Heard:
    """At any other moment."""
    named = f"a hook of the {hook.layer.label} ({hook.name})"
    if word.failure is not None:
        failure = f"{named} failed: {word.failure[:_MOST_SAID]}"
        if hook.event in FAIL_CLOSED:
            return Heard(f"{failure} Until it answers, nothing passes it.")
        return Heard(told=(f"{failure[0].upper()}{failure[1:]}",) if hook.event is HookEvent.AFTER_TOOL else ())
    said, reason = _said(word)
    block = None
    if said is not None and _WORDS.get(said, Outcome.DENY) is Outcome.DENY:
        block = reason[:_MOST_SAID] or "It said no, and not why."
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
