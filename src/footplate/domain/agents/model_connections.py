"""Named connections to model providers, and the names of models: `connection/model`, `provider:model` or `claude-…`.

A connection has a provider, an address and a key. The operator configures connections, for all organisations or for
one. `PROVIDERS` lists the supported providers.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

ANTHROPIC: Final = "anthropic"
OPENAI: Final = "openai"
CONNECTION_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_FIRST_SEPARATOR: Final = re.compile(r"[:/]")
_FAMILIES: Final = {"openai-chat": OPENAI, "openai-responses": OPENAI, "azure-responses": "azure"}
"""Names that select one of a provider's APIs, and the provider."""

WireFormatName = Literal["anthropic", "openai", "gemini", "mistral", "bedrock"]


@dataclass(frozen=True, slots=True)
class ModelProvider:
    wire_format: WireFormatName
    default_url: str | None = None
    """None: a connection needs a base URL. Bedrock's address follows from the region."""
    credential_header: str | None = None
    """The header for the key. None: the one in which the client sends its token."""
    needs_key: bool = True
    extra: str | None = None
    """The extra of the package `footplate` that this provider needs."""


_OPENAI: Final = ModelProvider("openai", "https://api.openai.com/v1")
_AZURE: Final = ModelProvider("openai", credential_header="api-key")

PROVIDERS: Final[Mapping[str, ModelProvider]] = {
    ANTHROPIC: ModelProvider("anthropic", "https://api.anthropic.com"),
    "azure": _AZURE,
    "azure-responses": _AZURE,
    "bedrock": ModelProvider("bedrock", credential_header="authorization", extra="bedrock"),
    "deepseek": ModelProvider("openai", "https://api.deepseek.com"),
    "fireworks": ModelProvider("openai", "https://api.fireworks.ai/inference/v1"),
    "google": ModelProvider(
        "gemini", "https://generativelanguage.googleapis.com", credential_header="x-goog-api-key", extra="google"
    ),
    "groq": ModelProvider("openai", "https://api.groq.com/openai/v1"),
    "mistral": ModelProvider("mistral", "https://api.mistral.ai", extra="mistral"),
    "ollama": ModelProvider("openai", "http://127.0.0.1:11434/v1", needs_key=False),
    OPENAI: _OPENAI,
    "openai-chat": _OPENAI,
    "openai-compatible": ModelProvider("openai", needs_key=False),
    "openai-responses": _OPENAI,
    "openrouter": ModelProvider("openai", "https://openrouter.ai/api/v1"),
    "together": ModelProvider("openai", "https://api.together.xyz/v1"),
    "vllm": ModelProvider("openai", needs_key=False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConnection:
    """A connection without its key, as organisations see it."""

    name: str
    provider: str
    organisation: str | None = None
    """None: all organisations can use it."""
    models: tuple[str, ...] = ()
    """The models to list. Empty: those that the library knows. Other models of the connection can be used too."""


class ModelName(NamedTuple):
    """The parts of a model's name."""

    connection: str
    model: str
    provider: str | None
    """The provider in the form `provider:model`, which can select one of its APIs."""


def provider_family(provider: str) -> str:
    """The provider itself, if the name selects one of its APIs, such as `openai-chat`."""
    return _FAMILIES.get(provider, provider)


def parse_model_name(name: str) -> ModelName | None:
    """Splits a name at its first `/` or `:`. None: the name has no connection, and does not start with `claude`."""
    separator = _FIRST_SEPARATOR.search(name)
    if separator is None:
        return ModelName(ANTHROPIC, name, None) if name.startswith("claude") else None
    before, model = name[: separator.start()], name[separator.end() :]
    if not before or not model:
        return None
    if separator[0] == ":":
        return ModelName(provider_family(before), model, before)
    return ModelName(before, model, None)


def select_provider(name: ModelName, of_connection: str) -> str:
    """Returns the provider of the connection, or the one of its APIs that the name selects."""
    if name.provider is not None and provider_family(name.provider) == provider_family(of_connection):
        return name.provider
    return of_connection


def find_provider(model: str, providers: Mapping[str, str]) -> str:
    """Returns the provider of a model. `providers`: by connection; a connection without an entry is named like its
    provider. Other names of models are Claude Code's own, such as `sonnet`.
    """
    name = parse_model_name(model)
    return ANTHROPIC if name is None else select_provider(name, providers.get(name.connection) or name.connection)


class ConnectionCatalog:
    """The connections of each organisation. Its own replaces one of the same name that all organisations share."""

    def __init__(self, connections: Iterable[ModelConnection] = ()) -> None:
        self._connections = tuple(connections)

    def list_connections(self, organisation: str) -> dict[str, ModelConnection]:
        by_scope = sorted(self._connections, key=lambda one: one.organisation is not None)
        return {one.name: one for one in by_scope if one.organisation in {None, organisation}}
