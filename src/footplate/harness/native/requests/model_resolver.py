"""Creates the pydantic-ai model for a model name, with one shared HTTP client per provider.

Clients are shared because creating one takes longer than a short request. API keys and addresses come only from the
configured endpoints, never from environment variables. Retries of the SDKs are disabled, because the engine retries and
shows it in the status of the session.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import httpx2
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class

from footplate.domain.errors import ModelRefused
from footplate.domain.ports.harness import Endpoint
from footplate.domain.ports.model_transport import ModelTransport
from footplate.harness.native.requests import sdk_transport

AnyModel: TypeAlias = Model[Any]
ResolveModel: TypeAlias = Callable[[str], AnyModel]

_ANTHROPIC: Final = "anthropic"
_WARM_UP_MODEL: Final = "claude-sonnet-5"
_ANTHROPIC_URL: Final = "https://api.anthropic.com"
_OPENAI_URL: Final = "https://api.openai.com/v1"
_PROVIDER_BY_API: Final = {"openai-chat": "openai", "openai-responses": "openai"}
"""Provider names that select one of a provider's APIs, and the provider whose endpoint they use."""


class ModelResolver:
    def __init__(self, endpoints: Mapping[str, Endpoint], transport: ModelTransport | None = None) -> None:
        """`transport`: the model proxy, if it runs in this process. Otherwise clients connect to the endpoints."""
        self._endpoints = endpoints
        self._transport = transport
        self._models: dict[str, AnyModel] = {}
        self._providers: dict[str, Provider[Any]] = {}

    @property
    def warm_up_model(self) -> AnyModel | None:
        """An Anthropic model for the warm-up, if this worker has an endpoint for Anthropic."""
        return self.resolve(_WARM_UP_MODEL) if _ANTHROPIC in self._endpoints else None

    def resolve(self, name: str) -> AnyModel:
        if name not in self._models:
            self._models[name] = self._create(name)
        return self._models[name]

    def _create(self, name: str) -> AnyModel:
        try:
            return infer_model(qualify_name(name), self._provider)
        except ImportError as error:
            raise ModelRefused(
                f"The model {name!r} needs a package that is not installed on this worker: {error}",
                help_text="On every worker, install the extra of pydantic-ai-slim that the error names.",
            ) from error
        except (UserError, ValueError) as error:
            raise ModelRefused(f"The model {name!r} is unknown: {error}", help_text=_NAME_HELP) from error

    def _provider(self, name: str) -> Provider[Any]:
        if name not in self._providers:
            self._providers[name] = self._create_provider(name)
        return self._providers[name]

    def _create_provider(self, name: str) -> Provider[Any]:
        family = _PROVIDER_BY_API.get(name, name)
        endpoint = self._endpoints.get(family)
        if endpoint is None:
            known = ", ".join(sorted(self._endpoints)) or "none"
            raise ModelRefused(
                f"This worker has no endpoint for the provider {family!r}.",
                help_text=f"Configure an API key, and a base URL if you use a gateway. Configured providers: {known}.",
            )
        if family == _ANTHROPIC:
            return _anthropic_provider(endpoint, sdk_transport.create_client(self._transport))
        if family == "openai":
            return _openai_provider(endpoint, sdk_transport.create_client(self._transport))
        return _other_provider(family, endpoint)


_NAME_HELP: Final = "Write provider:name, such as openai:gpt-5. Names that start with claude- need no provider."


def qualify_name(name: str) -> str:
    if ":" in name:
        return name
    if name.startswith("claude"):
        return f"{_ANTHROPIC}:{name}"
    raise ModelRefused(f"The model name {name!r} has no provider.", help_text=_NAME_HELP)


def _anthropic_provider(endpoint: Endpoint, client: httpx2.AsyncClient) -> Provider[Any]:
    from anthropic import AsyncAnthropic
    from pydantic_ai.providers.anthropic import AnthropicProvider

    sdk = AsyncAnthropic(
        api_key=endpoint.api_key,
        base_url=endpoint.base_url or _ANTHROPIC_URL,
        max_retries=0,
        http_client=client,
    )
    return AnthropicProvider(anthropic_client=sdk)


def _openai_provider(endpoint: Endpoint, client: httpx2.AsyncClient) -> Provider[Any]:
    from openai import AsyncOpenAI
    from pydantic_ai.providers.openai import OpenAIProvider

    sdk = AsyncOpenAI(
        api_key=endpoint.api_key,
        base_url=endpoint.base_url or _OPENAI_URL,
        max_retries=0,
        http_client=client,
    )
    return OpenAIProvider(openai_client=sdk)


def _other_provider(name: str, endpoint: Endpoint) -> Provider[Any]:
    """Any other provider of pydantic-ai. It receives only the arguments that its constructor accepts."""
    provider = infer_provider_class(name)
    offered = {"api_key": endpoint.api_key, "base_url": endpoint.base_url}
    accepted = inspect.signature(provider).parameters
    arguments = {key: value for key, value in offered.items() if value is not None and key in accepted}
    return provider(**arguments)
