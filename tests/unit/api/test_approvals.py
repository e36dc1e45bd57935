"""Calls that wait for approval are listed across sessions and decided by an event."""

from dataclasses import replace
from datetime import timedelta

import httpx2
import pytest
from anthropic import AsyncAnthropic
from tests.unit.api.conftest import Api
from tests.unit.api.test_agents import post_refused

from footplate.domain.json import JsonObject
from footplate.domain.policy.approvals import Approval


async def create_session(sdk: AsyncAnthropic) -> str:
    agent = await sdk.beta.agents.create(name="Coder", model="m")
    environment = await sdk.beta.environments.create(name="env")
    return (await sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id)).id


async def make_approvals(api: Api, session_id: str, count: int) -> list[Approval]:
    now = api.world.now()
    body: JsonObject = {
        "name": "bash",
        "input": {"command": "make"},
        "permission": {"rule": "Bash", "reason": "because"},
    }
    made = [
        Approval(
            id=f"sevt_{number}",
            session_id=session_id,
            turn_id="turn_1",
            title="A title",
            body=body,
            created_at=now + timedelta(seconds=number),
        )
        for number in range(count)
    ]
    api.world.approvals += made
    return made


async def test_pending_approvals_are_listed_in_pages(api: Api, http: httpx2.AsyncClient, sdk: AsyncAnthropic) -> None:
    session_id = await create_session(sdk)
    made = await make_approvals(api, session_id, 3)
    first = (await http.get("/v1/approvals", params={"limit": 2})).json()
    assert [one["id"] for one in first["data"]] == ["sevt_0", "sevt_1"]
    assert (first["data"][0]["status"], first["data"][0]["input"]) == ("pending", {"command": "make"})
    assert first["data"][0]["display"] == {
        "name": "bash",
        "agent_name": None,
        "reason": "because",
        "input": [{"name": "command", "kind": "text", "text": "make"}],
        "whole": True,
    }
    second = (await http.get("/v1/approvals", params={"limit": 2, "page": first["next_page"]})).json()
    assert ([one["id"] for one in second["data"]], second["next_page"]) == (["sevt_2"], None)
    assert (await http.get("/v1/approvals", params={"session_id": "sesn_none"})).json()["data"] == []
    api.world.approvals[0] = replace(made[0], closed_at=api.world.now(), outcome="allow", principal="key_1")
    assert len((await http.get("/v1/approvals")).json()["data"]) == 2
    one = (await http.get("/v1/approvals/sevt_0")).json()
    assert (one["status"], one["answered_by"]) == ("allowed", "key_1")
    assert (await http.get("/v1/approvals/sevt_9")).status_code == httpx2.codes.NOT_FOUND


async def test_a_list_shows_the_beginning_of_an_input_and_one_approval_all_of_it(
    api: Api, http: httpx2.AsyncClient, sdk: AsyncAnthropic
) -> None:
    (made,) = await make_approvals(api, await create_session(sdk), 1)
    command = "echo harmless\n" * 500 + "touch EVIL\u202e"
    api.world.approvals[0] = replace(made, body={"name": "bash", "input": {"command": command}})
    listed = (await http.get("/v1/approvals")).json()["data"][0]["display"]
    assert not listed["whole"]
    assert listed["input"][0]["text"].endswith(" more>")
    one = (await http.get("/v1/approvals/sevt_0")).json()["display"]
    assert one["whole"]
    assert one["input"][0]["text"].endswith("\ntouch EVIL<U+202E>")


async def test_approval_terms_are_stored_and_validated(http: httpx2.AsyncClient) -> None:
    terms = {"expires_after_seconds": 60, "outcome": "allow", "role": "approver", "two_people": True}
    written = (await http.post("/v1/policies", json={"approvals": terms})).json()
    assert written["approvals"] == terms
    updated = (await http.post("/v1/policies", json={"permissions": {"deny": ["Bash"]}})).json()
    assert (updated["approvals"], updated["permissions"]["deny"]) == (terms, ["Bash"])
    field, _ = await post_refused(http, "/v1/policies", {"approvals": {"outcome": "ask"}})
    assert field == "approvals.outcome"


@pytest.mark.requirement("K9")
async def test_a_decision_may_edit_the_input_and_add_a_session_rule(
    api: Api, http: httpx2.AsyncClient, sdk: AsyncAnthropic
) -> None:
    session_id = await create_session(sdk)
    decision = {"type": "user.tool_confirmation", "tool_use_id": "sevt_0", "result": "allow"}
    more = {"updated_input": {"command": "ls"}, "session_rule": "Bash(ls *)"}
    path = f"/v1/sessions/{session_id}/events"
    assert (await http.post(path, json={"events": [{**decision, **more}]})).status_code == httpx2.codes.OK
    assert api.world.inputs[-1].body == {"tool_use_id": "sevt_0", "result": "allow", **more}
    for wrong in ({**decision, "deny_message": "no"}, {**decision, "result": "deny", "session_rule": "Bash"}):
        await post_refused(http, path, {"events": [wrong]})
    field, message = await post_refused(http, path, {"events": [{**decision, "session_rule": "Bash("}]})
    assert field.endswith("session_rule")
    assert "at character" in message
