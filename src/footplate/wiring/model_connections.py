"""Reads the connections to model providers: those of the providers' own settings, and those of the file that
`FOOTPLATE_MODEL_CONNECTIONS` names. Keys are read only for the model proxy of a worker.
"""

import os
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from footplate.config import Settings
from footplate.domain.agents.model_connections import (
    ANTHROPIC,
    CONNECTION_NAME,
    OPENAI,
    PROVIDERS,
    ConnectionCatalog,
    ModelConnection,
    ModelProvider,
    provider_family,
)
from footplate.domain.errors import Conflict
from footplate.domain.ports.harness import Endpoint

_BEDROCK: Final = "bedrock"
_SETTING: Final = "FOOTPLATE_MODEL_CONNECTIONS"
_PAGE: Final = "docs/models.md describes the file."
_PROVIDER_PACKAGES: Final = {"google": "google.genai", "mistral": "mistralai", _BEDROCK: "boto3"}


class ConfiguredConnection(BaseModel):
    """One entry of the file."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: Annotated[str, StringConstraints(pattern=f"^{CONNECTION_NAME.pattern}$")]
    provider: str
    organisation: str | None = None
    base_url: Annotated[str, StringConstraints(pattern="^https?://")] | None = None
    region: Annotated[str, StringConstraints(pattern="^[a-z0-9-]+$")] | None = None
    access_key_id: str | None = None
    api_key_env: str | None = None
    api_key_file: Path | None = None
    models: list[Annotated[str, StringConstraints(min_length=1, max_length=256)]] = Field(default_factory=list)

    def find_fault(self) -> str | None:
        provider = PROVIDERS.get(self.provider)
        if provider is None:
            return f"the provider {self.provider!r} is unknown. Providers: {', '.join(PROVIDERS)}."
        return self._find_key_fault(provider) or self._find_address_fault(provider)

    def _find_key_fault(self, provider: ModelProvider) -> str | None:
        if self.api_key_env is not None and self.api_key_file is not None:
            return "set api_key_env or api_key_file, not both."
        if provider.needs_key and self.api_key_env is None and self.api_key_file is None:
            return "set api_key_env or api_key_file: this provider needs a key."
        return None

    def _find_address_fault(self, provider: ModelProvider) -> str | None:
        if self.provider == _BEDROCK and self.region is None:
            return "set the region, such as eu-central-1."
        if self.provider != _BEDROCK and (self.region or self.access_key_id):
            return "region and access_key_id are only for Amazon Bedrock."
        if self.provider != _BEDROCK and provider.default_url is None and self.base_url is None:
            return "set base_url: this provider has no address of its own."
        return None

    def read_key(self) -> str:
        """Raises `Conflict` if the key cannot be read, or is empty."""
        if self.api_key_env is not None:
            key, source = os.environ.get(self.api_key_env, ""), f"The environment variable {self.api_key_env}"
        elif self.api_key_file is not None:
            source = f"The file {self.api_key_file}"
            try:
                key = self.api_key_file.read_text().strip()
            except (OSError, ValueError):
                key = ""
        else:
            return ""
        if not key:
            raise Conflict(
                f"{source}, which the connection {self.name!r} needs, has no key or cannot be read.",
                help_text=f"Provide the key on every worker, or remove the connection from {_SETTING}.",
            )
        return key


class _ConnectionsFile(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    connections: list[ConfiguredConnection] = Field(default_factory=list)


def load_configured_connections(settings: Settings) -> Sequence[ConfiguredConnection]:
    """Returns the entries of the file. Raises `Conflict` if it is not valid."""
    path = settings.model_connections
    if path is None:
        return ()
    try:
        found = TypeAdapter(_ConnectionsFile).validate_python(tomllib.loads(path.read_text())).connections
    except (OSError, ValueError) as error:
        problem = _validation_text(error) if isinstance(error, ValidationError) else str(error)
        raise Conflict(f"The file of {_SETTING} is not valid: {problem}", help_text=_PAGE) from error
    seen: set[tuple[str, str | None]] = set()
    for one in found:
        fault = one.find_fault()
        if (one.name, one.organisation) in seen:
            fault = "there is another connection with this name."
        if fault is not None:
            raise Conflict(
                f"The connection {one.name!r} in the file of {_SETTING} is not valid: {fault}", help_text=_PAGE
            )
        seen.add((one.name, one.organisation))
    return found


def load_catalog(settings: Settings) -> ConnectionCatalog:
    """Returns the connections without their keys."""
    configured = [
        ModelConnection(name=one.name, provider=one.provider, organisation=one.organisation, models=tuple(one.models))
        for one in load_configured_connections(settings)
    ]
    of_settings = [ModelConnection(name=name, provider=name) for name in settings.model_providers]
    return ConnectionCatalog([*of_settings, *configured])


def list_key_variables(settings: Settings) -> Sequence[str]:
    """The environment variables that contain keys of the connections."""
    return [one.api_key_env for one in load_configured_connections(settings) if one.api_key_env is not None]


def load_endpoints(settings: Settings) -> tuple[dict[str, Endpoint], dict[str, dict[str, Endpoint]]]:
    """Returns the endpoints with the real keys, for the model proxy only: those that all organisations share, and those
    of each organisation.
    """
    shared, own = _endpoints_of_settings(settings), dict[str, dict[str, Endpoint]]()
    for one in load_configured_connections(settings):
        endpoint = Endpoint(one.read_key(), one.base_url, one.provider, one.region, one.access_key_id)
        scope = shared if one.organisation is None else own.setdefault(one.organisation, {})
        scope[one.name] = endpoint
    return shared, own


@cache
def known_models(provider: str) -> tuple[str, ...]:
    """The models of a provider that the library knows. The first call imports the library, so make it in a thread."""
    from pydantic_ai.models import known_model_names

    names = (name.partition(":") for name in known_model_names())
    return tuple(model for owner, _, model in names if owner == provider_family(provider))


def find_missing_extra(provider: str) -> str | None:
    """The extra of the package `footplate` that a provider needs and that is not installed here."""
    extra = PROVIDERS[provider].extra
    try:
        return None if extra is None or find_spec(_PROVIDER_PACKAGES[extra]) is not None else extra
    except ModuleNotFoundError:  # the parent package does not exist either
        return extra


def _endpoints_of_settings(settings: Settings) -> dict[str, Endpoint]:
    endpoints = {}
    if settings.anthropic_api_key is not None:
        endpoints[ANTHROPIC] = Endpoint(settings.anthropic_api_key.get_secret_value(), settings.anthropic_base_url)
    if settings.openai_api_key is not None:
        endpoints[OPENAI] = Endpoint(settings.openai_api_key.get_secret_value(), settings.openai_base_url)
    return endpoints


def _validation_text(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
