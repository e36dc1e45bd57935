"""Sessions: creation with each form of agent reference, updates, lists in both directions, and deletion."""

from dataclasses import replace
from typing import Any, get_args

import anthropic
import httpx2
import pytest
from anthropic import AsyncAnthropic
from anthropic.types.beta import BetaManagedAgentsDeletedSession, BetaManagedAgentsSession

from footplate.api.wire.response_models import Session
from footplate.client import response_models
from footplate.domain.agents.agents_and_config import resolve_config
from footplate.domain.sessions.turns import ActivityState, SessionStatus, TurnStatus

from .conftest import Api
from .sdk_validation import validate_strictly


@pytest.fixture
async def ids(sdk: AsyncAnthropic) -> tuple[str, str]:
    agent = await sdk.beta.agents.create(
        name="Coder", model="m-1", system="S", tools=[{"type": "agent_toolset_20260401"}]
    )
    environment = await sdk.beta.environments.create(name="env")
    return agent.id, environment.id


async def test_a_session_is_created_and_retrieved(http: httpx2.AsyncClient, ids: tuple[str, str], api: Api) -> None:
    response = await http.post(
        "/v1/sessions",
        json={
            "agent": ids[0],
            "environment_id": ids[1],
            "title": "T",
            "metadata": {"k": "v"},
            "context": {"customer": {"id": 7}},
            "vault_ids": [],
            "resources": [],
            "initial_events": [{"type": "user.message", "content": [{"type": "text", "text": "hi"}]}],
        },
    )
    assert response.status_code == 200, response.text
    body = response.json()
    session = validate_strictly(BetaManagedAgentsSession, body)
    Session.model_validate(body)
    assert session.agent.name == "Coder"
    assert session.usage.list_cost is not None
    assert session.usage.list_cost.amount == "2"
    assert body["context"] == {"customer": {"id": 7}}
    assert [accepted.session_id for accepted in api.world.accepted] == [session.id]
    assert api.world.accepted[0].wake
    assert [item.type for item in api.world.inputs] == ["user.message"]
    retrieved = (await http.get(f"/v1/sessions/{session.id}")).json()
    validate_strictly(BetaManagedAgentsSession, retrieved)
    assert retrieved["agent"] == body["agent"]


@pytest.mark.requirement("K1")
async def test_a_session_has_an_agent_by_version_or_with_overrides(
    sdk: AsyncAnthropic, ids: tuple[str, str], api: Api
) -> None:
    await sdk.beta.agents.update(ids[0], system="S2")
    old = await sdk.beta.sessions.create(agent={"type": "agent", "id": ids[0], "version": 1}, environment_id=ids[1])
    assert (old.agent.version, old.agent.system) == (1, "S")
    new = await sdk.beta.sessions.create(agent=ids[0], environment_id=ids[1])
    assert (new.agent.version, new.agent.system) == (2, "S2")
    other = await sdk.beta.sessions.create(
        agent={"type": "agent_with_overrides", "id": ids[0], "model": "m-2", "system": None, "tools": []},
        environment_id=ids[1],
    )
    assert (other.agent.model.id, other.agent.system, other.agent.tools) == ("m-2", None, [])
    config = resolve_config(api.world.sessions[other.id].agent, {}, default_harness="native")
    assert (config.model, config.tools, config.agent_version) == ("m-2", (), 2)


async def test_an_archived_agent_starts_nothing(sdk: AsyncAnthropic, ids: tuple[str, str]) -> None:
    await sdk.beta.agents.archive(ids[0])
    with pytest.raises(anthropic.BadRequestError):
        await sdk.beta.sessions.create(agent=ids[0], environment_id=ids[1])


async def test_an_update_merges_metadata_and_is_an_event(sdk: AsyncAnthropic, ids: tuple[str, str], api: Api) -> None:
    session = await sdk.beta.sessions.create(agent=ids[0], environment_id=ids[1], metadata={"a": "1"}, title="T")
    changed = await sdk.beta.sessions.update(session.id, metadata={"b": "2", "a": None})
    assert (changed.title, changed.metadata) == ("T", {"b": "2"})
    assert (await sdk.beta.sessions.update(session.id, title=None)).title is None
    assert api.world.accepted[-1].positions[0].event.type == "session.updated"


