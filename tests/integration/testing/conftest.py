"""Clients of the scripted model: the official SDKs and pydantic-ai, exactly as users install them."""

import os
from collections.abc import AsyncIterator

import anthropic
import openai
import pytest
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from footplate.testing import ScriptedModel


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the machine's own settings for models and proxies."""
    for name in os.environ:
        if name.startswith(("ANTHROPIC_", "OPENAI_")) or name.lower() == "http_proxy":
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
async def shared_model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as server:
        yield server


@pytest.fixture
def model(shared_model: ScriptedModel) -> ScriptedModel:
    """The shared server without recorded requests. A test installs the scripts that it uses."""
    shared_model.clear()
    return shared_model


@pytest.fixture
async def client(model: ScriptedModel) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(api_key="test", base_url=model.url, max_retries=0) as sdk:
        yield sdk


@pytest.fixture
def native(client: anthropic.AsyncAnthropic) -> AnthropicModel:
    return AnthropicModel("claude-sonnet-5", provider=AnthropicProvider(anthropic_client=client))


@pytest.fixture
async def openai_client(model: ScriptedModel) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(api_key="test", base_url=model.openai_url, max_retries=0) as sdk:
        yield sdk
