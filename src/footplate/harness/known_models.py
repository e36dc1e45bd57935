"""Lists the models of a provider that the library pydantic-ai knows by name. A provider can have others."""

from functools import cache

from footplate.domain.agents.model_connections import provider_family


@cache
def known_models(provider: str) -> tuple[str, ...]:
    """The first call imports the library, so make it in a thread."""
    from pydantic_ai.models import known_model_names

    names = (name.partition(":") for name in known_model_names())
    return tuple(model for owner, _, model in names if owner == provider_family(provider))
