"""Creates the outcome of a turn when the model has finished, the turn waits for the client, the user interrupts it, or
it reaches a limit. All harnesses use these functions.
"""

from collections.abc import Sequence
from typing import Final

from footplate.domain.sessions.turns import TurnOutcome, TurnStatus

_MAX_QUOTED: Final = 1900


def describe_failure(status: int | None, text: str, *, source: str) -> str:
    """Describes a failed model request. The provider's text is quoted, so that it cannot be mistaken for ours.

    `source`: who wrote the text, such as `The provider`.
    """
    status_text = f" ({status})" if status else ""
    return f'The model request failed{status_text}. {source} said: "{text.strip()[:_MAX_QUOTED]}".'


def finished(text: str, reason: str | None, *, refusal: str = "") -> TurnOutcome:
    """The model finished or refused. A response cut by the token limit is reported with the result.

    `reason`: pydantic-ai's finish reason.
    """
    if reason == "content_filter" and not text:
        return TurnOutcome(
            status=TurnStatus.FAILED,
            error_type="model_request_failed_error",
            error_message=f"The model refused to respond{f': {refusal}' if refusal else '.'}",
        )
    return TurnOutcome(status=TurnStatus.COMPLETED, text=text, data={"finish_reason": reason} if reason else {})


def awaiting(event_ids: Sequence[str]) -> TurnOutcome:
    """The turn waits until the client responds to these events."""
    return TurnOutcome(status=TurnStatus.AWAITING, pending=tuple(event_ids))


def interrupted(text: str) -> TurnOutcome:
    return TurnOutcome(status=TurnStatus.INTERRUPTED, text=text)


def limit_reached(limit: int) -> TurnOutcome:
    return TurnOutcome(
        status=TurnStatus.LIMIT_REACHED,
        error_type="tool_use_limit_reached_error",
        error_message=f"The turn reached its limit of {limit} model request{'s'[: limit != 1]}.",
    )
