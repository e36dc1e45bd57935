"""Names of models, and the connections of an organisation."""

from pathlib import Path

import pytest

from footplate.domain.agents.model_connections import (
    PROVIDERS,
    ConnectionCatalog,
    ModelConnection,
    ModelName,
    find_provider,
    parse_model_name,
    provider_family,
)
from footplate.domain.files import media_types


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude-sonnet-5", ModelName("anthropic", "claude-sonnet-5", None)),
        ("anthropic:claude-sonnet-5", ModelName("anthropic", "claude-sonnet-5", "anthropic")),
        ("openai-chat:gpt-5", ModelName("openai", "gpt-5", "openai-chat")),
        ("azure-responses:gpt-5", ModelName("azure", "gpt-5", "azure-responses")),
        ("gpu/qwen3:8b", ModelName("gpu", "qwen3:8b", None)),
        ("router/anthropic/claude-sonnet-5", ModelName("router", "anthropic/claude-sonnet-5", None)),
        ("openrouter:meta/llama:free", ModelName("openrouter", "meta/llama:free", "openrouter")),
        ("gpt-5", None),
        ("/gpt-5", None),
        ("openai:", None),
        ("openai/", None),
        ("", None),
    ],
)
@pytest.mark.requirement("F4")
def test_a_name_is_split_at_its_first_separator(name: str, expected: ModelName | None) -> None:
    assert parse_model_name(name) == expected


def test_an_organisation_sees_its_own_and_the_shared_connections() -> None:
    shared, other = ModelConnection(name="openai", provider="openai"), ModelConnection(name="gpu", provider="vllm")
    own = ModelConnection(name="openai", provider="azure", organisation="acme")
    secret = ModelConnection(name="private", provider="vllm", organisation="acme")
    catalog = ConnectionCatalog([own, secret, shared, other])
    assert catalog.list_connections("acme") == {"openai": own, "private": secret, "gpu": other}
    assert catalog.list_connections("globex") == {"openai": shared, "gpu": other}


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("work/gpt-5", "groq"),
        ("chat/gpt-5", "openai-chat"),
        ("google/gemini-3", "google"),
        ("openai:gpt-5", "openai"),
        ("openai-chat:gpt-5", "openai-chat"),
        ("claude-sonnet-5", "anthropic"),
        ("sonnet", "anthropic"),
    ],
)
def test_what_a_model_accepts_depends_on_the_provider_of_its_connection(model: str, provider: str) -> None:
    """pydantic-ai fetches URLs in the worker for a provider that does not."""
    found = find_provider(model, {"work": "groq", "chat": "openai-chat", "openai": ""})
    assert found == provider
    assert media_types.is_accepted_by_url("document", found) is (provider in {"anthropic", "openai"})


def test_every_family_is_a_provider() -> None:
    assert {provider_family(name) for name in PROVIDERS} <= PROVIDERS.keys()


def test_the_documentation_lists_every_provider_and_its_package() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "models.md").read_text()
    rows = page.partition("## Providers")[2].partition("\n## ")[0].splitlines()
    for name, provider in PROVIDERS.items():
        (row,) = [row for row in rows if row.startswith("|") and f"`{name}`" in row.split("|")[1]]
        assert (f"footplate[{provider.extra}]" if provider.extra else "included") in row
