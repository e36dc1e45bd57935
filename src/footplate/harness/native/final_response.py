"""Converts the final response of the model, the one without tool calls, to the outcome of a turn."""

from pydantic_ai.messages import ModelResponse

from footplate.domain.sessions.turns import TurnOutcome
from footplate.harness import turn_outcomes


def finished(response: ModelResponse) -> TurnOutcome:
    refusal = (response.provider_details or {}).get("refusal")
    return turn_outcomes.finished(response.text or "", response.finish_reason, refusal=refusal or "")
