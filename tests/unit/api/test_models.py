"""`/v1/models`: the models of the organisation's connections, and agents with a model of an unknown connection."""

from dataclasses import replace
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from anthropic.types import ModelInfo

from footplate.api.wire.models import ModelResponse
from footplate.client import AsyncFootplate, resources
from footplate.domain.agents.model_connections import ConnectionCatalog, ModelConnection

from .conftest import BASE, Api, make_client
from .sdk_validation import validate_strictly

CONNECTIONS = ConnectionCatalog(
    [
        ModelConnection(name="anthropic", provider="anthropic"),
        ModelConnection(name="gpu", provider="vllm", models=("qwen3:8b", "org/model", "qwen3:8b")),
        ModelConnection(name="secret", provider="vllm", organisation="acme", models=("m",)),
    ]
)
IDS = ["anthropic/claude-haiku-5-5", "anthropic/claude-sonnet-5", "gpu/org/model", "gpu/qwen3:8b"]


@pytest.fixture
def connected(api: Api) -> Api:
    def known_models(provider: str) -> list[str]:
        return ["claude-sonnet-5", "claude-haiku-5-5"] if provider == "anthropic" else []

    services = replace(api.app.state.services, connections=CONNECTIONS, known_models=known_models)
    api.app.state.services = services
    return api


@pytest.mark.requirement("F4")
async def test_the_sdk_lists_models_page_by_page(connected: Api, sdk: AsyncAnthropic) -> None:
    for limit in (1, 3, 1000):
        assert [model.id async for model in sdk.models.list(limit=limit)] == IDS
        assert [model.id async for model in sdk.beta.models.list(limit=limit)] == IDS
    page = await sdk.models.list(before_id=IDS[3], limit=2)
    assert ([model.id for model in page.data], page.has_more) == (IDS[1:3], True)


async def test_a_model_has_its_connection_and_provider(connected: Api) -> None:
    async with make_client(connected.app) as http:
        body = (await http.get("/v1/models")).json()
        for model in body["data"]:
            validate_strictly(ModelInfo, model)
            ModelResponse.model_validate(model)
        assert [(model["connection"], model["provider"]) for model in body["data"]][1:3] == [
            ("anthropic", "anthropic"),
            ("gpu", "vllm"),
        ]
        assert (body["first_id"], body["last_id"], body["has_more"]) == (IDS[0], IDS[-1], False)
        refused = await http.get("/v1/models?lifecycle=retired")
        assert (refused.status_code, refused.json()["error"]["field"]) == (400, "lifecycle")


async def test_the_client_lists_all_pages(connected: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_MODELS_PAGE", 1)
    async with make_client(connected.app) as http:
        found = await AsyncFootplate(BASE, "secret-a", http=http).models.list()
    assert [(model.id, model.provider) for model in found] == [
        *((model_id, "anthropic") for model_id in IDS[:2]),
        *((model_id, "vllm") for model_id in IDS[2:]),
    ]


@pytest.mark.parametrize("model", ["secret/m", "nowhere/gpt-5", {"id": "nowhere/gpt-5"}])
@pytest.mark.requirement("F4")
async def test_an_agent_with_an_unknown_connection_is_refused(connected: Api, model: Any) -> None:
    async with make_client(connected.app) as http:
        response = await http.post("/v1/agents", json={"name": "A", "model": model})
        error = response.json()["error"]
        assert (response.status_code, error["field"]) == (400, "model")
        assert "the organisation has no connection" in error["message"]
        assert "anthropic, gpu" in response.text
        agent = (await http.post("/v1/agents", json={"name": "A", "model": "gpu/x"})).json()
        updated = await http.post(f"/v1/agents/{agent['id']}", json={"model": model})
        assert (updated.status_code, updated.json()["error"]["field"]) == (400, "model")


@pytest.mark.parametrize("model", ["gpu/other", "anthropic/claude-x", "openai/gpt-5", "openai:gpt-5", "claude-x", "m"])
async def test_other_models_of_a_connection_and_aliases_are_accepted(connected: Api, model: str) -> None:
    async with make_client(connected.app) as http:
        response = await http.post("/v1/agents", json={"name": "A", "model": model})
        assert response.status_code == 200, response.text
