"""Rules over HTTP: they are written as a whole, and an invalid rule is refused with its position."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest
from tests.unit.api.conftest import Api, make_client
from tests.unit.api.fake_services import START
from tests.unit.api.test_agents import create_agent, post_refused

from footplate.api.wire.policy.explanations import PolicyExplanation
from footplate.domain.policy.permissions import PermissionOutcome
from footplate.domain.policy.policy_replay import StoredCall

RULES = {"deny": ["Bash(rm *)"], "ask": ["WebFetch"], "allow": ["Read(src/**)"]}


async def test_the_organisations_rules_are_replaced_as_a_whole(http: httpx2.AsyncClient) -> None:
    empty = (await http.get("/v1/policies")).json()
    assert empty["permissions"] == {"deny": [], "ask": [], "allow": []}
    assert (empty["layer"], empty["updated_at"]) == ("organisation", None)
    written = (await http.post("/v1/policies", json={"permissions": RULES})).json()
    assert written["permissions"] == RULES
    assert written["updated_by"]
    assert (await http.get("/v1/policies")).json() == written
    fewer = (await http.post("/v1/policies", json={"permissions": {"deny": ["Bash"]}})).json()
    assert fewer["permissions"] == {"deny": ["Bash"], "ask": [], "allow": []}


async def test_a_change_of_a_policy_that_another_member_changed_meanwhile_is_refused(http: httpx2.AsyncClient) -> None:
    async def write(expected: str | None) -> httpx2.Response:
        return await http.post("/v1/policies", json={"permissions": RULES, "expected_updated_at": expected})

    first = await write(None)
    assert first.status_code == 200
    refused = await write(None)
    assert (refused.status_code, refused.json()["error"]["field"]) == (409, "expected_updated_at")
    second = await write(first.json()["updated_at"])
    assert second.status_code == 200
    assert (await write(first.json()["updated_at"])).status_code == 409
    assert (await write("soon")).status_code == 400
    assert (await http.get("/v1/policies")).json() == second.json()


async def test_a_rule_that_cannot_be_read_is_refused_with_its_position(http: httpx2.AsyncClient) -> None:
    rules = {"permissions": {"allow": ["Read", "Bash(npm run"]}}
    field, message = await post_refused(http, "/v1/policies", rules)
    assert field == "permissions.allow.1"
    assert "at character 13" in message
    assert (await http.get("/v1/policies")).json()["permissions"]["allow"] == []


async def test_hooks_are_stored_and_validated(http: httpx2.AsyncClient) -> None:
    hook = {"type": "command", "command": "check", "timeout": 5}
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}
    written = (await http.post("/v1/policies", json={"permissions": {**RULES, "hooks": hooks}})).json()
    assert written["permissions"] == {**RULES, "hooks": hooks}
    agent = await create_agent(http, permissions={"hooks": hooks})
    assert agent["permissions"]["hooks"] == hooks
    for wrong, path in (
        ({"PreToolUse": [{"matcher": "(", "hooks": [hook]}]}, "PreToolUse.0.matcher"),
        ({"PreToolUse": [{"hooks": [{**hook, "type": "prompt"}]}]}, "PreToolUse.0.hooks.0.type"),
        ({"SessionStart": []}, "SessionStart"),
    ):
        field, _ = await post_refused(http, "/v1/policies", {"permissions": {"hooks": wrong}})
        assert field == f"permissions.hooks.{path}"


@pytest.mark.requirement("S7")
async def test_python_and_http_hooks_are_validated(http: httpx2.AsyncClient) -> None:
    python = {"type": "python", "name": "validation", "options": {"schema": {}}, "timeout": 5}
    hooks = {"PreToolUse": [{"matcher": "", "hooks": [python]}], "Stop": [{"matcher": "", "hooks": [python]}]}
    agent = await create_agent(http, permissions={"hooks": hooks})
    assert agent["permissions"]["hooks"] == hooks
    unknown = {"Stop": [{"hooks": [{"type": "python", "name": "nobody"}]}]}
    field, message = await post_refused(http, "/v1/policies", {"permissions": {"hooks": unknown}})
    assert field.startswith("permissions.hooks.Stop.0.hooks.0")
    assert "audit" in message
    far = {"PreToolUse": [{"hooks": [{"type": "http", "url": "https://hooks.example.com/x"}]}]}
    for path in ("/v1/policies", "/v1/projects"):
        body = {"permissions": {"hooks": far}, **({"path": "p"} if path.endswith("projects") else {})}
        field, message = await post_refused(http, path, body)
        assert field == "permissions.hooks.PreToolUse.0.hooks.0.url"
        assert "FOOTPLATE_HOOK_HOSTS" in message
    field, message = await post_refused(http, "/v1/agents", {"name": "a", "model": "m", "permissions": {"hooks": far}})
    assert field == "permissions.hooks"
    assert "an organisation or a project" in message


async def test_an_agent_has_rules(http: httpx2.AsyncClient) -> None:
    agent = await create_agent(http, permissions=RULES)
    assert agent["permissions"] == RULES
    changed = (await http.post(f"/v1/agents/{agent['id']}", json={"permissions": None})).json()
    assert "permissions" not in changed


async def test_a_claude_settings_file_is_imported(http: httpx2.AsyncClient) -> None:
    settings: dict[str, Any] = {
        "permissions": {**RULES, "allow": ["Read(src/**)", "Write(src/**)"], "defaultMode": "acceptEdits"},
        "model": "opus",
    }
    found = (await http.post("/v1/policies/import", json={"settings": settings})).json()
    assert found["permissions"] == RULES
    assert [note.split(":")[0] for note in found["notes"]] == ["permissions.allow[1]", "permissions.defaultMode"]
    hook = {"type": "command", "command": "check"}
    other: dict[str, Any] = {"hooks": [{**hook, "type": "prompt"}]}
    settings["hooks"] = {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}], "Stop": [other], "SessionStart": []}
    hooked = (await http.post("/v1/policies/import", json={"settings": settings})).json()
    assert hooked["permissions"]["hooks"] == {"PreToolUse": [{"matcher": "Bash", "hooks": [{**hook, "timeout": 60}]}]}
    assert [note.split(":")[0] for note in hooked["notes"]][2:] == [
        "hooks.Stop[0].hooks[0]",
        "hooks.SessionStart",
    ]
    for event in ("PreToolUse", "UserPromptSubmit"):
        body = {"settings": {**settings, "hooks": {event: [other]}}}
        field, message = await post_refused(http, "/v1/policies/import", body)
        assert field == f"hooks.{event}[0].hooks[0]"
        assert "the rules would allow more" in message
    off = (await http.post("/v1/policies/import", json={"settings": {**settings, "disableAllHooks": True}})).json()
    assert "hooks" not in off["permissions"]
    assert "disableAllHooks" in off["notes"][-1]
    settings["permissions"] = {"defaultMode": "dontAsk"}
    field, _ = await post_refused(http, "/v1/policies/import", {"settings": settings})
    assert field == "permissions.defaultMode"
    settings["permissions"] = {"deny": ["Bash("]}
    field, message = await post_refused(http, "/v1/policies/import", {"settings": settings})
    assert field == "permissions.deny[0]"
    assert "at character" in message


async def _session(http: httpx2.AsyncClient) -> dict[str, Any]:
    known = (await http.get("/v1/environments")).json()["data"]
    environment = known[0] if known else (await http.post("/v1/environments", json={"name": "e"})).json()
    chosen = {"agent": (await create_agent(http))["id"], "environment_id": environment["id"]}
    made: dict[str, Any] = (await http.post("/v1/sessions", json=chosen)).json()
    return made


async def _store_calls(api: Api, http: httpx2.AsyncClient, *commands: str) -> str:
    session = await _session(http)
    api.world.calls["org_a"] = [
        StoredCall(
            id=f"audt_{number}",
            created_at=START + timedelta(minutes=number),
            session_id=session["id"],
            turn_id="turn_1",
            event_id=f"sevt_{number}",
            original_outcome=PermissionOutcome.ALLOW,
            name="bash",
            input={"command": command} if command else None,
        )
        for number, command in enumerate(commands)
    ]
    return str(session["id"])


async def test_a_replay_reports_changed_outcomes(api: Api, http: httpx2.AsyncClient) -> None:
    session_id = await _store_calls(api, http, "make", "rm x", "", "curl x")
    asked = {"permissions": {"deny": ["Bash(rm *)"], "allow": ["Bash(make)"]}}
    found = (await http.post("/v1/policies/replay", json=asked)).json()
    assert (found["calls"], found["gone"], found["next_page"]) == (3, 1, None)
    assert found["outcomes"]["allow"] == {"allow": 1, "ask": 1, "deny": 1}
    assert [(one["summary"], one["would"]) for one in found["data"]] == [("curl x", "ask"), ("rm x", "deny")]
    last = found["data"][1]
    assert (last["session_id"], last["event_id"], last["rule"]) == (session_id, "sevt_1", "Bash(rm *)")
    assert (await http.get("/v1/policies")).json()["updated_at"] is None


async def test_a_replay_is_paged_and_filtered(api: Api, http: httpx2.AsyncClient) -> None:
    await _store_calls(api, http, "a", "b", "c", "d", "e")
    asked: dict[str, Any] = {"permissions": {"deny": ["Bash"]}, "limit": 2}
    seen: list[str] = []
    for calls in (2, 2, 1):
        page = (await http.post("/v1/policies/replay", json=asked)).json()
        seen += [one["summary"] for one in page["data"]]
        assert page["calls"] == calls
        asked["page"] = page["next_page"]
    assert (seen, asked["page"]) == (["e", "d", "c", "b", "a"], None)
    late = {"permissions": {"deny": ["Bash"]}, "since": (START + timedelta(minutes=3)).isoformat()}
    assert (await http.post("/v1/policies/replay", json=late)).json()["calls"] == 2
    for wrong in (5, "noon"):
        assert (await post_refused(http, "/v1/policies/replay", {**late, "since": wrong}))[0] == "since"
    other = (await _session(http))["id"]
    narrowed = {"permissions": {"deny": ["Bash"]}, "session_id": other}
    assert (await http.post("/v1/policies/replay", json=narrowed)).json()["calls"] == 0
    for name, foreign in (("session_id", "sesn_none"), ("project_id", "proj_none")):
        assert (await http.post("/v1/policies/replay", json={"permissions": {}, name: foreign})).status_code == 404
    async with make_client(api.app, "secret-b") as stranger:
        assert (await stranger.post("/v1/policies/replay", json=narrowed)).status_code == 404
    field, _ = await post_refused(http, "/v1/policies/replay", {"permissions": {"deny": ["Bash("]}})
    assert field == "permissions.deny.0"


@pytest.mark.parametrize(("secret", "status"), [("secret-a", 200), ("secret-c", 403), ("secret-d", 200)])
async def test_shared_rules_are_written_only_with_a_role(api: Api, secret: str, status: int) -> None:
    async with make_client(api.app) as admin, make_client(api.app, secret) as http:
        project = (await admin.post("/v1/projects", json={"path": "a", "permissions": RULES})).json()
        where = f"/v1/projects/{project['id']}"
        refusals = [
            await http.post("/v1/policies", json={"permissions": RULES}),
            await http.post("/v1/policies", json={"approvals": {"two_people": False}}),
            await http.post("/v1/projects", json={"path": "b", "permissions": RULES}),
            await http.post(where, json={"permissions": None}),
        ]
        assert [response.status_code for response in refusals] == [status] * 4
        if status == 403:
            error = refusals[0].json()["error"]
            assert "policy_admin" in error["message"]
            assert "footplate api-keys create --role policy_admin" in str(error)
            assert (await http.get("/v1/policies")).json()["updated_at"] is None
            assert (await http.get(where)).json()["permissions"] == RULES


async def test_every_key_may_read_rules_and_write_rules_of_agents(api: Api) -> None:
    async with make_client(api.app) as admin, make_client(api.app, "secret-c") as http:
        project = (await admin.post("/v1/projects", json={"path": "a", "permissions": RULES})).json()
        where = f"/v1/projects/{project['id']}"
        assert (await http.post(where, json={"name": "other", "permissions": RULES})).status_code == 200
        assert (await http.post("/v1/projects", json={"path": "b", "permissions": {}})).status_code == 200
        assert (await create_agent(http, permissions=RULES))["permissions"] == RULES
        asked = {"permissions": {"deny": ["Bash"]}}
        assert (await http.post("/v1/policies/replay", json=asked)).status_code == 200


async def test_a_call_is_explained_with_the_rules_of_a_session_or_a_new_one(http: httpx2.AsyncClient) -> None:
    await http.post("/v1/policies", json={"permissions": RULES})
    call = {"tool": "bash", "input": {"command": "ls && rm -r x"}}
    found = PolicyExplanation.model_validate((await http.post("/v1/policies/explain", json=call)).json())
    assert (found.outcome, found.rule, found.layer) == ("deny", "Bash(rm *)", "organisation")
    assert [(part.text, part.outcome) for part in found.parts] == [("ls", "allow"), ("rm -r x", "deny")]
    assert [(each.layer, each.deny) for each in found.layers] == [("organisation", ["Bash(rm *)"])]
    agent = await create_agent(http, permissions={"allow": ["Bash(git push *)"]})
    push = {"tool": "Bash", "input": {"command": "git push origin"}}
    assert (await http.post("/v1/policies/explain", json=push)).json()["outcome"] == "ask"
    of_agent = (await http.post("/v1/policies/explain", json={**push, "agent_id": agent["id"]})).json()
    assert (of_agent["outcome"], of_agent["layer"]) == ("allow", "agent")
    environment = (await http.post("/v1/environments", json={"name": "e"})).json()
    session = (await http.post("/v1/sessions", json={"agent": agent["id"], "environment_id": environment["id"]})).json()
    of_session = (await http.post("/v1/policies/explain", json={**push, "session_id": session["id"]})).json()
    assert of_session == of_agent
    both = {**push, "session_id": session["id"], "agent_id": agent["id"]}
    assert (await post_refused(http, "/v1/policies/explain", both))[0] == "session_id"
    missing = await http.post("/v1/policies/explain", json={**push, "session_id": "sesn_none"})
    assert missing.status_code == 404
