"""Computes the cost of model requests from the price list in the installed package `genai-prices`.

It makes no network requests, because Footplate does not start the package's updater.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Final

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider
from pydantic_ai.usage import RequestUsage

from footplate.domain.sessions.events import Usage

_MICROUSD_PER_USD: Final = 1_000_000
_ANY_SERVER: Final = "openai-compatible"
"""Has its own prices. The price list would take OpenAI's, because of the name."""


def cost_microusd(provider: str, model: str, usage: RequestUsage) -> int | None:
    """None if the model's price is not known, because unknown is not free."""
    known = None if provider == _ANY_SERVER else _find_model_price(provider, model)
    if known is None:
        return None
    seller, priced = known
    return round(priced.calc_price(usage, seller).total_price * _MICROUSD_PER_USD)


def with_cost(usage: Usage, provider: str, model: str) -> Usage:
    """The usage with its cost. The price list counts cached tokens as input tokens; `Usage` counts them separately."""
    counted = RequestUsage(
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    return replace(usage, cost_microusd=cost_microusd(provider, model, counted))


@lru_cache(maxsize=256)
def _find_model_price(provider: str, model: str) -> tuple[Provider, ModelInfo] | None:
    try:
        return get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
