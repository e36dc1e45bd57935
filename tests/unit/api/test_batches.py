"""Routes of batches: bodies that are accepted and refused, results in pages, retries and cancellation."""

from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic

from footplate.api.wire.response_models import Listing
from footplate.api.wire.session.batches import BatchResponse, JobResponse, JobResultResponse
from footplate.domain.sessions.batches import JobState

from .conftest import Api, make_client

PATH = "/v1/session_batches"


@pytest.fixture
async def job(sdk: AsyncAnthropic) -> dict[str, Any]:
    agent = await sdk.beta.agents.create(name="A", model="m")
    environment = await sdk.beta.environments.create(name="E")
    return {"agent": agent.id, "environment_id": environment.id}


async def _create(http: httpx2.AsyncClient, *requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    response = await http.post(PATH, json={"requests": [*requests], **more})
    assert response.status_code == 200, response.text
    BatchResponse.model_validate(response.json())
    return dict(response.json())


@pytest.mark.requirement("S3")
async def test_a_batch_is_created_and_its_jobs_are_woken_with_their_priority(
    http: httpx2.AsyncClient, api: Api, job: dict[str, Any]
) -> None:
    batch = await _create(
        http,
        {**job, "custom_id": "a", "prompt": "Fix it", "title": "one", "metadata": {"k": "v"}},
        {**job, "custom_id": "b", "steps": [{"kind": "shell", "command": "make"}, {"kind": "prompt", "content": "Go"}]},
        {**job, "custom_id": "c", "prompt": [{"type": "text", "text": "Read it"}]},
        name="nightly",
        priority="low",
        max_running=2,
    )
    assert (batch["status"], batch["total"], batch["priority"], batch["name"]) == ("in_progress", 3, "low", "nightly")
    definition = api.world.batches.definitions[batch["id"]]
    first, second, third = definition.jobs
    assert [*first.content] == [{"type": "text", "text": "Fix it"}]
    assert [step.kind.value for step, _ in second.steps] == ["shell", "prompt"]
    assert third.content[0]["text"] == "Read it"
    assert first.agent is second.agent
    accepted = api.world.accepted[-1]
    assert [woken.priority for woken in accepted.to_wake] == [5, 5, 5]
    assert (await http.get(PATH)).json()["data"][0]["id"] == batch["id"]
    assert (await http.get(f"{PATH}/{batch['id']}")).json() == batch


@pytest.mark.requirement("S3")
async def test_results_are_listed_in_the_order_of_ending(
    http: httpx2.AsyncClient, api: Api, job: dict[str, Any]
) -> None:
    batch = await _create(http, *({**job, "custom_id": name, "prompt": "Go"} for name in "abc"))
    path = f"{PATH}/{batch['id']}"
    assert (await http.get(f"{path}/results")).json()["data"] == []
    api.world.batches.end_job(batch["id"], 2, JobState.COMPLETED, result={"text": "done"}, turns=1)
    command = {"exit_code": 1, "stdout": {"text": "out"}, "stderr": {"text": "bad"}}
    api.world.batches.end_job(batch["id"], 0, JobState.FAILED, result={"data": {"command": command}})
    found = (await http.get(f"{path}/results")).json()
    Listing[JobResultResponse].model_validate(found)
    (first, second) = found["data"]
    assert (first["custom_id"], first["success"], first["text"], first["error_message"]) == ("c", True, "done", None)
    assert (second["custom_id"], second["outcome"], second["success"]) == ("a", "failed", False)
    assert second["data"] == {"exit_code": 1, "stdout": "out", "stderr": "bad"}
    assert second["error_message"]
    page = (await http.get(f"{path}/results", params={"limit": 1})).json()
    rest = (await http.get(f"{path}/results", params={"limit": 1, "page": page["next_page"]})).json()
    assert [one["custom_id"] for one in page["data"] + rest["data"]] == ["c", "a"]
    assert [one["number"] for one in (await http.get(f"{path}/results", params={"after": 1})).json()["data"]] == [2]
    assert (await http.get(f"{path}/results", params={"outcomes[]": "completed"})).json()["data"] == [first]
    jobs = (await http.get(f"{path}/jobs", params={"limit": 2})).json()
    Listing[JobResponse].model_validate(jobs)
    more = (await http.get(f"{path}/jobs", params={"limit": 2, "page": jobs["next_page"]})).json()["data"]
    assert [one["state"] for one in jobs["data"] + more] == ["failed", "pending", "completed"]
    pending = (await http.get(f"{path}/jobs", params={"states[]": "pending"})).json()["data"]
    assert [one["custom_id"] for one in pending] == ["b"]


@pytest.mark.requirement("S3")
async def test_failed_jobs_are_repeated_and_the_rest_is_cancelled(
    http: httpx2.AsyncClient, api: Api, job: dict[str, Any]
) -> None:
    batch = await _create(http, *({**job, "custom_id": name, "prompt": "Go"} for name in "ab"))
    path = f"{PATH}/{batch['id']}"
    assert (await http.post(f"{path}/retry", json={})).status_code == 409
    api.world.batches.end_job(batch["id"], 1, JobState.EXPIRED)
    again = (await http.post(f"{path}/retry", json={"outcomes": ["failed"]})).json()
    assert (again["retry_of"], again["total"]) == (batch["id"], 1)
    contents = [entry.content for entries in api.world.audit.values() for entry in entries]
    assert [content["action"] for content in contents if content][-1] == "batch.retry"
    cancelled = (await http.post(f"{path}/cancel")).json()
    assert (cancelled["status"], api.world.accepted[-1].cancelled_group) == ("cancelling", batch["id"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prompt": "Go", "steps": [{"kind": "shell", "command": "ls"}]}, "either `prompt` or `steps`"),
        ({}, "either `prompt` or `steps`"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": "Go", "custom_id": "a b"}, "custom_id"),
        ({"prompt": "Go", "mode": "interactive"}, "mode"),
        ({"prompt": "Go", "agent": "agent_none"}, "agent_none"),
        ({"steps": []}, "steps"),
    ],
)
async def test_an_invalid_request_creates_nothing(
    http: httpx2.AsyncClient, api: Api, job: dict[str, Any], fields: dict[str, Any], message: str
) -> None:
    response = await http.post(PATH, json={"requests": [{**job, "custom_id": "a", **fields}]})
    assert response.status_code in {400, 404}
    assert message in response.json()["error"]["message"]
    assert api.world.batches.batches == {}


async def test_a_custom_id_appears_once_and_the_number_of_jobs_is_limited(
    http: httpx2.AsyncClient, job: dict[str, Any]
) -> None:
    one = {**job, "custom_id": "a", "prompt": "Go"}
    response = await http.post(PATH, json={"requests": [one, one]})
    assert "'a' appears 2 times" in response.json()["error"]["message"]
    response = await http.post(PATH, json={"requests": [{**one, "custom_id": str(n)} for n in range(5001)]})
    assert response.status_code == 400
    assert (await _create(http, *({**one, "custom_id": str(n)} for n in range(5000))))["total"] == 5000


async def test_another_organisation_finds_no_batch(http: httpx2.AsyncClient, api: Api, job: dict[str, Any]) -> None:
    batch = await _create(http, {**job, "custom_id": "a", "prompt": "Go"})
    async with make_client(api.app, "secret-b") as stranger:
        for path in ("", "/jobs", "/results"):
            assert (await stranger.get(f"{PATH}/{batch['id']}{path}")).status_code == 404
        for path in ("/cancel", "/retry"):
            assert (await stranger.post(f"{PATH}/{batch['id']}{path}", json={})).status_code == 404
        assert (await stranger.get(PATH)).json()["data"] == []
