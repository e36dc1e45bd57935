"""Routes of a session's queue: bodies that are accepted and refused, pages, and playback."""

from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic

from footplate.api.requests import route_permissions
from footplate.api.wire.response_models import Listing, Playback, Step, TotalUsage
from footplate.domain.errors import Forbidden
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import Permission
from footplate.domain.sessions.steps import StepDefinition, StepDelivery, StepKind


@pytest.fixture
async def path(sdk: AsyncAnthropic) -> str:
    agent = await sdk.beta.agents.create(name="A", model="m")
    environment = await sdk.beta.environments.create(name="E")
    session = await sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id)
    return f"/v1/sessions/{session.id}"


async def _add(http: httpx2.AsyncClient, path: str, *steps: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    response = await http.post(f"{path}/steps", json={"steps": [*steps], **more})
    assert response.status_code == 200, response.text
    Listing[Step].model_validate(response.json())
    return list(response.json()["data"])


@pytest.mark.requirement("F2", "O2")
async def test_steps_are_added_listed_in_pages_and_changed(http: httpx2.AsyncClient, path: str) -> None:
    added = await _add(
        http,
        path,
        {"kind": "shell", "command": "make", "name": "build"},
        {"kind": "prompt", "content": "Read ${steps.build.stdout}", "condition": "steps.build.exit_code == 0"},
        {"kind": "external", "instructions": "Review it", "on_failure": "continue"},
    )
    assert [step["kind"] for step in added] == ["shell", "prompt", "external"]
    (first,) = await _add(http, path, {"kind": "shell", "command": "ls"}, before=added[0]["id"])
    page = (await http.get(f"{path}/steps", params={"limit": 3})).json()
    rest = (await http.get(f"{path}/steps", params={"limit": 3, "page": page["next_page"]})).json()
    order = [step["id"] for step in page["data"] + rest["data"]]
    assert (order, rest["next_page"]) == ([first["id"], *(step["id"] for step in added)], None)
    one = f"{path}/steps/{added[0]['id']}"
    edited = (await http.post(one, json={"command": "make all", "name": None, "timeout_seconds": 5})).json()
    assert (edited["command"], edited["name"], edited["timeout_seconds"]) == ("make all", None, 5)
    assert (await http.post(f"{one}/move", json={"before": None})).json()["sort_key"] == 4
    assert (await http.delete(one)).json()["state"] == "cancelled"
    assert (await http.post(one, json={"command": "ls"})).status_code == 409
    pending = (await http.get(f"{path}/steps", params={"states[]": "pending"})).json()["data"]
    assert added[0]["id"] not in [step["id"] for step in pending]
    assert (await http.get(f"{path}/steps/step_none")).status_code == 404


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"kind": "group"}, "kind"),
        ({"kind": "shell"}, "command"),
        ({"kind": "shell", "command": "ls", "content": "x"}, "content"),
        ({"kind": "shell", "command": 'echo "${steps.a.stdout}"'}, "not a whole argument outside of quotes"),
        ({"kind": "shell", "command": "ls", "condition": "steps.a. =="}, "not a valid CEL expression"),
        ({"kind": "shell", "command": "ls", "name": "Not a name"}, "name"),
        ({"kind": "shell", "command": "ls", "max_attempts": 21}, "max_attempts"),
        ({"kind": "prompt", "content": "${steps.a.output}"}, "has no field 'output'"),
        ({"kind": "prompt", "content": [{"type": "text", "text": "${steps.a}"}]}, "must have the form"),
        ({"kind": "prompt", "content": "${steps.a.sessions.b.stdout}"}, "has no field 'stdout'"),
        ({"kind": "merge", "into": "--force"}, "not a valid branch name"),
        ({"kind": "merge", "into": "main", "timeout_seconds": 5}, "timeout_seconds"),
        ({"kind": "merge", "branch": "main"}, "branch"),
        ({"kind": "push", "branch": "new", "message": "${steps.a}"}, "must have the form"),
        ({"kind": "parallel", "sessions": [{"steps": [{"kind": "merge", "into": "main"}]}]}, "kind"),
        ({"kind": "parallel", "sessions": [{"steps": [{"kind": "push"}]}]}, "kind"),
    ],
)
async def test_an_invalid_step_is_refused_by_name(
    http: httpx2.AsyncClient, path: str, step: dict[str, Any], message: str
) -> None:
    response = await http.post(f"{path}/steps", json={"steps": [step]})
    assert response.status_code == 400
    assert message in response.json()["error"]["message"]


async def test_an_edit_takes_only_the_fields_of_its_kind(http: httpx2.AsyncClient, path: str) -> None:
    (step,) = await _add(http, path, {"kind": "shell", "command": "ls"})
    response = await http.post(f"{path}/steps/{step['id']}", json={"instructions": "x"})
    assert (response.status_code, response.json()["error"]["field"]) == (400, "instructions")


