"""Agents: creation, versions, merge rules of updates, and refused fields."""

from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import AsyncAnthropic
from anthropic.types.beta import BetaManagedAgentsAgent
from inline_snapshot import snapshot

from footplate.api.wire.response_models import Agent

from .conftest import Api
from .sdk_validation import validate_strictly

TOOLSET = {"type": "agent_toolset_20260401"}
CUSTOM: dict[str, Any] = {
    "type": "custom",
    "name": "get_weather",
    "description": "The weather somewhere.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
SERVER = {"type": "url", "name": "x", "url": "https://mcp.example.com/mcp"}
MCP_TOOLSET: dict[str, Any] = {
    "type": "mcp_toolset",
    "mcp_server_name": "x",
    "default_config": {"permission_policy": {"type": "always_allow"}},
}


async def create_agent(http: httpx2.AsyncClient, **fields: Any) -> dict[str, Any]:
    response = await http.post("/v1/agents", json={"name": "Coder", "model": "claude-opus-5-5", **fields})
    assert response.status_code == 200, response.text
    validate_strictly(BetaManagedAgentsAgent, response.json())
    Agent.model_validate(response.json())
    body: dict[str, Any] = response.json()
    return body


async def post_refused(http: httpx2.AsyncClient, path: str, body: Any) -> tuple[str, str]:
    response = await http.post(path, json=body)
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    return error["field"], error["message"]


async def test_quickstart_agent(sdk: AsyncAnthropic) -> None:
    agent = await sdk.beta.agents.create(
        name="Coder", model="claude-opus-5-5", system="Be brief.", tools=[{"type": "agent_toolset_20260401"}]
    )
    assert agent.version == 1
    assert agent.model.id == "claude-opus-5-5"
    assert agent.system == "Be brief."
    assert (await sdk.beta.agents.retrieve(agent.id)).name == "Coder"


@pytest.mark.requirement("F1")
async def test_the_response_of_a_created_agent(http: httpx2.AsyncClient) -> None:
    body = await create_agent(http, tools=[TOOLSET, CUSTOM], role="a reviewer", limits={"max_iterations": 3})
    for changing in ("id", "created_at", "updated_at"):
        del body[changing]
    assert body == snapshot(
        {
            "type": "agent",
            "version": 1,
            "name": "Coder",
            "description": None,
            "model": {"id": "claude-opus-5-5", "speed": "standard"},
            "system": None,
            "tools": [
                {
                    "type": "agent_toolset_20260401",
                    "configs": [
                        {
                            "type": "web_fetch",
                            "name": "web_fetch",
                            "enabled": False,
                            "permission_policy": {"type": "always_allow"},
                        },
                        {
                            "type": "web_search",
                            "name": "web_search",
                            "enabled": False,
                            "permission_policy": {"type": "always_allow"},
                        },
                    ],
                    "default_config": {"enabled": True, "permission_policy": {"type": "always_allow"}},
                },
                {
                    "type": "custom",
                    "name": "get_weather",
                    "description": "The weather somewhere.",
                    "input_schema": {
                        "type": "object",
                        "properties": {"city": {"type": "string"}},
                        "required": ["city"],
                    },
                },
            ],
            "mcp_servers": [],
            "skills": [],
            "multiagent": None,
            "execution_identity": {"type": "service_account"},
            "role": "a reviewer",
            "limits": {"max_iterations": 3},
            "metadata": {},
            "archived_at": None,
        }
    )


async def test_a_response_can_be_sent_back_as_an_update(http: httpx2.AsyncClient) -> None:
    agent = await create_agent(http, tools=[{**TOOLSET, "configs": [{"name": "bash", "enabled": False}]}, CUSTOM])
    again = await http.post(
        f"/v1/agents/{agent['id']}",
        json={name: agent[name] for name in ("name", "model", "tools", "skills", "mcp_servers", "execution_identity")},
    )
    assert again.json()["version"] == 1
    assert again.json()["tools"] == agent["tools"]


async def test_an_agent_has_mcp_servers(http: httpx2.AsyncClient) -> None:
    configs = [{"name": "read", "enabled": False}]
    agent = await create_agent(http, mcp_servers=[SERVER], tools=[{**MCP_TOOLSET, "configs": configs}])
    validate_strictly(BetaManagedAgentsAgent, agent)
    assert agent["mcp_servers"] == [SERVER]
    assert agent["tools"] == [
        {
            "type": "mcp_toolset",
            "mcp_server_name": "x",
            "configs": [{"name": "read", "enabled": False, "permission_policy": {"type": "always_allow"}}],
            "default_config": {"enabled": True, "permission_policy": {"type": "always_allow"}},
        }
    ]
    path = f"/v1/agents/{agent['id']}"
    assert (await http.post(path, json={"mcp_servers": agent["mcp_servers"], "tools": agent["tools"]})).json() == agent
    refused_update = await http.post(path, json={"mcp_servers": []})
    assert (refused_update.status_code, refused_update.json()["error"]["field"]) == (400, "tools.0.mcp_server_name")
    cleared = (await http.post(path, json={"mcp_servers": None, "tools": None})).json()
    assert (cleared["mcp_servers"], cleared["tools"], cleared["version"]) == ([], [], 2)


async def test_update_merges(http: httpx2.AsyncClient) -> None:
    agent = await create_agent(
        http, system="Old.", description="Old.", role="a baker", tools=[TOOLSET], metadata={"keep": "1", "drop": "2"}
    )
    path = f"/v1/agents/{agent['id']}"
    body = {"version": 1, "system": None, "tools": [CUSTOM], "metadata": {"drop": None, "new": "3"}, "role": None}
    changed = (await http.post(path, json=body)).json()
    assert changed["version"] == 2
    assert changed["system"] is None
    assert changed["description"] == "Old."
    assert [tool["type"] for tool in changed["tools"]] == ["custom"]
    assert changed["metadata"] == {"keep": "1", "new": "3"}
    assert "role" not in changed
    cleared = (await http.post(path, json={"tools": None, "description": ""})).json()
    assert (cleared["tools"], cleared["description"], cleared["version"]) == ([], None, 3)
    validate_strictly(BetaManagedAgentsAgent, cleared)


async def test_versions_are_listed_and_outdated_updates_conflict(sdk: AsyncAnthropic) -> None:
    agent = await sdk.beta.agents.create(name="A", model="m")
    for number in range(2, 6):
        await sdk.beta.agents.update(agent.id, name=f"A{number}")
    versions = [version.version async for version in sdk.beta.agents.versions.list(agent.id, limit=2)]
    assert versions == [5, 4, 3, 2, 1]
    assert (await sdk.beta.agents.retrieve(agent.id, version=3)).name == "A3"
    with pytest.raises(anthropic.ConflictError) as caught:
        await sdk.beta.agents.update(agent.id, version=2, name="late")
    assert caught.value.type == "conflict_error"


async def test_list_pages_to_the_end(sdk: AsyncAnthropic) -> None:
    made = [(await sdk.beta.agents.create(name=f"A{number}", model="m")).id for number in range(5)]
    await sdk.beta.agents.archive(made[2])
    listed = [agent.id async for agent in sdk.beta.agents.list(limit=2)]
    assert listed == [made[4], made[3], made[1], made[0]]
    everything = [agent.id async for agent in sdk.beta.agents.list(limit=2, include_archived=True)]
    assert everything == made[::-1]


@pytest.mark.requirement("F1")
async def test_an_agent_has_a_provider_prefix_and_model_parameters(http: httpx2.AsyncClient) -> None:
    agent = await create_agent(
        http, model={"id": "openai:gpt-5"}, harness="native", model_parameters={"temperature": 0.2}
    )
    assert agent["model"]["id"] == "openai:gpt-5"
    assert agent["harness"] == "native"
    assert agent["model_parameters"] == {"temperature": 0.2}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"nmae": "typo"}, "nmae"),
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"model": {"id": "m", "temperature": 1}}, "model.temperature"),
        ({"model": {"id": "m", "effort": "high"}}, "model.effort"),
        ({"model": {"id": "m", "speed": "fast"}}, "model.speed"),
        ({"model": 5}, "model"),
        ({"harness": "steam"}, "harness"),
        ({"skills": [{"type": "custom", "skill_id": "s"}]}, "skills"),
        ({"mcp_servers": [{"type": "stdio", "name": "x", "url": "https://x"}]}, "mcp_servers.0.type"),
        ({"mcp_servers": [{"type": "url", "name": "", "url": "https://x"}]}, "mcp_servers.0.name"),
        ({"mcp_servers": [{"type": "url", "name": "x", "url": "ftp://x"}]}, "mcp_servers.0.url"),
        ({"mcp_servers": [{"type": "url", "name": "x", "url": "https://me:pass@x"}]}, "mcp_servers.0.url"),
        ({"mcp_servers": [{"type": "url", "name": "x", "url": "https://x\nhost: y"}]}, "mcp_servers.0.url"),
        ({"mcp_servers": [SERVER, {**SERVER, "url": "https://y"}]}, "mcp_servers"),
        ({"mcp_servers": [{**SERVER, "name": "a.b"}, {**SERVER, "name": "a b"}]}, "mcp_servers"),
        ({"multiagent": {"type": "coordinator", "agents": []}}, "multiagent.agents"),
        ({"multiagent": {"type": "multiagent_20261001"}}, "multiagent"),
        ({"execution_identity": {"type": "aws_role", "role_arn": "x"}}, "execution_identity.type"),
        ({"limits": {"max_iterations": 0}}, "limits.max_iterations"),
        ({"limits": {"retry_delay_seconds": -1}}, "limits.retry_delay_seconds"),
        ({"limits": {"retry_delay_seconds": 3601}}, "limits.retry_delay_seconds"),
        ({"limits": {"max_iterations": "5"}}, "limits.max_iterations"),
        ({"tools": [MCP_TOOLSET]}, "tools.0.mcp_server_name"),
        ({"tools": [MCP_TOOLSET, MCP_TOOLSET], "mcp_servers": [SERVER]}, "tools"),
        (
            {"tools": [{**MCP_TOOLSET, "configs": [{"name": "a", "permission_policy": {"type": "auto"}}]}]},
            "tools.0.configs.0.permission_policy",
        ),
        ({"permissions": {"deny": ["Bash(rm *)", "Bash("]}}, "permissions.deny.1"),
        ({"permissions": {"allow": ["*"]}}, "permissions.allow.0"),
        ({"permissions": {"maybe": []}}, "permissions.maybe"),
        ({"tools": [{**MCP_TOOLSET, "configs": [{"name": "a"}, {"name": "a"}]}]}, "tools.0.configs"),
        ({"tools": [{**CUSTOM, "name": "mcp__x__y"}]}, "tools.0.name"),
        ({"tools": [{"configs": []}]}, "tools.0.type"),
        ({"tools": [TOOLSET, TOOLSET]}, "tools"),
        ({"tools": [TOOLSET, {**CUSTOM, "name": "bash"}]}, "tools"),
        ({"tools": [{**CUSTOM, "name": "not a name"}]}, "tools.0.name"),
        ({"tools": [{**CUSTOM, "input_schema": {"type": "array"}}]}, "tools.0.input_schema"),
        ({"tools": [{**CUSTOM, "colour": "red"}]}, "tools.0.colour"),
        ({"tools": [{**TOOLSET, "configs": [{"name": "sudo"}]}]}, "tools.0.configs.0.name"),
        ({"tools": [{**TOOLSET, "configs": [{"name": "web_search", "enabled": True}]}]}, "tools.0.configs.0.enabled"),
        (
            {"tools": [{**TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "auto"}}]}]},
            "tools.0.configs.0.permission_policy",
        ),
        (
            {"tools": [{**TOOLSET, "default_config": {"permission_policy": {"type": "auto"}}}]},
            "tools.0.default_config.permission_policy",
        ),
        ({"metadata": {"k": "v" * 513}}, "metadata.k"),
        ({"metadata": {str(number): "" for number in range(17)}}, "metadata"),
    ],
)
async def test_an_invalid_field_is_refused_by_name(http: httpx2.AsyncClient, fields: Any, field: str) -> None:
    named, message = await post_refused(http, "/v1/agents", {"name": "A", "model": "m", **fields})
    assert named == field
    assert message.startswith(field)


