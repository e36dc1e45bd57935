"""How a turn of this harness may end, beside what is every harness's (`endings`). Pure."""

from pydantic_ai.messages import ModelResponse

from footplate.domain.turns import Outcome
from footplate.harness import endings


def answered(response: ModelResponse) -> Outcome:
    refusal = (response.provider_details or {}).get("refusal")
    return endings.answered(response.text or "", response.finish_reason, refusal=refusal or "")
