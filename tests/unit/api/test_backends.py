"""A session chooses its backend, and a run the place of its shell, among those that the operator offers."""

import pytest

from footplate.domain.agents.environment_config import Backend
from footplate.domain.json import JsonObject
from footplate.domain.network.command_network_access import Network

from .conftest import Api, make_client

DOCKER = Backend(
    name="docker", network=Network(), can_limit_network=True, images=frozenset({"tests:1"}), supports_setup=True
)
MESSAGE: JsonObject = {"type": "user.message", "content": [{"type": "text", "text": "go"}]}


@pytest.mark.requirement("K6")
async def test_a_session_and_an_environment_choose_an_offered_backend(api: Api) -> None:
    api.other_backends = [DOCKER]
    async with make_client(api.build()) as http:
        listed = (await http.get("/v1/backends")).json()["data"]
        assert [(each["name"], each["is_default"], each["workers"]) for each in listed] == [
            ("sandbox", True, 2),
            ("docker", False, 0),
        ]
        agent = (await http.post("/v1/agents", json={"name": "a", "model": "m"})).json()["id"]
        config: JsonObject = {"type": "cloud", "backend": "docker", "image": "tests:1"}
        made = (await http.post("/v1/environments", json={"name": "e", "config": config})).json()
        assert (made["config"]["backend"], made["config"]["image"]) == ("docker", "tests:1")
        plain = (await http.post("/v1/environments", json={"name": "plain"})).json()
        assert "backend" not in plain["config"]

        async def create(environment: str, **fields: object) -> JsonObject:
            body = {"agent": agent, "environment_id": environment, **fields}
            found: JsonObject = (await http.post("/v1/sessions", json=body)).json()
            return found.get("error", found)  # pyrefly: ignore[bad-return]

        assert (await create(plain["id"], backend="docker"))["backend"] == "docker"
        assert (await create(plain["id"]))["backend"] is None
        assert (await create(plain["id"], backend="unsandboxed"))["field"] == "backend"
        assert (await create(plain["id"], backend="moon"))["field"] == "backend"
        # The sandbox cannot use the image of the environment.
        assert (await create(made["id"], backend="sandbox"))["field"] == "config.image"
        path = f"/v1/environments/{made['id']}"
        refused = await http.post(path, json={"config": {"type": "cloud", "backend": "sandbox"}})
        assert (refused.status_code, refused.json()["error"]["field"]) == (400, "config.image")


@pytest.mark.requirement("R5")
async def test_a_run_chooses_where_its_shell_is(api: Api) -> None:
    api.other_backends = [DOCKER]
    for offers_containers in (True, False):
        if not offers_containers:
            api.other_backends = []
        async with make_client(api.build()) as http:
            name = f"a{offers_containers}"
            agent = (await http.post("/v1/agents", json={"name": name, "model": "m"})).json()["id"]
            environment = (await http.post("/v1/environments", json={"name": name})).json()["id"]
            override = {"type": "agent_with_overrides", "id": agent, "shell_mode": "container"}
            body = {"agent": override, "environment_id": environment}
            created = await http.post("/v1/sessions", json=body)
            expected = 200 if offers_containers else 400
            assert created.status_code == expected
            plain = (await http.post("/v1/sessions", json={**body, "agent": agent})).json()["id"]
            message = {**MESSAGE, "overrides": {"shell_mode": "container"}}
            sent = await http.post(f"/v1/sessions/{plain}/events", json={"events": [message]})
            assert sent.status_code == expected
            step = {"kind": "shell", "command": "make", "shell_mode": "container"}
            added = await http.post(f"/v1/sessions/{plain}/steps", json={"steps": [step]})
            assert added.status_code == expected
            if offers_containers:
                assert created.json()["agent"]["shell_mode"] == "container"
            else:
                fields = [each.json()["error"]["field"] for each in (created, sent, added)]
                assert fields == ["agent.shell_mode", "overrides.shell_mode", "shell_mode"]


@pytest.mark.requirement("R5")
async def test_a_shell_on_the_host_is_refused_where_the_environment_needs_a_container(api: Api) -> None:
    api.other_backends = [DOCKER]
    async with make_client(api.build()) as http:
        agent = (await http.post("/v1/agents", json={"name": "a", "model": "m"})).json()["id"]
        on_host: JsonObject = {"type": "agent_with_overrides", "id": agent, "shell_mode": "host"}
        step: JsonObject = {"kind": "shell", "command": "make", "shell_mode": "host"}
        message: JsonObject = {**MESSAGE, "overrides": {"shell_mode": "host"}}
        for number, config in enumerate(({"image": "tests:1"}, {"setup": "true"}, {})):
            given = {"name": f"e{number}", "config": {"type": "cloud", "backend": "docker", **config}}
            environment = (await http.post("/v1/environments", json=given)).json()["id"]
            body: JsonObject = {"agent": agent, "environment_id": environment}
            session = (await http.post("/v1/sessions", json=body)).json()["id"]
            fork: JsonObject = {"initial_events": [message]}
            job: JsonObject = {"custom_id": "one", **body, "steps": [step]}
            requests: dict[str, JsonObject] = {
                "/v1/sessions": {**body, "agent": on_host},
                f"/v1/sessions/{session}/events": {"events": [message]},
                f"/v1/sessions/{session}/steps": {"steps": [step]},
                f"/v1/sessions/{session}/fork": fork,
                "/v1/session_batches": {"requests": [job]},
                "/v1/triggers": {"name": f"t{number}", **body, "steps": [step]},
                "/v1/deployments": {"name": "d", **body, "agent": on_host, "initial_events": [MESSAGE]},
            }
            for path, sent in requests.items():
                response = await http.post(path, json=sent)
                if not config:
                    assert response.status_code == 200, (path, response.text)
                    continue
                assert response.status_code == 400, (path, response.text)
                assert response.json()["error"]["field"].endswith("shell_mode")
                assert f"config.{next(iter(config))}" in response.json()["error"]["message"]
