"""How a turn of this harness may end. Pure."""

from collections.abc import Sequence

from pydantic_ai.messages import ModelResponse

from footplate.domain.turns import Outcome, TurnStatus


def answered(response: ModelResponse) -> Outcome:
    """The model has nothing more to do, or refuses; a cut by its token limit is told with the result."""
    text = response.text or ""
    if response.finish_reason == "content_filter" and not text:
        reason = (response.provider_details or {}).get("refusal")
        return Outcome(
            status=TurnStatus.FAILED,
            error_type="model_request_failed_error",
            error_message=f"The model refused to answer{f': {reason}' if reason else '.'}",
        )
    return Outcome(
        status=TurnStatus.COMPLETED,
        text=text,
        data={"finish_reason": response.finish_reason} if response.finish_reason else {},
    )


def awaiting(event_ids: Sequence[str]) -> Outcome:
    return Outcome(status=TurnStatus.AWAITING, pending=tuple(event_ids))


def interrupted(text: str) -> Outcome:
    return Outcome(status=TurnStatus.INTERRUPTED, text=text)


def limit_reached(limit: int) -> Outcome:
    return Outcome(
        status=TurnStatus.LIMIT_REACHED,
        error_type="tool_use_limit_reached_error",
        error_message=f"The turn asked the model {limit} times, which is its limit.",
    )