async def test_only_an_idle_session_is_archived_or_deleted(
    sdk: AsyncAnthropic, http: httpx2.AsyncClient, ids: tuple[str, str], api: Api
) -> None:
    session = await sdk.beta.sessions.create(agent=ids[0], environment_id=ids[1])
    api.world.sessions[session.id] = replace(api.world.sessions[session.id], status=SessionStatus.RUNNING)
    with pytest.raises(anthropic.ConflictError) as caught:
        await sdk.beta.sessions.delete(session.id)
    assert caught.value.response.headers["x-should-retry"] == "false"
    api.world.sessions[session.id] = replace(api.world.sessions[session.id], status=SessionStatus.IDLE)
    assert (await sdk.beta.sessions.archive(session.id)).archived_at is not None
    deleted = (await http.delete(f"/v1/sessions/{session.id}")).json()
    validate_strictly(BetaManagedAgentsDeletedSession, deleted)
    with pytest.raises(anthropic.NotFoundError):
        await sdk.beta.sessions.retrieve(session.id)


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_pages_are_read_forward_and_back(
    sdk: AsyncAnthropic, http: httpx2.AsyncClient, ids: tuple[str, str], order: Any
) -> None:
    made = [(await sdk.beta.sessions.create(agent=ids[0], environment_id=ids[1])).id for _ in range(7)]
    expected = made if order == "asc" else made[::-1]
    assert [row.id async for row in sdk.beta.sessions.list(order=order, limit=3)] == expected

    async def page(cursor: str | None) -> dict[str, Any]:
        parameters = {"limit": "3", "order": order} | ({"page": cursor} if cursor else {})
        body: dict[str, Any] = (await http.get("/v1/sessions", params=parameters)).json()
        return body

    pages = [await page(None)]
    while pages[-1]["next_page"]:
        pages.append(await page(pages[-1]["next_page"]))
    assert [len(one["data"]) for one in pages] == [3, 3, 1]
    assert pages[0]["prev_page"] is None
    back = [pages[-1]]
    while back[-1]["prev_page"]:
        back.append(await page(back[-1]["prev_page"]))
    ids_back = [[row["id"] for row in one["data"]] for one in back]
    assert ids_back == [[row["id"] for row in one["data"]] for one in reversed(pages)]
    assert back[-1]["next_page"] is not None


async def test_sessions_are_filtered(
    sdk: AsyncAnthropic, http: httpx2.AsyncClient, ids: tuple[str, str], api: Api
) -> None:
    other = await sdk.beta.agents.create(name="Other", model="m")
    first = await sdk.beta.sessions.create(agent=ids[0], environment_id=ids[1])
    second = await sdk.beta.sessions.create(agent=other.id, environment_id=ids[1])
    api.world.sessions[second.id] = replace(api.world.sessions[second.id], status=SessionStatus.RUNNING)
    assert [row.id async for row in sdk.beta.sessions.list(agent_id=ids[0])] == [first.id]
    assert [row.id async for row in sdk.beta.sessions.list(statuses=["running", "rescheduling"])] == [second.id]
    assert [row.id async for row in sdk.beta.sessions.list(created_at_gt=first.created_at)] == [second.id]
    assert [row.id async for row in sdk.beta.sessions.list(created_at_lte=first.created_at)] == [first.id]
    assert [row.id async for row in sdk.beta.sessions.list(agent_version=9)] == [second.id, first.id]
    assert [row.id async for row in sdk.beta.sessions.list(deployment_id="depl_1")] == []
    assert (await http.get("/v1/sessions", params={"memory_store_id": "memstore_1"})).status_code == 400


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"budget": {"type": "limit", "max_list_cost": {"amount": "1", "currency": "USD"}}}, "budget"),
        ({"vault_ids": ["vlt_1"]}, "vault_ids"),
        ({"resources": [{"type": "github_repository", "url": "https://x/y"}]}, "resources.0.type"),
        ({"mode": "hidden"}, "mode"),
        ({"agent": {"id": "agent_1"}}, "agent.type"),
        ({"agent": {"type": "robot", "id": "x"}}, "agent.type"),
        ({"agent": {"type": "agent_with_overrides", "id": "A", "harness": "steam"}}, "agent.harness"),
        ({"agent": {"type": "agent_with_overrides", "id": "A", "skills": [1]}}, "agent.skills"),
        ({"initial_events": [{"type": "user.define_outcome", "content": []}]}, "initial_events.0.type"),
        ({"initial_events": [{"type": "user.message", "content": []}]}, "initial_events.0.content"),
        ({"context": [1]}, "context"),
    ],
)
async def test_an_invalid_field_is_refused_by_name(
    http: httpx2.AsyncClient, ids: tuple[str, str], fields: dict[str, Any], field: str
) -> None:
    agent = fields.get("agent", ids[0])
    if isinstance(agent, dict) and agent["id"] == "A":
        agent = {**agent, "id": ids[0]}
    response = await http.post("/v1/sessions", json={"environment_id": ids[1], **fields, "agent": agent})
    assert response.status_code == 400, response.text
    assert response.json()["error"]["field"] == field


