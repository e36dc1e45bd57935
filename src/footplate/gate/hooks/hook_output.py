"""Parses hook output in Claude Code's JSON format and interprets it for each event, for all kinds of hooks.

Unlike in Claude Code, a hook that fails before a tool call or before a prompt counts as a denial.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from footplate.domain.json import Json, clean_object, clean_text
from footplate.domain.policy.hooks import FAIL_CLOSED, HookEvent, HookFeedback
from footplate.domain.policy.permissions import Decision, PermissionOutcome
from footplate.gate.hooks.hook_config import Hook

MAX_OUTPUT_BYTES: Final = 1 << 20
_OUTCOMES: Final = {
    "allow": PermissionOutcome.ALLOW,
    "approve": PermissionOutcome.ALLOW,
    "ask": PermissionOutcome.ASK,
    "deny": PermissionOutcome.DENY,
    "block": PermissionOutcome.DENY,
}
_MAX_REASON_CHARACTERS: Final = 2000
_MAX_CONTEXT_CHARACTERS: Final = 10_000
"""The same limit as in Claude Code."""
_EMBEDDED_DECISION: Final = re.compile(r'"(?:permissionDecision|decision)"\s*:')
"""Finds a decision inside text for people. Ignoring it could lose a denial."""
OUTPUT_TOO_LARGE: Final = "The hook's output is too large."


@dataclass(frozen=True, slots=True)
class HookOutput:
    """The parsed output of one hook run."""

    json_output: Mapping[str, Json] = field(default_factory=dict)
    text: str = ""
    """The output, if it is not JSON."""
    denial_reason: str | None = None
    """The reason of a denial by exit code."""
    failure: str | None = None
    """Why the hook failed to produce a decision."""


def parse_output(printed: bytes) -> HookOutput:
    """Parse the output of a hook. As in Claude Code, plain text is not a decision. The result contains only text that
    can be stored, whatever the hook printed.
    """
    if len(printed) > MAX_OUTPUT_BYTES:
        return HookOutput(failure=OUTPUT_TOO_LARGE)
    try:
        text = printed.decode().strip()
        if not text.startswith("{"):
            if _EMBEDDED_DECISION.search(text):
                return HookOutput(failure="The hook printed text before its JSON output.")
            return HookOutput(text=clean_text(text))
        return HookOutput(json_output=clean_object(json.loads(text, parse_constant=_reject_constant)))
    except (ValueError, RecursionError):
        return HookOutput(failure=f"The hook's output is not valid: {printed[:20]!r}.")


def parse_json_output(printed: bytes) -> HookOutput:
    """Parse the output of a hook that must return JSON or nothing."""
    output = parse_output(printed)
    return (
        HookOutput(failure=f"The hook's output is not a JSON object: {output.text[:20]!r}.") if output.text else output
    )


def _reject_constant(constant: str) -> None:
    raise ValueError(constant)


def make_decision(hook: Hook, output: HookOutput) -> Decision | None:
    """Interpret the output of a hook before a tool call. Returns None if the hook made no decision."""
    decision_name, reason = _extract_decision(output)
    if decision_name is None and _changes_input(output):
        decision_name = "allow"
    if output.failure is not None:
        outcome, reason = PermissionOutcome.DENY, output.failure
    elif decision_name is None:
        return None
    elif decision_name in _OUTCOMES:
        outcome = _OUTCOMES[decision_name]
        reason = reason or f"The hook decided {outcome.value}."
    else:
        outcome, reason = PermissionOutcome.DENY, f"The hook returned an unknown decision: {decision_name[:40]!r}."
    if outcome is not PermissionOutcome.DENY and _changes_input(output):
        outcome, reason = (
            PermissionOutcome.DENY,
            "The hook tried to change the input of the call, which is not supported.",
        )
    return Decision(outcome, reason[:_MAX_REASON_CHARACTERS], layer=hook.layer, hook=hook.name)


def _changes_input(output: HookOutput) -> bool:
    """Return whether the hook changes the input: its approval would then be for another call."""
    specific_output = output.json_output.get("hookSpecificOutput")
    return isinstance(specific_output, dict) and specific_output.get("updatedInput") is not None


def make_feedback(hook: Hook, output: HookOutput) -> HookFeedback:
    """Interpret the output of a hook for any event other than `PreToolUse`."""
    label = f"a hook of the {hook.layer.label} ({hook.name})"
    if output.failure is not None:
        failure = f"{label} failed: {output.failure[:_MAX_REASON_CHARACTERS]}"
        if hook.event in FAIL_CLOSED:
            return HookFeedback(f"{failure} Messages are rejected until the hook works again.")
        return HookFeedback(
            messages=(f"{failure[0].upper()}{failure[1:]}",) if hook.event is HookEvent.AFTER_TOOL else ()
        )
    decision_name, reason = _extract_decision(output)
    block = None
    if decision_name is not None and _OUTCOMES.get(decision_name, PermissionOutcome.DENY) is PermissionOutcome.DENY:
        block = reason[:_MAX_REASON_CHARACTERS] or "The hook gave no reason."
    specific_output = output.json_output.get("hookSpecificOutput")
    context = specific_output.get("additionalContext") if isinstance(specific_output, dict) else None
    if context is None and hook.event is HookEvent.PROMPT:
        context = output.text
    return HookFeedback(block, (str(context)[:_MAX_CONTEXT_CHARACTERS],) if context else ())


def _extract_decision(output: HookOutput) -> tuple[str | None, str]:
    if output.denial_reason is not None:
        return "deny", output.denial_reason
    json_output = output.json_output
    if json_output.get("continue") is False:
        return "deny", str(json_output.get("stopReason") or "")
    specific_output = json_output.get("hookSpecificOutput")
    if isinstance(specific_output, dict) and specific_output.get("permissionDecision") is not None:
        return str(specific_output["permissionDecision"]), str(specific_output.get("permissionDecisionReason") or "")
    decision_name = json_output.get("decision")
    return (None if decision_name is None else str(decision_name)), str(json_output.get("reason") or "")
