"""Converts the final result of the Claude Code CLI to the outcome of a turn, or to an error."""

import time
from typing import Final

from footplate.domain.errors import ModelRefused, Overloaded, RateLimited, Temporary
from footplate.domain.sessions.turns import TurnOutcome
from footplate.harness import turn_outcome_factories
from footplate.harness.claude.transcripts.sdk_message_parser import RunEnded

_FINISH_REASONS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "refusal": "content_filter",
    "tool_use": "tool_call",
}
"""The model's stop reasons as the finish reasons that every harness uses."""
_TOO_MANY, _OVERLOADED, _SERVER_ERROR, _CLIENT_ERROR = 429, 529, 500, 400
_RETRYABLE_STATUSES: Final = frozenset({408, 409, 425})
_ADVICE: Final = {
    401: "Check the provider's API key, and that it may use this model.",
    403: "Check the provider's API key, and that it may use this model.",
    404: "Check the agent's model name and the provider's base URL.",
    413: "The conversation exceeds this model's context window. Start a new session, or fork this one earlier.",
}


def finished(text: str, stop_reason: str | None = None) -> TurnOutcome:
    return turn_outcome_factories.finished(text, _FINISH_REASONS.get(stop_reason or ""))


def failure_error(ended: RunEnded, limited_until: float | None) -> Temporary | ModelRefused:
    """The error for a failed run. Its class decides whether the engine retries."""
    status = ended.status
    text = turn_outcome_factories.describe_failure(status, ended.text or ended.subtype, source="Claude Code")
    if status == _TOO_MANY:
        wait = max(limited_until - time.time(), 0.0) if limited_until is not None else None
        return RateLimited(text, retry_after=wait)
    if status is not None and status >= _SERVER_ERROR:
        return Overloaded(text)
    if status is not None and status >= _CLIENT_ERROR and status not in _RETRYABLE_STATUSES:
        return ModelRefused(text, help_text=_ADVICE.get(status, "Check the agent's model, parameters and tools."))
    return Temporary(text)
