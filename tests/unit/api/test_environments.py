"""Environments: creation, updates, and settings that the operator's backend cannot enforce."""

from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import AsyncAnthropic
from anthropic.types.beta import BetaEnvironment, BetaEnvironmentDeleteResponse
from inline_snapshot import snapshot

from footplate.api.wire.response_models import Environment
from footplate.domain.agents.environment_config import Backend
from footplate.domain.network.command_network_access import Network

from .conftest import Api, make_client
from .sdk_validation import validate_strictly


def _limited(**fields: Any) -> dict[str, Any]:
    return {"config": {"type": "cloud", "networking": {"type": "limited", **fields}}}


async def test_quickstart_environment(sdk: AsyncAnthropic, http: httpx2.AsyncClient) -> None:
    made = await sdk.beta.environments.create(
        name="quick", config={"type": "cloud", "networking": {"type": "unrestricted"}}
    )
    body = (await http.get(f"/v1/environments/{made.id}")).json()
    validate_strictly(BetaEnvironment, body)
    Environment.model_validate(body)
    assert body["config"] == snapshot(
        {
            "type": "cloud",
            "networking": {"type": "unrestricted"},
            "packages": {"type": "packages", "apt": [], "cargo": [], "gem": [], "go": [], "npm": [], "pip": []},
        }
    )
    again = await http.post(f"/v1/environments/{made.id}", json={"config": body["config"], "scope": body["scope"]})
    assert again.json()["config"] == body["config"]


async def test_update_archive_delete(sdk: AsyncAnthropic, http: httpx2.AsyncClient) -> None:
    made = await sdk.beta.environments.create(name="one", description="d", metadata={"a": "1", "b": "2"})
    updated = await sdk.beta.environments.update(made.id, metadata={"a": None, "b": "", "c": "3"})
    assert (updated.metadata, updated.description, updated.name) == ({"c": "3"}, "d", "one")
    assert (await sdk.beta.environments.update(made.id, description=None, name=None)).description is None
    assert (await sdk.beta.environments.archive(made.id)).archived_at is not None
    assert [row.id async for row in sdk.beta.environments.list()] == []
    assert [row.id async for row in sdk.beta.environments.list(include_archived=True)] == [made.id]
    deleted = (await http.delete(f"/v1/environments/{made.id}")).json()
    validate_strictly(BetaEnvironmentDeleteResponse, deleted)
    with pytest.raises(anthropic.NotFoundError):
        await sdk.beta.environments.retrieve(made.id)


async def test_names_are_unique(sdk: AsyncAnthropic) -> None:
    await sdk.beta.environments.create(name="one")
    with pytest.raises(anthropic.ConflictError):
        await sdk.beta.environments.create(name="one")


async def test_a_limited_network_without_hosts_is_stored(sdk: AsyncAnthropic, http: httpx2.AsyncClient) -> None:
    made = await sdk.beta.environments.create(
        name="quiet", config={"type": "cloud", "networking": {"type": "limited", "allow_mcp_servers": True}}
    )
    body = (await http.get(f"/v1/environments/{made.id}")).json()
    validate_strictly(BetaEnvironment, body)
    limited = {
        "type": "limited",
        "allowed_hosts": [],
        "allow_mcp_servers": True,
        "allow_package_managers": False,
    }
    assert body["config"]["networking"] == limited
    updated = await sdk.beta.environments.update(made.id, config={"type": "cloud"})
    assert updated.config == made.config
    partly = {"type": "cloud", "networking": {"type": "limited", "allowed_hosts": []}}
    body = (await http.post(f"/v1/environments/{made.id}", json={"config": partly})).json()
    assert body["config"]["networking"] == limited
    opened = {"type": "cloud", "networking": {"type": "unrestricted"}}
    body = (await http.post(f"/v1/environments/{made.id}", json={"config": opened})).json()
    assert body["config"]["networking"] == {"type": "unrestricted"}
    refused = await http.post(f"/v1/environments/{made.id}", json=_limited(allowed_hosts=["example.com"]))
    assert refused.json()["error"]["field"] == "config.networking.allowed_hosts.0"


async def test_images_and_setup_scripts_are_stored_if_the_backend_has_them(api: Api) -> None:
    api.backend = Backend(
        name="docker",
        network=Network(),
        can_limit_network=True,
        images=frozenset({"tests:1", "tests:2"}),
        supports_setup=True,
    )
    async with make_client(api.build()) as http:
        config = {"type": "cloud", "image": "tests:1", "setup": "make tools"}
        made = (await http.post("/v1/environments", json={"name": "e", "config": config})).json()
        assert (made["config"]["image"], made["config"]["setup"]) == ("tests:1", "make tools")
        path = f"/v1/environments/{made['id']}"
        updated = (await http.post(path, json={"config": {"type": "cloud", "image": "tests:2"}})).json()
        assert (updated["config"]["image"], updated["config"]["setup"]) == ("tests:2", "make tools")
        cleared = (await http.post(path, json={"config": {"type": "cloud", "image": "", "setup": ""}})).json()
        assert cleared["config"].keys() == {"type", "networking", "packages"}
        refused = await http.post(path, json={"config": {"type": "cloud", "image": "secrets:1"}})
        assert (refused.status_code, refused.json()["error"]["field"]) == (400, "config.image")
        long = {"config": {"type": "cloud", "setup": "x" * 65_537}}
        assert (await http.post(path, json=long)).json()["error"]["field"] == "config.setup"


async def test_without_a_sandbox_no_network_can_be_limited(api: Api) -> None:
    api.backend = Backend(name="unsandboxed", network=Network("open"), can_limit_network=False)
    async with make_client(api.build()) as http:
        response = await http.post("/v1/environments", json={"name": "e", **_limited()})
        assert (response.status_code, response.json()["error"]["field"]) == (400, "config.networking")
        assert (await http.post("/v1/environments", json={"name": "e"})).status_code == 200


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"config": {"type": "self_hosted"}}, "config"),
        ({"config": {"type": "moon"}}, "config.type"),
        (_limited(allowed_hosts=["example.com"]), "config.networking.allowed_hosts.0"),
        (_limited(allowed_hosts=["https://example.com/x"]), "config.networking.allowed_hosts.0"),
        (_limited(allow_package_managers=True), "config.networking.allow_package_managers"),
        ({"config": {"type": "cloud", "packages": {"pip": ["requests"]}}}, "config.packages.pip"),
        ({"config": {"type": "cloud", "image": "tests:1"}}, "config.image"),
        ({"config": {"type": "cloud", "setup": "apt-get install -y make"}}, "config.setup"),
        ({"config": {"type": "cloud", "gpu": 1}}, "config.gpu"),
        ({"scope": "account"}, "scope"),
        ({"size": "xl"}, "size"),
    ],
)
async def test_an_invalid_field_is_refused_by_name(http: httpx2.AsyncClient, fields: Any, field: str) -> None:
    response = await http.post("/v1/environments", json={"name": "e", **fields})
    assert response.status_code == 400
    assert response.json()["error"]["field"] == field
