"""Environments: the quickstart's cloud, patches, and what no backend enforces yet."""

from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import AsyncAnthropic
from anthropic.types.beta import BetaEnvironment, BetaEnvironmentDeleteResponse
from inline_snapshot import snapshot

from footplate.api.wire.answers import Environment

from .strict import strictly


async def test_quickstart_environment(sdk: AsyncAnthropic, http: httpx2.AsyncClient) -> None:
    made = await sdk.beta.environments.create(
        name="quick", config={"type": "cloud", "networking": {"type": "unrestricted"}}
    )
    body = (await http.get(f"/v1/environments/{made.id}")).json()
    strictly(BetaEnvironment, body)
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
    strictly(BetaEnvironmentDeleteResponse, deleted)
    with pytest.raises(anthropic.NotFoundError):
        await sdk.beta.environments.retrieve(made.id)


async def test_names_are_unique(sdk: AsyncAnthropic) -> None:
    await sdk.beta.environments.create(name="one")
    with pytest.raises(anthropic.ConflictError):
        await sdk.beta.environments.create(name="one")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"config": {"type": "self_hosted"}}, "config"),
        ({"config": {"type": "moon"}}, "config.type"),
        ({"config": {"type": "cloud", "networking": {"type": "limited", "allowed_hosts": []}}}, "config.networking"),
        ({"config": {"type": "cloud", "packages": {"pip": ["requests"]}}}, "config.packages.pip"),
        ({"config": {"type": "cloud", "gpu": 1}}, "config.gpu"),
        ({"scope": "account"}, "scope"),
        ({"size": "xl"}, "size"),
    ],
)
async def test_refused_with_the_name_of_the_field(http: httpx2.AsyncClient, fields: Any, field: str) -> None:
    answer = await http.post("/v1/environments", json={"name": "e", **fields})
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == field
