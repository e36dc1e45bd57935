"""Projects, workspaces, and sessions that work on them."""

from typing import Any

import httpx2
import pytest

from footplate.api.wire import response_models

from .conftest import Api, make_client

pytestmark = pytest.mark.requirement("K5")


async def _create(http: httpx2.AsyncClient, resource: str, /, **body: Any) -> Any:
    response = await http.post(f"/v1/{resource}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def _session(http: httpx2.AsyncClient, **body: Any) -> httpx2.Response:
    agent = await _create(http, "agents", name="a", model="claude-opus-5")
    known = (await http.get("/v1/environments")).json()["data"]
    environment = known[0] if known else await _create(http, "environments", name="e")
    return await http.post("/v1/sessions", json={"agent": agent["id"], "environment_id": environment["id"], **body})


async def test_a_project_is_stored_and_listed(http: httpx2.AsyncClient) -> None:
    made = await _create(http, "projects", path="/srv/projects/org_a/team/website", metadata={"a": "1"})
    response_models.Project.model_validate(made)
    assert (made["path"], made["url"], made["name"], made["trust"]) == ("team/website", None, "website", "nothing")
    other = await _create(http, "projects", url="https://git.example.com/team/site.git", branch="next", trust="all")
    assert (other["name"], other["branch"], other["trust"]) == ("site", "next", "all")
    listed = (await http.get("/v1/projects")).json()["data"]
    assert [row["id"] for row in listed] == [other["id"], made["id"]]
    found = (await http.get("/v1/projects", params={"path": "team/website"})).json()["data"]
    assert [row["id"] for row in found] == [made["id"]]


async def test_a_project_is_changed_and_archived(http: httpx2.AsyncClient) -> None:
    made = await _create(http, "projects", path="a", branch="next", metadata={"a": "1"})
    where = f"/v1/projects/{made['id']}"
    changed = (await http.post(where, json={"trust": "instructions", "metadata": {"a": None, "b": "2"}})).json()
    assert (changed["trust"], changed["branch"], changed["metadata"]) == ("instructions", "next", {"b": "2"})
    assert (await http.post(where, json={"branch": None})).json()["branch"] is None
    assert (await http.post(f"{where}/archive")).json()["archived_at"] is not None
    assert (await http.get("/v1/projects")).json()["data"] == []


@pytest.mark.requirement("K7")
async def test_a_project_has_a_setup_and_cached_directories(http: httpx2.AsyncClient) -> None:
    made = await _create(http, "projects", path="a", setup="npm ci", cached_directories=["node_modules", "a/b", "a/b"])
    assert (made["setup"], made["cached_directories"]) == ("npm ci", ["node_modules", "a/b"])
    where = f"/v1/projects/{made['id']}"
    assert (await http.post(where, json={"setup": None})).json()["cached_directories"] == ["node_modules", "a/b"]
    changed = (await http.post(where, json={"cached_directories": None})).json()
    assert (changed["setup"], changed["cached_directories"]) == (None, None)
    rules = {"deny": ["Bash(rm:*)"]}
    made = await _create(http, "projects", path="b", setup="make", permissions=rules)
    where = f"/v1/projects/{made['id']}"
    assert (await http.post(where, json={"setup": "make all"})).json()["setup"] == "make all"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"path": "a", "setup": " "}, "setup"),
        ({"path": "a", "setup": "x" * 16_385}, "setup"),
        ({"path": "a", "cached_directories": ["../a"]}, "cached_directories"),
        ({"path": "a", "cached_directories": ["/a"]}, "cached_directories"),
        ({"path": "a", "cached_directories": ["a/.git/b"]}, "cached_directories"),
        ({"path": "a", "cached_directories": ["*"]}, "cached_directories"),
        ({}, "path"),
        ({"path": "a", "url": "https://example.com/a"}, "path"),
        ({"path": "../a"}, "path"),
        ({"path": "/srv/projects/org_b/a"}, "path"),
        ({"url": "ext::sh"}, "url"),
        ({"path": "a", "branch": "--x"}, "branch"),
        ({"path": "a", "trust": "some"}, "trust"),
        ({"path": "a", "name": "a/b"}, "name"),
    ],
)
async def test_an_invalid_project_is_refused_by_field(http: httpx2.AsyncClient, body: Any, field: str) -> None:
    response = await http.post("/v1/projects", json=body)
    assert (response.status_code, response.json()["error"]["field"]) == (400, field), response.text


