"""How a turn of this harness may end, beside what is every harness's (`endings`). Pure."""

from collections.abc import Sequence

from pydantic_ai.messages import ModelResponse

from footplate.domain.turns import Outcome, TurnStatus
from footplate.harness import endings


def answered(response: ModelResponse) -> Outcome:
    refusal = (response.provider_details or {}).get("refusal")
    return endings.answered(response.text or "", response.finish_reason, refusal=refusal or "")


def awaiting(event_ids: Sequence[str]) -> Outcome:
    return Outcome(status=TurnStatus.AWAITING, pending=tuple(event_ids))
