"""Creates the pydantic-ai model for a model name, with one shared HTTP client per connection.

Clients are shared because creating one takes longer than a short request. API keys and addresses come only from the
configured endpoints, never from environment variables. Retries of the SDKs are disabled, because the engine retries and
shows it in the status of the session.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model
from pydantic_ai.providers import Provider

from footplate.domain.agents.model_connections import ANTHROPIC, PROVIDERS, parse_model_name, select_provider
from footplate.domain.errors import ModelRefused
from footplate.domain.ports.harness import Endpoint
from footplate.domain.ports.model_transport import ModelTransport
from footplate.harness.native.requests import provider_clients, sdk_transport

AnyModel: TypeAlias = Model[Any]
ResolveModel: TypeAlias = Callable[[str, Mapping[str, Endpoint]], AnyModel]

_WARM_UP_MODEL: Final = "claude-sonnet-5"
_PLACEHOLDER_KEY: Final = "each-turn-brings-its-own"
_NAME_HELP: Final = (
    "Write connection/model, such as openai/gpt-5. Names that start with claude- need no connection. "
    "`footplate models` lists the models of your organisation."
)


class ModelResolver:
    def __init__(self, endpoints: Mapping[str, Endpoint], transport: ModelTransport | None = None) -> None:
        """`endpoints`: by connection, for turns that bring none. `transport`: the model proxy, if it runs in this
        process. Otherwise clients connect to the endpoints.
        """
        self._endpoints = endpoints
        self._transport = transport
        self._models: dict[tuple[str, str | None, str], AnyModel] = {}
        self._providers: dict[tuple[str, str | None], Provider[Any]] = {}

    @property
    def warm_up_model(self) -> AnyModel | None:
        """An Anthropic model for the warm-up, if this worker has an endpoint for Anthropic."""
        return self.resolve(_WARM_UP_MODEL) if ANTHROPIC in self._endpoints else None

    def load_packages(self) -> None:
        """Loads the SDKs of the shared connections and creates their clients. This can take seconds, so call it before
        the worker reports ready: in a turn it would block the event loop. A missing package is reported by the turn.
        """
        for name, endpoint in self._endpoints.items():
            provider = PROVIDERS.get(endpoint.provider or name)
            if provider is not None and provider.extra is not None:
                with suppress(ModelRefused):
                    self.resolve(f"{name}/{_WARM_UP_MODEL}")

    def resolve(self, name: str, turn_endpoints: Mapping[str, Endpoint] | None = None) -> AnyModel:
        """Returns the model. `turn_endpoints`: the connections that the turn may use."""
        parsed = parse_model_name(name)
        if parsed is None:
            raise ModelRefused(f"The model name {name!r} has no connection.", help_text=_NAME_HELP)
        endpoints = turn_endpoints or self._endpoints
        endpoint = endpoints.get(parsed.connection)
        if endpoint is None:
            known = ", ".join(sorted(endpoints)) or "none"
            raise ModelRefused(
                f"The model {name!r} needs the connection {parsed.connection!r}, which this organisation does not "
                "have on this worker.",
                help_text=f"Use a model of another connection, or ask the operator to configure it. Connections: "
                f"{known}.",
            )
        provider_name = select_provider(parsed, endpoint.provider or parsed.connection)
        if turn_endpoints:
            endpoint = replace(endpoint, api_key=_PLACEHOLDER_KEY)
        key = (provider_name, endpoint.base_url, parsed.model)
        if key not in self._models:
            self._models[key] = self._create(provider_name, parsed.model, endpoint)
        return self._models[key]

    def _create(self, provider: str, model: str, endpoint: Endpoint) -> AnyModel:
        if provider not in PROVIDERS:
            raise ModelRefused(
                f"The provider {provider!r} is unknown.",
                help_text=f"Providers: {', '.join(PROVIDERS)}. Use openai-compatible for any other server with "
                "OpenAI's API.",
            )
        try:
            return provider_clients.create_model(provider, model, self._provider(provider, endpoint))
        except ImportError as error:
            raise ModelRefused(
                f"The provider {provider!r} needs a package that is not installed on this worker.",
                help_text=f"On every worker, install footplate[{PROVIDERS[provider].extra}].",
            ) from error
        except (UserError, ValueError) as error:
            raise ModelRefused(
                f"The model {model!r} of {provider} is unknown: {error}", help_text=_NAME_HELP
            ) from error

    def _provider(self, name: str, endpoint: Endpoint) -> Provider[Any]:
        key = (name, endpoint.base_url)
        if key not in self._providers:
            client = sdk_transport.create_client(self._transport)
            self._providers[key] = provider_clients.create_provider(name, endpoint, client)
        return self._providers[key]


def find_endpoint(name: str, turn_endpoints: Mapping[str, Endpoint]) -> Endpoint | None:
    """Returns the turn's own endpoint for a model, with its token."""
    parsed = parse_model_name(name)
    return turn_endpoints.get(parsed.connection) if parsed is not None else None
