"""Routes of deployments and their runs, with the official SDK: fields, refusals and lists."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import anthropic
import httpx2
import pytest
from anthropic import AsyncAnthropic

from footplate.api.wire.session.deployments import (
    DeploymentResponse,
    DeploymentRunResponse,
    SchedulePreviewResponse,
)

from .conftest import Api, make_client

PATH = "/v1/deployments"
MESSAGE: Any = {"type": "user.message", "content": [{"type": "text", "text": "Check the build"}]}
CRON: Any = {"type": "cron", "expression": "0 9  * * 1-5", "timezone": "Europe/Berlin"}


@pytest.fixture
async def fields(sdk: AsyncAnthropic) -> dict[str, Any]:
    agent = await sdk.beta.agents.create(name="A", model="m")
    environment = await sdk.beta.environments.create(name="E")
    return {"name": "nightly", "agent": agent.id, "environment_id": environment.id, "initial_events": [MESSAGE]}


async def test_a_deployment_is_created_changed_paused_run_and_archived(
    sdk: AsyncAnthropic, api: Api, fields: dict[str, Any]
) -> None:
    created = await sdk.beta.deployments.create(**fields, schedule=CRON, metadata={"a": "b"}, description="D")
    assert (created.name, created.status, created.paused_reason) == ("nightly", "active", None)
    assert created.agent.id == fields["agent"]
    assert created.agent.version == 1
    assert created.schedule is not None
    assert created.schedule.expression == "0 9 * * 1-5"
    upcoming = created.schedule.upcoming_runs_at or []
    assert len(upcoming) == 5
    assert all(at > datetime.now(UTC) and at.astimezone(ZoneInfo("Europe/Berlin")).hour == 9 for at in upcoming)
    assert api.world.accepted[-1].changed_deployment == created.id
    assert created.to_dict()["runs_as"] == "key_a"
    changed = await sdk.beta.deployments.update(
        created.id, name="weekly", metadata={"a": None, "c": "d"}, schedule=None, description=""
    )
    assert (changed.name, changed.metadata, changed.schedule, changed.description) == ("weekly", {"c": "d"}, None, None)
    assert changed.initial_events == created.initial_events
    paused = await sdk.beta.deployments.pause(created.id)
    assert paused.status == "paused"
    assert paused.paused_reason is not None
    assert paused.paused_reason.type == "manual"
    assert [one.id async for one in sdk.beta.deployments.list(status="paused")] == [created.id]
    assert (await sdk.beta.deployments.unpause(created.id)).status == "active"
    run = await sdk.beta.deployments.run(created.id)
    assert (run.trigger_context.type, run.error) == ("manual", None)
    assert run.session_id == api.world.accepted[-1].session_id
    assert await sdk.beta.deployment_runs.retrieve(run.id) == run
    assert [one.id async for one in sdk.beta.deployment_runs.list(deployment_id=created.id)] == [run.id]
    assert [one async for one in sdk.beta.deployment_runs.list(has_error=True)] == []
    archived = await sdk.beta.deployments.archive(created.id)
    assert archived.archived_at is not None
    assert archived.status == "active"
    assert archived.schedule is None
    assert [one async for one in sdk.beta.deployments.list()] == []
    assert [one.id async for one in sdk.beta.deployments.list(include_archived=True)] == [created.id]


async def test_steps_alone_are_enough(http: httpx2.AsyncClient, api: Api, fields: dict[str, Any]) -> None:
    steps = [{"kind": "shell", "command": "make", "name": "build"}, {"kind": "prompt", "content": "Explain it"}]
    response = await http.post(PATH, json={**fields, "initial_events": [], "steps": steps, "overlap_policy": "skip"})
    assert response.status_code == 200, response.text
    DeploymentResponse.model_validate(response.json())
    template = api.world.deployments.deployments[response.json()["id"]].definition.template
    assert [step.kind.value for step, _ in template.steps] == ["shell", "prompt"]
    assert type(template).load(template.dump()).steps == template.steps
    run = await http.post(f"{PATH}/{response.json()['id']}/run")
    DeploymentRunResponse.model_validate(run.json())
    found = await http.get(PATH)
    assert found.json()["data"][0]["steps"][0]["command"] == "make"


async def test_the_steps_of_a_response_can_be_sent_back(
    http: httpx2.AsyncClient, api: Api, fields: dict[str, Any]
) -> None:
    steps = [
        {"kind": "prompt", "content": "Explain it", "overrides": {"model": "other", "limits": {"max_iterations": 3}}},
        {"kind": "shell", "command": "make", "shell_mode": "host", "on_failure": "retry", "max_attempts": 2},
        {"kind": "external", "instructions": "Look at it"},
        {"kind": "parallel", "sessions": [{"prompt": "A"}, {"steps": [{"kind": "shell", "command": "true"}]}]},
        {"kind": "merge", "into": "main", "message": "Done"},
    ]
    created = (await http.post(PATH, json={**fields, "steps": steps})).json()
    template = api.world.deployments.deployments[created["id"]].definition.template
    response = await http.post(f"{PATH}/{created['id']}", json={"steps": created["steps"]})
    assert response.status_code == 200, response.text
    assert api.world.deployments.deployments[created["id"]].definition.template.steps == template.steps
    assert response.json()["steps"] == created["steps"]


async def test_the_next_times_of_an_expression_are_known_before_it_is_used(
    http: httpx2.AsyncClient, fields: dict[str, Any]
) -> None:
    query = {"expression": CRON["expression"], "timezone": CRON["timezone"]}
    response = await http.get(f"{PATH}/upcoming_runs", params=query)
    preview = SchedulePreviewResponse.model_validate(response.json())
    assert preview.expression == "0 9 * * 1-5"
    created = DeploymentResponse.model_validate((await http.post(PATH, json={**fields, "schedule": CRON})).json())
    assert created.schedule is not None
    assert preview.upcoming_runs_at == created.schedule.upcoming_runs_at
    for name, value in (("expression", "@daily"), ("timezone", "Mars")):
        refused = await http.get(f"{PATH}/upcoming_runs", params={**query, name: value})
        assert (refused.status_code, refused.json()["error"]["field"]) == (400, f"schedule.{name}")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"initial_events": []}, "initial_events"),
        ({"initial_events": [MESSAGE] * 51}, "initial_events"),
        ({"initial_events": [{"type": "system.message", "content": []}]}, "initial_events.0.type"),
        ({"schedule": {**CRON, "expression": "@daily"}}, "schedule.expression"),
        ({"schedule": {**CRON, "timezone": "Mars"}}, "schedule.timezone"),
        ({"schedule": {"type": "cron", "expression": "* * * * *"}}, "schedule.timezone"),
        ({"overlap_policy": "terminate"}, "overlap_policy"),
        ({"catch_up_seconds": 1}, "catch_up_seconds"),
        ({"vault_ids": ["vlt_1"]}, "vault_ids"),
        ({"budget": {"type": "limit"}}, "budget"),
        ({"name": ""}, "name"),
        ({"context": {"directory": "/etc"}}, "context.directory"),
        ({"project_ids": ["proj_1"], "workspace_id": "wksp_1"}, "workspace_id"),
    ],
)
async def test_invalid_fields_are_refused_by_name(
    http: httpx2.AsyncClient, fields: dict[str, Any], change: dict[str, Any], field: str
) -> None:
    response = await http.post(PATH, json={**fields, **change})
    assert response.status_code == 400, response.text
    assert response.json()["error"]["field"] == field


async def test_other_organisations_and_unknown_ids_are_not_found(
    sdk: AsyncAnthropic, api: Api, fields: dict[str, Any]
) -> None:
    created = await sdk.beta.deployments.create(**fields)
    run = await sdk.beta.deployments.run(created.id)
    async with make_client(api.app, "secret-b") as other:
        for method, path in (
            ("GET", f"{PATH}/{created.id}"),
            ("POST", f"{PATH}/{created.id}/run"),
            ("POST", f"{PATH}/{created.id}/pause"),
            ("GET", f"/v1/deployment_runs/{run.id}"),
        ):
            assert (await other.request(method, path)).status_code == 404
        assert (await other.get("/v1/deployment_runs")).json()["data"] == []
    with pytest.raises(anthropic.BadRequestError):
        await sdk.beta.deployments.list(status="active", include_archived=True)
    with pytest.raises(anthropic.NotFoundError):
        await sdk.beta.deployments.create(**fields | {"agent": "agent_none"})


async def test_deployments_and_runs_are_listed_in_pages(sdk: AsyncAnthropic, fields: dict[str, Any]) -> None:
    made = [(await sdk.beta.deployments.create(**fields)).id for _ in range(3)]
    assert [one.id async for one in sdk.beta.deployments.list(limit=2)] == made[::-1]
    runs = [(await sdk.beta.deployments.run(made[0])).id for _ in range(3)]
    assert [one.id async for one in sdk.beta.deployment_runs.list(limit=2)] == runs[::-1]
    assert [one.id async for one in sdk.beta.deployments.list(agent_id="agent_none")] == []
