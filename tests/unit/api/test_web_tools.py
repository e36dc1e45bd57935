"""The web tools are off unless they are enabled by name. Search is refused if there is no search provider."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from .conftest import Api, make_client

TOOLSET = "agent_toolset_20260401"


def toolset(*configs: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": TOOLSET, "configs": list(configs)}]


def enabled(agent: dict[str, Any]) -> dict[str, bool]:
    return {config["name"]: config["enabled"] for config in agent["tools"][0]["configs"]}


async def test_fetching_is_enabled_only_by_name(http: httpx2.AsyncClient) -> None:
    async def create(**tool: Any) -> dict[str, bool]:
        response = await http.post("/v1/agents", json={"name": "A", "model": "m", "tools": [{"type": TOOLSET, **tool}]})
        assert response.status_code == 200, response.text
        return enabled(response.json())

    off = {"web_fetch": False, "web_search": False}
    assert await create() == off
    assert await create(default_config={"enabled": True}) == off
    assert await create(configs=[{"name": "web_fetch"}]) == off
    assert await create(configs=[{"name": "web_fetch", "enabled": True}]) == {**off, "web_fetch": True}


@pytest.mark.parametrize("available", [False, True])
async def test_searching_needs_a_provider_everywhere_that_tools_are_set(api: Api, *, available: bool) -> None:
    api.app.state.services = replace(api.app.state.services, has_search=available)
    searching = toolset({"name": "bash"}, {"name": "web_search", "enabled": True})
    async with make_client(api.app) as http:
        agent = (await http.post("/v1/agents", json={"name": "A", "model": "m"})).json()
        environment = (await http.post("/v1/environments", json={"name": "e", "config": {"type": "cloud"}})).json()
        chosen = {"type": "agent_with_overrides", "id": agent["id"], "tools": searching}
        session = {"agent": agent["id"], "environment_id": environment["id"]}
        made = (await http.post("/v1/sessions", json=session)).json()
        for path, body, where in (
            ("/v1/agents", {"name": "A", "model": "m", "tools": searching}, ""),
            (f"/v1/agents/{agent['id']}", {"tools": searching}, ""),
            ("/v1/sessions", {**session, "agent": chosen}, "agent."),
            (f"/v1/sessions/{made['id']}", {"agent": {"tools": searching}}, "agent."),
        ):
            response = await http.post(path, json=body)
            if available:
                assert response.status_code == 200, response.text
                owner = response.json()
                assert enabled(owner.get("agent") or owner)["web_search"] is True
            else:
                error = response.json()["error"]
                assert response.status_code == 400
                assert error["message"].startswith(
                    f"{where}tools.0.configs.1.enabled: this server has no search provider"
                )
        assert (await http.post(f"/v1/sessions/{made['id']}", json={"title": "x"})).status_code == 200
