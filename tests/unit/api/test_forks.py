"""`POST /v1/sessions/{id}/fork`: the position, changes to the parent's configuration, and refused requests."""

from typing import Any

import httpx2
import pytest

from footplate.domain.sessions import events

from .conftest import Api, make_client


async def _session(http: httpx2.AsyncClient, **agent: Any) -> dict[str, Any]:
    made = (await http.post("/v1/agents", json={"name": "a", "model": "claude-opus-5", **agent})).json()
    environment = (await http.post("/v1/environments", json={"name": made["id"]})).json()
    message = {"type": "user.message", "content": [{"type": "text", "text": "hi"}]}
    body = {
        "agent": made["id"],
        "environment_id": environment["id"],
        "title": "T",
        "metadata": {"a": "1", "b": "2"},
        "initial_events": [message, message],
    }
    session: dict[str, Any] = (await http.post("/v1/sessions", json=body)).json()
    return session


@pytest.mark.requirement("S4")
@pytest.mark.requirement("S9")
async def test_a_fork_copies_its_parent_except_for_requested_changes(api: Api) -> None:
    async with make_client(api.app) as http:
        parent = await _session(http)
        first = (await http.get(f"/v1/sessions/{parent['id']}/events")).json()["data"][0]["id"]
        url = f"/v1/sessions/{parent['id']}/fork"
        fork = (await http.post(url, json={"at_event_id": first})).json()
        assert fork["id"] != parent["id"]
        assert fork["forked_from"] == {"session_id": parent["id"], "event_id": first, "position": 1}
        for name in ("agent", "title", "metadata", "environment_id"):
            assert fork[name] == parent[name]
        assert parent["forked_from"] is None
        wanted = {
            "at_position": 2,
            "model": "openai:gpt-5.1",
            "title": None,
            "metadata": {"a": None, "c": "3"},
            "initial_events": [{"type": "user.message", "content": [{"type": "text", "text": "go on"}]}],
        }
        other = (await http.post(url, json=wanted)).json()
        assert other["agent"]["model"]["id"] == "openai:gpt-5.1"
        assert (other["title"], other["metadata"]) == (None, {"b": "2", "c": "3"})
        log = (await http.get(f"/v1/sessions/{other['id']}/events")).json()["data"]
        assert [event["type"] for event in log][2:] == [events.STATUS_IDLE, events.USER_MESSAGE]
        assert log[2]["forked_from"]["position"] == 2
        newest = (await http.post(url, json={})).json()
        assert newest["forked_from"]["position"] == 2


async def test_a_retry_makes_one_fork(api: Api) -> None:
    async with make_client(api.app) as http:
        parent = await _session(http)
        made = [
            (await http.post(f"/v1/sessions/{parent['id']}/fork", json={}, headers={"idempotency-key": "k"})).json()
            for _ in range(3)
        ]
        assert len({fork["id"] for fork in made}) == 1
        assert len(api.world.sessions) == 2


async def test_a_fork_may_use_another_agent(api: Api) -> None:
    async with make_client(api.app) as http:
        parent = await _session(http)
        other = (
            await http.post("/v1/agents", json={"name": "b", "model": "claude-opus-5", "harness": "native"})
        ).json()
        fork = (await http.post(f"/v1/sessions/{parent['id']}/fork", json={"agent": other["id"]})).json()
        assert (fork["agent"]["id"], fork["agent"]["name"]) == (other["id"], "b")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"at_event_id": "sevt_1", "at_position": 1}, "at_position"),
        ({"at_position": 0}, "at_position"),
        ({"at_position": "1"}, "at_position"),
        ({"at": "sevt_1"}, "at"),
        ({"initial_events": [{"type": "user.interrupt"}]}, "initial_events.0.type"),
    ],
)
async def test_an_invalid_fork_is_refused_by_field(api: Api, body: dict[str, Any], field: str) -> None:
    async with make_client(api.app) as http:
        parent = await _session(http)
        response = await http.post(f"/v1/sessions/{parent['id']}/fork", json=body)
        assert (response.status_code, response.json()["error"]["field"]) == (400, field)


async def test_a_conversation_stays_with_its_harness(api: Api) -> None:
    async with make_client(api.app) as http:
        parent = await _session(http)
        api.world.sessions[parent["id"]].agent["harness"] = "echo"
        other = (
            await http.post("/v1/agents", json={"name": "b", "model": "claude-opus-5", "harness": "native"})
        ).json()
        response = await http.post(f"/v1/sessions/{parent['id']}/fork", json={"agent": other["id"]})
        assert (response.status_code, response.json()["error"]["field"]) == (400, "agent")
        assert "'echo'" in response.json()["error"]["message"]


async def test_a_session_of_another_organisation_cannot_be_forked(api: Api) -> None:
    async with make_client(api.app) as http, make_client(api.app, "secret-b") as stranger:
        parent = await _session(http)
        assert (await stranger.post(f"/v1/sessions/{parent['id']}/fork", json={})).status_code == 404
