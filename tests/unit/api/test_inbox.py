"""The routes of the inbox, comments, pins and templates: what they serve, and what they refuse."""

from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic
from tests.unit.api.conftest import Api, make_client
from tests.unit.api.fake_services import ALICE
from tests.unit.api.test_approvals import create_session, make_approvals

from footplate.api.routes.session import session_templates
from footplate.api.routes.session.sessions import PreparedSession, prepare_session
from footplate.api.wire.inbox import InboxCountsResponse, InboxItemResponse
from footplate.api.wire.session.comments import SentComments, SessionComment
from footplate.api.wire.session.session_templates import SessionTemplateResponse
from footplate.domain.files.snapshots import FileChange, TreeDiff
from footplate.domain.json import JsonObject
from footplate.domain.sessions.inbox import InboxItem, InboxKind, InboxSession, TurnFailure

LINES: JsonObject = {"path": "a.py", "start_line": 2, "end_line": 3, "body": "Why?"}


async def make_items(api: Api, session_id: str) -> tuple[str, str]:
    """Adds an approval and a failure, and returns their ids."""
    (approval,) = await make_approvals(api, session_id, 1)
    session = InboxSession(id=session_id, title="T", project_ids=["proj_1"], agent_name="A", parent_id=None)
    asked = InboxItem(
        id=approval.id,
        kind=InboxKind.APPROVAL,
        session=session,
        turn_id="turn_1",
        turn_number=1,
        created_at=approval.created_at,
        approval=approval,
    )
    failure = TurnFailure(code="failed", title="The turn failed", message="Gone.\u202e", turn_id="turn_2")
    failed = InboxItem(
        id="turn_2",
        kind=InboxKind.FAILURE,
        session=session,
        turn_id="turn_2",
        turn_number=2,
        created_at=datetime(2030, 1, 1, tzinfo=UTC),
        failure=failure,
    )
    api.world.inbox.items = {one.id: (ALICE.organisation, one) for one in (asked, failed)}
    return asked.id, failed.id


async def test_items_are_listed_assigned_snoozed_and_dismissed(
    api: Api, http: httpx2.AsyncClient, sdk: AsyncAnthropic
) -> None:
    approval_id, failure_id = await make_items(api, await create_session(sdk))
    first = (await http.get("/v1/inbox", params={"limit": "1"})).json()
    second = (await http.get("/v1/inbox", params={"page": first["next_page"]})).json()
    items = [*first["data"], *second["data"]]
    for item in items:
        InboxItemResponse.model_validate(item)
    assert [item["id"] for item in items] == [approval_id, failure_id]
    assert items[0]["approval"] == (await http.get(f"/v1/approvals/{approval_id}")).json()
    assert items[1]["failure"]["message"] == "Gone.\u202e"
    assert "\u202e" not in items[1]["title"]
    assert items[1]["session"]["project_id"] == "proj_1"
    assert (await http.get(f"/v1/inbox/{failure_id}")).json() == items[1]
    until = "2031-01-01T00:00:00Z"
    changed = await http.post(f"/v1/inbox/{failure_id}", json={"assignee_id": "memb_1", "snoozed_until": until})
    assert changed.json()["assignee"] == {"id": "memb_1", "name": "name of memb_1"}
    assert changed.json()["snoozed_until"] == until
    kept = (await http.post(f"/v1/inbox/{failure_id}", json={})).json()
    assert (kept["assignee"]["id"], kept["snoozed_until"]) == ("memb_1", until)
    counts = (await http.get("/v1/inbox/counts")).json()
    InboxCountsResponse.model_validate(counts)
    assert counts == {"type": "inbox_counts", "needs_you": 1, "mine": 0, "snoozed": 1}
    assert (await http.post(f"/v1/inbox/{failure_id}", json={"snoozed_until": None})).json()["snoozed_until"] is None
    dismissed = await http.post(f"/v1/inbox/{failure_id}/dismiss")
    assert dismissed.json() == {"id": failure_id, "type": "inbox_item_dismissed"}
    assert (await http.get(f"/v1/inbox/{failure_id}")).status_code == 404
    for body in ({"assignee_id": ""}, {"snoozed_until": "tomorrow"}, {"until": 1}):
        assert (await http.post(f"/v1/inbox/{approval_id}", json=body)).status_code == 400
    async with make_client(api.app, "secret-b") as stranger:
        assert (await stranger.get("/v1/inbox")).json()["data"] == []
        assert (await stranger.post(f"/v1/inbox/{approval_id}", json={})).status_code == 404


