"""Rules on the wire: written as a whole, refused with the position of what is wrong."""

from typing import Any

import httpx2
from tests.unit.api.test_agents import create, refused

RULES = {"deny": ["Bash(rm *)"], "ask": ["WebFetch"], "allow": ["Read(src/**)"]}


async def test_the_organisations_rules(http: httpx2.AsyncClient) -> None:
    empty = (await http.get("/v1/policies")).json()
    assert empty["permissions"] == {"deny": [], "ask": [], "allow": []}
    assert (empty["layer"], empty["updated_at"]) == ("organisation", None)
    written = (await http.post("/v1/policies", json={"permissions": RULES})).json()
    assert written["permissions"] == RULES
    assert written["updated_by"]
    assert (await http.get("/v1/policies")).json() == written
    fewer = (await http.post("/v1/policies", json={"permissions": {"deny": ["Bash"]}})).json()
    assert fewer["permissions"] == {"deny": ["Bash"], "ask": [], "allow": []}


async def test_a_rule_that_cannot_be_read_is_refused_with_its_position(http: httpx2.AsyncClient) -> None:
    rules = {"permissions": {"allow": ["Read", "Bash(npm run"]}}
    field, message = await refused(http, "/v1/policies", rules)
    assert field == "permissions.allow.1"
    assert "at character 13" in message
    assert (await http.get("/v1/policies")).json()["permissions"]["allow"] == []


async def test_hooks(http: httpx2.AsyncClient) -> None:
    hook = {"type": "command", "command": "check", "timeout": 5}
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}
    written = (await http.post("/v1/policies", json={"permissions": {**RULES, "hooks": hooks}})).json()
    assert written["permissions"] == {**RULES, "hooks": hooks}
    agent = await create(http, permissions={"hooks": hooks})
    assert agent["permissions"]["hooks"] == hooks
    for wrong, place in (
        ({"PreToolUse": [{"matcher": "(", "hooks": [hook]}]}, "PreToolUse.0.matcher"),
        ({"PreToolUse": [{"hooks": [{**hook, "type": "prompt"}]}]}, "PreToolUse.0.hooks.0.type"),
        ({"SessionStart": []}, "SessionStart"),
    ):
        field, _ = await refused(http, "/v1/policies", {"permissions": {"hooks": wrong}})
        assert field == f"permissions.hooks.{place}"


async def test_hooks_that_a_worker_asks_itself(http: httpx2.AsyncClient) -> None:
    python = {"type": "python", "name": "validation", "options": {"schema": {}}, "timeout": 5}
    hooks = {"PreToolUse": [{"matcher": "", "hooks": [python]}], "Stop": [{"matcher": "", "hooks": [python]}]}
    agent = await create(http, permissions={"hooks": hooks})
    assert agent["permissions"]["hooks"] == hooks
    unknown = {"Stop": [{"hooks": [{"type": "python", "name": "nobody"}]}]}
    field, message = await refused(http, "/v1/policies", {"permissions": {"hooks": unknown}})
    assert field.startswith("permissions.hooks.Stop.0.hooks.0")
    assert "audit" in message
    far = {"PreToolUse": [{"hooks": [{"type": "http", "url": "https://hooks.example.com/x"}]}]}
    for path in ("/v1/policies", "/v1/projects"):
        body = {"permissions": {"hooks": far}, **({"path": "p"} if path.endswith("projects") else {})}
        field, message = await refused(http, path, body)
        assert field == "permissions.hooks.PreToolUse.0.hooks.0.url"
        assert "FOOTPLATE_HOOK_HOSTS" in message
    field, message = await refused(http, "/v1/agents", {"name": "a", "model": "m", "permissions": {"hooks": far}})
    assert field == "permissions.hooks"
    assert "an organisation or a project" in message


async def test_rules_of_an_agent(http: httpx2.AsyncClient) -> None:
    agent = await create(http, permissions=RULES)
    assert agent["permissions"] == RULES
    changed = (await http.post(f"/v1/agents/{agent['id']}", json={"permissions": None})).json()
    assert "permissions" not in changed


async def test_rules_of_a_claude_settings_file(http: httpx2.AsyncClient) -> None:
    settings: dict[str, Any] = {
        "permissions": {**RULES, "allow": ["Read(src/**)", "Write(src/**)"], "defaultMode": "acceptEdits"},
        "model": "opus",
    }
    found = (await http.post("/v1/policies/import", json={"settings": settings})).json()
    assert found["permissions"] == RULES
    assert [note.split(":")[0] for note in found["notes"]] == ["permissions.allow[1]", "permissions.defaultMode"]
    hook = {"type": "command", "command": "check"}
    groups = [{"matcher": "Bash", "hooks": [hook]}, {"hooks": [{**hook, "type": "prompt"}]}]
    settings["hooks"] = {"PreToolUse": groups, "Stop": [], "SessionStart": []}
    hooked = (await http.post("/v1/policies/import", json={"settings": settings})).json()
    assert hooked["permissions"]["hooks"] == {"PreToolUse": [{"matcher": "Bash", "hooks": [{**hook, "timeout": 60}]}]}
    assert [note.split(":")[0] for note in hooked["notes"]][2:] == [
        "hooks.PreToolUse[1].hooks[0]",
        "hooks.SessionStart",
    ]
    settings["permissions"] = {"deny": ["Bash("]}
    field, message = await refused(http, "/v1/policies/import", {"settings": settings})
    assert field == "permissions.deny[0]"
    assert "at character" in message
