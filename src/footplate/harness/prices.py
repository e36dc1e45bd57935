"""What a request cost, from the price list inside the installed `genai-prices`. Never asks the network.

The list's own updater runs only where somebody starts it, and nobody here does.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Final

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider
from pydantic_ai.usage import RequestUsage

from footplate.domain.events import Usage

_MICRO: Final = 1_000_000


def cost_microusd(provider: str, model: str, usage: RequestUsage) -> int | None:
    """None where the model's price is not known: unknown is not free."""
    known = _find(provider, model)
    if known is None:
        return None
    seller, priced = known
    return round(priced.calc_price(usage, seller).total_price * _MICRO)


def with_cost(usage: Usage, provider: str, model: str) -> Usage:
    """The same with its price. The list counts what was cached among the input, a `Usage` beside it."""
    counted = RequestUsage(
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    return replace(usage, cost_microusd=cost_microusd(provider, model, counted))


@lru_cache(maxsize=256)
def _find(provider: str, model: str) -> tuple[Provider, ModelInfo] | None:
    try:
        return get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
