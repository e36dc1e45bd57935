"""The outcome of a turn of the `native` harness whose last response makes no tool call."""

from pydantic_ai.messages import ModelResponse

from footplate.domain.sessions.turns import TurnOutcome
from footplate.harness import turn_outcomes


def finished(response: ModelResponse) -> TurnOutcome:
    refusal = (response.provider_details or {}).get("refusal")
    return turn_outcomes.finished(response.text or "", response.finish_reason, refusal=refusal or "")