async def test_steps_that_deliver_are_added_and_edited(http: httpx2.AsyncClient, path: str) -> None:
    merge, push = await _add(
        http, path, {"kind": "merge", "into": "main", "message": "Say ${steps.a.text}"}, {"kind": "push"}
    )
    assert (merge["into"], merge["message"], push["branch"]) == ("main", "Say ${steps.a.text}", None)
    one = f"{path}/steps/{merge['id']}"
    edited = (await http.post(one, json={"into": None, "project_id": "proj_1", "name": "deliver"})).json()
    assert [edited[field] for field in ("into", "message", "project_id", "name")] == [
        None, "Say ${steps.a.text}", "proj_1", "deliver",
    ]  # fmt: skip
    for refused in ({"branch": "x"}, {"command": "ls"}, {"into": "-x"}, {"timeout_seconds": 4}):
        assert (await http.post(one, json=refused)).status_code == 400, refused


@pytest.mark.parametrize("kind", [StepKind.MERGE, StepKind.PUSH])
def test_a_step_that_delivers_needs_the_permission_of_the_route(
    kind: StepKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = StepDefinition(kind=kind, delivery=StepDelivery())
    operator = Principal("acme", "memb_1", "Ann", frozenset({"operator"}))
    route_permissions.check_delivery_steps(operator, [definition])
    exceptions = {("POST", f"/v1/sessions/{{session_id}}/{kind.value}"): (Permission.CHANGE_POLICY,)}
    monkeypatch.setattr(route_permissions, "_EXCEPTIONS", exceptions)
    route_permissions.check_delivery_steps(operator, [StepDefinition(kind=StepKind.SHELL, command="ls")])
    with pytest.raises(Forbidden):
        route_permissions.check_delivery_steps(operator, [definition])


async def test_a_cancelled_step_is_repeated(http: httpx2.AsyncClient, path: str) -> None:
    (step,) = await _add(http, path, {"kind": "shell", "command": "ls", "name": "list"})
    one = f"{path}/steps/{step['id']}"
    assert "it is pending" in (await http.post(f"{one}/retry", json={})).json()["error"]["message"]
    await http.post(f"{path}/pause")
    await http.delete(one)
    repeated = (await http.post(f"{one}/retry", json={"play": True})).json()
    assert Step.model_validate(repeated).state == "pending"
    assert (repeated["retry_of"], repeated["command"], repeated["name"]) == (step["id"], "ls", "list")
    assert (await http.get(f"{path}/playback")).json()["playing"]
    assert (await http.post(f"{one}/retry", json={"now": True})).status_code == 400


@pytest.mark.requirement("R3")
async def test_a_result_is_submitted_and_a_different_one_refused(http: httpx2.AsyncClient, path: str) -> None:
    (step,) = await _add(http, path, {"kind": "external"})
    one = f"{path}/steps/{step['id']}/result"
    sent = {"status": "completed", "stdout": "fine", "exit_code": 0}
    assert [(await http.post(one, json=sent)).status_code for _ in range(2)] == [200, 200]
    assert (await http.post(one, json={"status": "failed"})).status_code == 409
    assert (await http.post(one, json={"status": "done"})).status_code == 400


async def test_the_usage_includes_the_sessions_below(http: httpx2.AsyncClient, path: str) -> None:
    total = TotalUsage.model_validate((await http.get(f"{path}/usage")).json())
    assert (total.sessions, total.usage.requests, total.usage.cost_microusd) == (1, 1, 12345)
    assert (await http.get("/v1/sessions/sesn_none/usage")).status_code == 404


async def test_playback_is_changed_and_read(http: httpx2.AsyncClient, path: str) -> None:
    for action, playing in (("pause", False), ("next", False), ("play", True)):
        response = await http.post(f"{path}/{action}")
        assert Playback.model_validate(response.json()).playing is playing
    assert (await http.get(f"{path}/playback")).json()["pause_reason"] is None


async def test_a_child_session_may_only_name_files_that_the_caller_can_read(
    http: httpx2.AsyncClient, path: str
) -> None:
    block = {"type": "document", "source": {"type": "file", "file_id": "file_none"}}
    child = {"steps": [{"kind": "shell", "command": "true"}, {"kind": "prompt", "content": [block]}]}
    response = await http.post(f"{path}/steps", json={"steps": [{"kind": "parallel", "sessions": [child]}]})
    assert (response.status_code, "file_none" in response.json()["error"]["message"]) == (404, True)


async def test_an_edited_prompt_may_only_name_files_that_exist(http: httpx2.AsyncClient, path: str) -> None:
    (step,) = await _add(http, path, {"kind": "prompt", "content": "Look"})
    block = {"type": "document", "source": {"type": "file", "file_id": "file_none"}}
    response = await http.post(f"{path}/steps/{step['id']}", json={"content": [block]})
    assert (response.status_code, "file_none" in response.json()["error"]["message"]) == (404, True)
    assert (await http.get(f"{path}/steps/{step['id']}")).json()["content"] == step["content"]
