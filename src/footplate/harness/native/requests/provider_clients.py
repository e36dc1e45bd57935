"""Creates the clients of pydantic-ai's providers for the endpoint of a connection.

A client sends its requests to the model proxy. Its address and key come only from the endpoint, never from environment
variables, and it does not retry.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import httpx2
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class

from footplate.domain.agents.model_connections import PROVIDERS, provider_family
from footplate.domain.ports.harness import Endpoint

_READ_TIMEOUT: Final = 600
_CONNECT_TIMEOUT: Final = 10
_REGION: Final = "us-east-1"
"""The SDK requires a region, but the address is the proxy's, which knows the right one."""
_COMPATIBLE: Final = frozenset({"groq", "openai-compatible"})
"""Providers whose OpenAI-compatible API is used without a provider class of its own."""


def create_provider(name: str, endpoint: Endpoint, client: httpx2.AsyncClient) -> Provider[Any]:
    """Raises `ImportError` if the SDK of the provider is not installed."""
    create = _FACTORIES.get(PROVIDERS[name].wire_format, _openai)
    return create(name, endpoint, client)


def create_model(provider_name: str, model: str, provider: Provider[Any]) -> Model[Any]:
    if provider_name in _COMPATIBLE:
        from pydantic_ai.models.openai import OpenAIChatModel

        return OpenAIChatModel(model, provider=provider)
    return infer_model(f"{provider_name}:{model}", lambda _: provider)


def _anthropic(_name: str, endpoint: Endpoint, client: httpx2.AsyncClient) -> Provider[Any]:
    from anthropic import AsyncAnthropic
    from pydantic_ai.providers.anthropic import AnthropicProvider

    sdk = AsyncAnthropic(
        api_key=endpoint.api_key, base_url=_base_url("anthropic", endpoint), max_retries=0, http_client=client
    )
    return AnthropicProvider(anthropic_client=sdk)


def _openai(name: str, endpoint: Endpoint, client: httpx2.AsyncClient) -> Provider[Any]:
    from openai import AsyncOpenAI

    sdk = AsyncOpenAI(
        api_key=endpoint.api_key or "none", base_url=_base_url(name, endpoint), max_retries=0, http_client=client
    )
    if name in _COMPATIBLE:
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        return OpenAICompatibleProvider(name, openai_client=sdk)
    provider: Callable[..., Provider[Any]] = infer_provider_class(name)
    return provider(openai_client=sdk)


def _google(_name: str, endpoint: Endpoint, client: httpx2.AsyncClient) -> Provider[Any]:
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleProvider(api_key=endpoint.api_key, base_url=_base_url("google", endpoint), http_client=client)


def _mistral(_name: str, endpoint: Endpoint, client: httpx2.AsyncClient) -> Provider[Any]:
    from pydantic_ai.providers.mistral import MistralProvider

    return MistralProvider(api_key=endpoint.api_key, base_url=_base_url("mistral", endpoint), http_client=client)


def _bedrock(_name: str, endpoint: Endpoint, _client: httpx2.AsyncClient) -> Provider[Any]:
    """The SDK for AWS has its own HTTP client, so it connects to the endpoint. Its requests have no signature: the
    model proxy signs them.
    """
    from botocore import UNSIGNED
    from botocore.config import Config
    from pydantic_ai.providers.bedrock import BedrockProvider

    config = Config(
        signature_version=UNSIGNED,
        retries={"total_max_attempts": 1},
        read_timeout=_READ_TIMEOUT,
        connect_timeout=_CONNECT_TIMEOUT,
        max_pool_connections=100,
        proxies={},
    )
    client = _aws_session().client("bedrock-runtime", config=config, endpoint_url=endpoint.base_url)
    return BedrockProvider(bedrock_client=client)


@cache
def _aws_session() -> Any:
    """Shared, because each session loads descriptions of all services and regions."""
    import boto3

    return boto3.Session(region_name=_REGION)


def _base_url(name: str, endpoint: Endpoint) -> str | None:
    return endpoint.base_url or PROVIDERS[provider_family(name)].default_url


_FACTORIES: Final = {"anthropic": _anthropic, "gemini": _google, "mistral": _mistral, "bedrock": _bedrock}
"""By wire format. All other providers have an OpenAI-compatible API."""