async def test_a_workspace_keeps_its_order(http: httpx2.AsyncClient) -> None:
    one, two = [(await _create(http, "projects", path=name))["id"] for name in ("one", "two")]
    made = await _create(http, "workspaces", name="both", project_ids=[two, one])
    response_models.Workspace.model_validate(made)
    assert made["project_ids"] == [two, one]
    where = f"/v1/workspaces/{made['id']}"
    assert (await http.post(where, json={"project_ids": [one]})).json()["project_ids"] == [one]
    assert (await http.post(where, json={"project_ids": []})).status_code == 400
    session = (await _session(http, workspace_id=made["id"])).json()
    response_models.Session.model_validate(session)
    assert (session["project_ids"], session["workspace_id"], session["bases"]) == ([one], made["id"], {})


async def test_a_session_has_projects_or_a_workspace(http: httpx2.AsyncClient) -> None:
    one = (await _create(http, "projects", path="one"))["id"]
    workspace = (await _create(http, "workspaces", name="w", project_ids=[one]))["id"]
    assert (await _session(http, project_ids=[one])).json()["project_ids"] == [one]
    both = await _session(http, project_ids=[one], workspace_id=workspace)
    assert (both.status_code, both.json()["error"]["field"]) == (400, "workspace_id")
    named = await _session(http, project_ids=[one], context={"directory": "/srv"})
    assert (named.status_code, named.json()["error"]["field"]) == (400, "context.directory")
    none = (await _session(http)).json()
    assert (none["project_ids"], none["workspace_id"]) == ([], None)


async def test_projects_of_other_organisations_are_not_found(api: Api, http: httpx2.AsyncClient) -> None:
    mine = (await _create(http, "projects", path="one"))["id"]
    workspace = (await _create(http, "workspaces", name="w", project_ids=[mine]))["id"]
    async with make_client(api.app, "secret-b") as stranger:
        for method, path, body in (
            ("GET", f"projects/{mine}", None),
            ("POST", f"projects/{mine}", {"trust": "all"}),
            ("POST", f"projects/{mine}/archive", None),
            ("GET", f"workspaces/{workspace}", None),
            ("POST", f"workspaces/{workspace}", {"name": "x"}),
            ("POST", f"workspaces/{workspace}/archive", None),
            ("POST", "workspaces", {"name": "x", "project_ids": [mine]}),
        ):
            response = await stranger.request(method, f"/v1/{path}", json=body)
            assert response.status_code == 404, (method, path)
        assert (await _session(stranger, project_ids=[mine])).status_code == 404
        assert (await _session(stranger, workspace_id=workspace)).status_code == 404
        assert (await stranger.get("/v1/projects")).json()["data"] == []


async def test_a_project_with_rules_needs_the_role_and_refusals_are_audited(api: Api, http: httpx2.AsyncClient) -> None:
    rules = {"deny": ["Bash(rm *)"]}
    ruled = await _create(http, "projects", path="team/app", permissions=rules)
    where = f"/v1/projects/{ruled['id']}"
    async with make_client(api.app, "secret-c") as member:
        for path, body in (
            (where, {"trust": "all"}),
            (where, {"branch": "other"}),
            (where, {"permissions": None}),
            (f"{where}/archive", {}),
            ("/v1/projects", {"path": "team/app", "name": "again"}),
        ):
            refused = await member.post(path, json=body)
            assert refused.status_code == 403, (path, body)
            assert "policy_admin" in refused.json()["error"]["message"]
            last = (await http.get("/v1/audit?kind=refusal")).json()["data"][-1]
            assert (last["content"]["method"], last["content"]["path"]) == ("POST", path)
            assert last["content"]["message"] == refused.json()["error"]["message"]
        assert (await member.post(where, json={"metadata": {"a": "1"}})).status_code == 200
    assert (await http.get(where)).json()["permissions"]["deny"] == rules["deny"]
    assert (await http.post(f"{where}/archive")).status_code == 200
    again = await _create(http, "projects", path="team/app")
    assert again["permissions"]["deny"] == rules["deny"]


async def test_a_directory_must_be_below_the_roots_of_its_organisation(api: Api, http: httpx2.AsyncClient) -> None:
    made = await _session(http, context={"directory": "/srv/checkouts/app"})
    assert made.status_code == 200
    message = {"type": "user.message", "content": [{"type": "text", "text": "Go."}], "context": {"directory": "/etc"}}
    events = f"/v1/sessions/{made.json()['id']}/events"
    async with make_client(api.app, "secret-b") as stranger:
        await _create(stranger, "environments", name="strangers")
        for refused in (
            await _session(http, context={"directory": "/srv/other"}),
            await _session(http, context={"directory": "/srv/checkouts/app/.git/hooks"}),
            await _session(http, initial_events=[message]),
            await http.post(events, json={"events": [message]}),
            await _session(stranger, context={"directory": "/srv/checkouts/app"}),
        ):
            assert (refused.status_code, refused.json()["error"]["field"]) == (400, "context.directory")