async def test_comments_are_added_and_sent_as_one_message(
    api: Api, http: httpx2.AsyncClient, sdk: AsyncAnthropic
) -> None:
    session_id = await create_session(sdk)
    base = f"/v1/sessions/{session_id}/comments"
    api.diffs.found = [
        TreeDiff(
            organisation="org_a",
            session_id=session_id,
            ancestors=(),
            tree="scratch",
            name="scratch",
            is_additional=False,
            old=None,
            new=None,
        )
    ]
    api.diffs.files = [FileChange(path=b"a.py", status="modified", added=1, deleted=1)]
    added = await http.post(base, json=LINES)
    SessionComment.model_validate(added.json())
    assert (added.json()["code"], added.json()["project_id"]) == ("new 2-3", None)
    assert added.json()["author"] == {"id": ALICE.id, "name": ALICE.name}
    one = f"{base}/{added.json()['id']}"
    assert (await http.post(one, json={"body": "Why not?"})).json()["body"] == "Why not?"
    assert (await http.get(one)).json()["body"] == "Why not?"
    assert len((await http.get(base, params={"sent": "false"})).json()["data"]) == 1
    sent = (await http.post(f"{base}/send", json={})).json()
    SentComments.model_validate(sent)
    assert sent["data"][0]["content"][0]["text"].endswith("Why not?")
    assert sent["comments"][0]["sent_event_id"] == sent["data"][0]["id"]
    assert (await http.post(f"{base}/send", json={})).json() == {"data": [], "comments": []}
    gone = (await http.post(base, json=LINES)).json()["id"]
    assert (await http.delete(f"{base}/{gone}")).json() == {"id": gone, "type": "session_comment_deleted"}
    wrong: list[JsonObject] = [
        {"path": "b.py"},
        {"start_line": 0},
        {"end_line": 1},
        {"end_line": 500},
        {"body": " "},
        {"side": "left"},
    ]
    for fields in wrong:
        assert (await http.post(base, json={**LINES, **fields})).status_code == 400, fields
    assert (await http.post("/v1/sessions/sesn_0/comments", json=LINES)).status_code == 404


async def test_a_template_is_checked_like_a_session(api: Api, http: httpx2.AsyncClient, sdk: AsyncAnthropic) -> None:
    agent = await sdk.beta.agents.create(name="A", model="m")
    environment = await sdk.beta.environments.create(name="E")
    session: JsonObject = {"agent": agent.id, "environment_id": environment.id, "title": "Review"}
    made = (await http.post("/v1/session_templates", json={"name": "Review", "session": session})).json()
    SessionTemplateResponse.model_validate(made)
    assert made["session"] == session
    path = f"/v1/session_templates/{made['id']}"
    assert (await http.get(path)).json() == made
    assert (await http.post(path, json={"description": "D"})).json()["session"] == session
    replaced = (await http.post(path, json={"session": {**session, "title": "Other"}})).json()
    assert (replaced["description"], replaced["session"]["title"]) == ("D", "Other")
    assert (await http.post("/v1/sessions", json=replaced["session"])).status_code == 200
    wrong: list[JsonObject] = [
        {**session, "agent": "agent_0"},
        {**session, "titel": "x"},
        {"agent": agent.id},
        {**session, "visibility": "team"},
        {**session, "context": {"directory": "/etc"}},
    ]
    for each in wrong:
        refused = await http.post("/v1/session_templates", json={"name": "B", "session": each})
        assert refused.status_code in {400, 403, 404}, each
    archived = (await http.post(f"{path}/archive")).json()
    assert archived["archived_at"] is not None
    assert (await http.get("/v1/session_templates")).json()["data"] == []


async def test_a_new_name_does_not_undo_a_change_of_the_session(
    api: Api, http: httpx2.AsyncClient, sdk: AsyncAnthropic, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await sdk.beta.agents.create(name="A", model="m")
    environment = await sdk.beta.environments.create(name="E")
    session: JsonObject = {"agent": agent.id, "environment_id": environment.id}
    made = (await http.post("/v1/session_templates", json={"name": "Review", "session": session})).json()
    path = f"/v1/session_templates/{made['id']}"
    newer = {**session, "title": "Newer"}

    async def change_meanwhile(*arguments: Any) -> PreparedSession:
        monkeypatch.undo()
        assert (await http.post(path, json={"session": newer})).status_code == 200
        return await prepare_session(*arguments)

    monkeypatch.setattr(session_templates, "prepare_session", change_meanwhile)
    renamed = (await http.post(path, json={"name": "Renamed"})).json()
    assert (renamed["name"], renamed["session"]) == ("Renamed", newer)


async def test_pinned_sessions_can_be_listed(api: Api, http: httpx2.AsyncClient, sdk: AsyncAnthropic) -> None:
    pinned = await create_session(sdk)
    session = api.world.sessions[pinned]
    agent, environment_id = str(session.agent["id"]), session.environment_id
    other = (await sdk.beta.sessions.create(agent=agent, environment_id=environment_id)).id
    for _ in range(2):
        response = await http.put(f"/v1/sessions/{pinned}/pin")
        assert response.json() == {"type": "session_pin", "session_id": pinned, "is_pinned": True}

    async def listed(**query: str) -> list[tuple[str, bool]]:
        return [(row["id"], row["is_pinned"]) for row in (await http.get("/v1/sessions", params=query)).json()["data"]]

    assert await listed() == [(other, False), (pinned, True)]
    assert await listed(pinned="true") == [(pinned, True)]
    assert await listed(pinned="false") == [(other, False)]
    assert (await http.delete(f"/v1/sessions/{pinned}/pin")).json()["is_pinned"] is False
    assert await listed(pinned="true") == []
    assert (await http.put("/v1/sessions/sesn_0/pin")).status_code == 404
