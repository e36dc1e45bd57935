"""Server-side toolsets of agents: only installed ones are accepted, and their names do not collide with MCP servers."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from .conftest import Api, make_client

TOOLSET = {"name": "ledger"}


@pytest.fixture
def installed(api: Api) -> Api:
    api.app.state.services = replace(api.app.state.services, toolsets=frozenset({"ledger"}))
    return api


async def create(http: httpx2.AsyncClient, *toolsets: dict[str, Any], **fields: Any) -> httpx2.Response:
    return await http.post("/v1/agents", json={"name": "A", "model": "m", "server_toolsets": [*toolsets], **fields})


@pytest.mark.requirement("R1")
async def test_an_installed_toolset_is_stored_with_its_settings(installed: Api) -> None:
    async with make_client(installed.app) as http:
        response = await create(
            http, {**TOOLSET, "settings": {"a": 1}, "configs": [{"name": "note", "enabled": False}]}
        )
        assert response.status_code == 200, response.text
        agent = response.json()
        stored = {
            "settings": {"a": 1},
            "configs": [{"name": "note", "enabled": False}],
            "default_config": {"enabled": True},
        }
        assert agent["server_toolsets"] == [{**TOOLSET, **stored}]
        path = f"/v1/agents/{agent['id']}"
        again = await http.post(path, json={"server_toolsets": agent["server_toolsets"]})
        assert again.json()["version"] == agent["version"]
        assert "server_toolsets" not in (await http.post(path, json={"server_toolsets": None})).json()


@pytest.mark.parametrize("name", ["other", "ledger"])
async def test_an_unknown_toolset_is_refused_everywhere_that_tools_are_set(installed: Api, name: str) -> None:
    toolsets = [{**TOOLSET, "name": name}]
    async with make_client(installed.app) as http:
        agent = (await http.post("/v1/agents", json={"name": "A", "model": "m"})).json()
        environment = (await http.post("/v1/environments", json={"name": "e", "config": {"type": "cloud"}})).json()
        chosen = {"type": "agent_with_overrides", "id": agent["id"], "server_toolsets": toolsets}
        session = {"agent": agent["id"], "environment_id": environment["id"]}
        made = (await http.post("/v1/sessions", json=session)).json()
        for path, body, where in (
            ("/v1/agents", {"name": "A", "model": "m", "server_toolsets": toolsets}, ""),
            (f"/v1/agents/{agent['id']}", {"server_toolsets": toolsets}, ""),
            ("/v1/sessions", {**session, "agent": chosen}, "agent."),
            (f"/v1/sessions/{made['id']}", {"agent": {"server_toolsets": toolsets}}, "agent."),
        ):
            response = await http.post(path, json=body)
            if name == "ledger":
                assert response.status_code == 200, response.text
                continue
            assert response.status_code == 400
            error = response.json()["error"]
            assert error["message"] == f"{where}server_toolsets.0.name: this server has no toolset 'other'"
            assert "Installed toolsets: ledger." in error["help"]


@pytest.mark.parametrize(
    ("toolsets", "message"),
    [
        ([TOOLSET, TOOLSET], "listed twice"),
        ([{**TOOLSET, "name": "a b"}], "server_toolsets.0"),
        ([{**TOOLSET, "settings": {"a": "x" * 20_000}}], "at most 16384 bytes"),
        ([{**TOOLSET, "configs": [{"name": "note"}, {"name": "note"}]}], "configured twice"),
        ([{**TOOLSET, "url": "https://example.com"}], "url"),
    ],
)
async def test_an_invalid_toolset_is_refused(installed: Api, toolsets: list[dict[str, Any]], message: str) -> None:
    async with make_client(installed.app) as http:
        response = await create(http, *toolsets)
    assert response.status_code == 400
    assert message in response.json()["error"]["message"]


async def test_the_name_of_a_toolset_differs_from_those_of_mcp_servers(installed: Api) -> None:
    server = {"type": "url", "name": "ledger", "url": "https://mcp.example.com/mcp"}
    async with make_client(installed.app) as http:
        response = await create(http, TOOLSET, mcp_servers=[server])
    assert response.status_code == 400
    assert "an MCP server with the same name, 'ledger'" in response.json()["error"]["message"]


async def test_subagents_use_the_names_of_their_agent_for_the_same_tools(installed: Api) -> None:
    server = {"type": "url", "name": "ledger", "url": "https://mcp.example.com/mcp"}
    async with make_client(installed.app) as http:
        members = {
            "another MCP server with the name 'ledger'": await create(http, mcp_servers=[server]),
            "": await create(http, {**TOOLSET, "settings": {"a": 1}}),
        }
        multiagent: dict[str, Any] = {}
        for message, member in members.items():
            multiagent = {"type": "coordinator", "agents": [member.json()["id"]]}
            response = await create(http, TOOLSET, multiagent=multiagent, harness="native")
            assert response.status_code == (400 if message else 200)
            assert message in response.text
        refused = await create(http, multiagent=multiagent, harness="claude")
        assert "has server_toolsets, which subagents of Claude Code do not support" in refused.text