async def test_required_fields_cannot_be_cleared(http: httpx2.AsyncClient) -> None:
    agent = await create_agent(http)
    assert (await post_refused(http, f"/v1/agents/{agent['id']}", {"name": None}))[0] == "name"
    assert (await post_refused(http, f"/v1/agents/{agent['id']}", {"model": None}))[0] == "model"
    many = {"metadata": {str(number): "x" for number in range(17)}}
    assert (await post_refused(http, f"/v1/agents/{agent['id']}", many))[0] == "metadata"


async def test_toolset_defaults_reach_the_configs(http: httpx2.AsyncClient) -> None:
    quiet = {**TOOLSET, "default_config": {"enabled": False}, "configs": [{"name": "read", "enabled": True}]}
    tools = (await create_agent(http, tools=[quiet]))["tools"][0]
    assert tools["default_config"]["enabled"] is False
    assert {config["name"]: config["enabled"] for config in tools["configs"]} == {
        "read": True,
        "web_fetch": False,
        "web_search": False,
    }


async def test_nul_characters_and_lone_surrogates_are_replaced(http: httpx2.AsyncClient, api: Api) -> None:
    raw = rb'{"name":"A\u0000B","model":"m","system":"\ud800!","metadata":{"emoji":"\ud83d\ude00"}}'
    response = await http.post("/v1/agents", content=raw)
    assert response.status_code == 200, response.text
    stored = api.world.agents[response.json()["id"]][0]
    assert stored.name == "A\ufffdB"
    assert "\ud800" not in str(stored.definition["system"])
    assert stored.metadata == {"emoji": "😀"}