async def test_an_update_refuses_unsupported_fields(
    http: httpx2.AsyncClient, sdk: AsyncAnthropic, ids: tuple[str, str]
) -> None:
    session = await sdk.beta.sessions.create(agent=ids[0], environment_id=ids[1])
    for fields, field in (
        ({"agent": {"mcp_servers": [{"type": "url", "name": "m"}]}}, "agent.mcp_servers.0.url"),
        ({"agent": {"system": "S"}}, "agent.system"),
        ({"agent": None}, "agent"),
        ({"vault_ids": ["v"]}, "vault_ids"),
        ({"budget": {"type": "limit"}}, "budget"),
    ):
        response = await http.post(f"/v1/sessions/{session.id}", json=fields)
        assert (response.status_code, response.json()["error"]["field"]) == (400, field)


async def test_the_tools_of_a_session_can_be_replaced(sdk: AsyncAnthropic, ids: tuple[str, str]) -> None:
    session = await sdk.beta.sessions.create(agent=ids[0], environment_id=ids[1])
    unchanged = await sdk.beta.sessions.update(session.id, agent={"mcp_servers": []})
    assert unchanged.agent.tools == session.agent.tools
    cleared = await sdk.beta.sessions.update(session.id, agent={"tools": []})
    assert (cleared.agent.tools, cleared.agent.system) == ([], session.agent.system)
    assert (await sdk.beta.agents.retrieve(ids[0])).tools == session.agent.tools


async def test_workers_are_notified_of_a_new_session_whose_harness_can_be_prewarmed(
    api: Api, http: httpx2.AsyncClient, ids: tuple[str, str]
) -> None:
    body = {"name": "c", "model": "claude-opus-5", "harness": "claude"}
    claude = (await http.post("/v1/agents", json=body)).json()["id"]
    for agent in (ids[0], claude):
        session = (await http.post("/v1/sessions", json={"agent": agent, "environment_id": ids[1]})).json()
        await http.post(f"/v1/sessions/{session['id']}/fork", json={})
    assert [accepted.prepare for accepted in api.world.accepted] == [False, False, True, True]


async def test_the_workflow_of_a_session_created_with_its_task_does_not_linger_unless_its_harness_can_be_prewarmed(
    api: Api, http: httpx2.AsyncClient, ids: tuple[str, str]
) -> None:
    body = {"name": "c", "model": "claude-opus-5", "harness": "claude"}
    claude = (await http.post("/v1/agents", json=body)).json()["id"]
    task = [{"type": "user.message", "content": [{"type": "text", "text": "Hello"}]}]
    for agent in (ids[0], claude):
        created = {"agent": agent, "environment_id": ids[1], "initial_events": task}
        session = (await http.post("/v1/sessions", json=created)).json()
        await http.post(f"/v1/sessions/{session['id']}/events", json={"events": task})
    assert [accepted.ends_when_idle for accepted in api.world.accepted] == [True, False, False, False]


def test_the_client_knows_every_state() -> None:
    for of_client, of_server in (
        (response_models.ActivityState, ActivityState),
        (response_models.TurnStatus, TurnStatus),
    ):
        assert {*get_args(of_client)} == {*of_server}
