"""How a turn ends that did not fail. Pure, and the same for every harness."""

from collections.abc import Sequence

from footplate.domain.turns import Outcome, TurnStatus


def answered(text: str, reason: str | None, *, refusal: str = "") -> Outcome:
    """The model has nothing more to do, or refuses; a cut by its token limit is told with the result.

    `reason`: why it stopped, in pydantic-ai's words.
    """
    if reason == "content_filter" and not text:
        return Outcome(
            status=TurnStatus.FAILED,
            error_type="model_request_failed_error",
            error_message=f"The model refused to answer{f': {refusal}' if refusal else '.'}",
        )
    return Outcome(status=TurnStatus.COMPLETED, text=text, data={"finish_reason": reason} if reason else {})


def awaiting(event_ids: Sequence[str]) -> Outcome:
    """The client has to answer these."""
    return Outcome(status=TurnStatus.AWAITING, pending=tuple(event_ids))


def interrupted(text: str) -> Outcome:
    return Outcome(status=TurnStatus.INTERRUPTED, text=text)


def limit_reached(limit: int) -> Outcome:
    return Outcome(
        status=TurnStatus.LIMIT_REACHED,
        error_type="tool_use_limit_reached_error",
        error_message=f"The turn asked the model {limit} times, which is its limit.",
    )
