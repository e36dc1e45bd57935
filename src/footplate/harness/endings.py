"""Outcomes of a turn that ends without an exception, for every harness."""

from collections.abc import Sequence

from footplate.domain.turns import Outcome, TurnStatus


def answered(text: str, reason: str | None, *, refusal: str = "") -> Outcome:
    """The model finished or refused. A response cut by the token limit is reported with the result.

    `reason`: pydantic-ai's finish reason.
    """
    if reason == "content_filter" and not text:
        return Outcome(
            status=TurnStatus.FAILED,
            error_type="model_request_failed_error",
            error_message=f"The model refused to respond{f': {refusal}' if refusal else '.'}",
        )
    return Outcome(status=TurnStatus.COMPLETED, text=text, data={"finish_reason": reason} if reason else {})


def awaiting(event_ids: Sequence[str]) -> Outcome:
    """The turn waits until the client responds to these events."""
    return Outcome(status=TurnStatus.AWAITING, pending=tuple(event_ids))


def interrupted(text: str) -> Outcome:
    return Outcome(status=TurnStatus.INTERRUPTED, text=text)


def limit_reached(limit: int) -> Outcome:
    return Outcome(
        status=TurnStatus.LIMIT_REACHED,
        error_type="tool_use_limit_reached_error",
        error_message=f"The turn reached its limit of {limit} model requests.",
    )
