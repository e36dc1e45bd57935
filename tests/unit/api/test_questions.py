"""Questions are listed across sessions, and answered with choices or free text."""

from dataclasses import replace
from datetime import timedelta

import httpx2
import pytest
from anthropic import AsyncAnthropic
from tests.unit.api.conftest import Api
from tests.unit.api.test_approvals import create_session, make_approvals

from footplate.domain.json import JsonObject

INPUT: JsonObject = {
    "questions": [{"question": "Which?", "options": [{"label": "A"}, {"label": "B (Recommended)"}]}],
    "deadline_seconds": 60,
}


async def make_question(api: Api, sdk: AsyncAnthropic) -> str:
    """Creates a question beside two approvals, and returns its id."""
    made = await make_approvals(api, await create_session(sdk), 3)
    body: JsonObject = {"name": "ask_user", "input": INPUT, "question": True}
    api.world.approvals[-1] = replace(made[2], body=body, expires_at=made[2].created_at + timedelta(minutes=1))
    return made[2].id


async def test_a_question_is_listed_and_gets_a_reply(api: Api, http: httpx2.AsyncClient, sdk: AsyncAnthropic) -> None:
    question_id = await make_question(api, sdk)
    (listed,) = (await http.get("/v1/questions")).json()["data"]
    assert listed == (await http.get(f"/v1/questions/{question_id}")).json()
    assert (listed["id"], listed["type"], listed["status"]) == (question_id, "question", "pending")
    assert listed["questions"][0]["options"][0] == {"label": "A", "description": None, "preview": None}
    assert (listed["questions"][0]["multi_select"], listed["questions"][0]["allow_free_text"]) == (False, True)
    assert (listed["default"], listed["answers"]) == ({"Which?": "B (Recommended)"}, None)
    assert len((await http.get("/v1/approvals")).json()["data"]) == 2
    sent = await http.post(f"/v1/questions/{question_id}/answer", json={"answers": {"Which?": "Neither."}})
    assert sent.status_code == 200
    (event,) = sent.json()["data"]
    assert (event["type"], event["custom_tool_use_id"]) == ("user.custom_tool_result", question_id)
    assert event["answers"] == {"Which?": "Neither."}
    assert '"Which?"="Neither."' in event["content"][0]["text"]


async def test_a_reply_that_does_not_fit_is_refused(api: Api, http: httpx2.AsyncClient, sdk: AsyncAnthropic) -> None:
    question_id = await make_question(api, sdk)
    bodies: list[JsonObject] = [{"answers": {}}, {"answers": {"Who?": "A"}}, {"answers": {"Which?": ["A"]}}, {}]
    for body in bodies:
        refused = await http.post(f"/v1/questions/{question_id}/answer", json=body)
        assert refused.status_code == 400, body
    assert (await http.post("/v1/questions/sevt_0/answer", json={"answers": {"Which?": "A"}})).status_code == 404
    api.world.approvals[-1] = replace(api.world.approvals[-1], closed_at=api.world.now())
    closed = await http.post(f"/v1/questions/{question_id}/answer", json={"answers": {"Which?": "A"}})
    assert closed.status_code == 409


@pytest.mark.parametrize(
    ("field", "name"),
    [("ask_user", "ask_user"), ("spawn_sessions", "spawn_sessions"), ("spawn_sessions", "wait_sessions")],
)
async def test_a_custom_tool_may_have_the_name_unless_the_tool_is_enabled(
    http: httpx2.AsyncClient, field: str, name: str
) -> None:
    custom = {"type": "custom", "name": name, "description": "", "input_schema": {"type": "object"}}
    for enabled, status in ((False, 200), (True, 400)):
        tools = [{"type": "agent_toolset_20260401", field: enabled}, custom]
        created = await http.post("/v1/agents", json={"name": "Coder", "model": "m", "tools": tools})
        assert created.status_code == status
