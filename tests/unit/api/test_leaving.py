"""`merge`, `push` and `bundle` of a session: the request, and the explanation of a refusal."""

from datetime import UTC, datetime

import httpx2
import pytest
from inline_snapshot import snapshot

from footplate.domain.leases import LeaseHeld, LeaseLost
from footplate.domain.leaving import BranchTarget, BranchCheckedOut, DeliveryRequest, FileConflict, DeliveryResult, MergeConflict

from .conftest import Api

PATH = "/v1/sessions/sesn_1"


async def test_a_merge_says_what_the_branch_is_at(http: httpx2.AsyncClient, api: Api) -> None:
    answer = await http.post(f"{PATH}/merge", json={})
    assert answer.json() == snapshot(
        {
            "type": "session_left",
            "session_id": "sesn_1",
            "project_id": "proj_1",
            "status": "merged",
            "branch": "main",
            "commit": "cccccccccccccccccccccccccccccccccccccccc",
            "before": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        }
    )
    assert api.leaving.asked == [("sesn_1", DeliveryRequest())]
    assert api.leaving.branches == [BranchTarget(wait=300)]


async def test_what_is_asked_is_passed_on(http: httpx2.AsyncClient, api: Api) -> None:
    api.leaving.left = DeliveryResult(status="pushed", branch="x", commit="c" * 40, before=None)
    body = {"project_id": "proj_1", "into": "next", "message": "Mine", "wait_seconds": 5}
    assert (await http.post(f"{PATH}/merge", json=body)).status_code == 200
    body = {"branch": "topic/x", "wait_seconds": 0}
    assert (await http.post(f"{PATH}/push", json=body)).json()["before"] is None
    assert [asked for _, asked in api.leaving.asked] == [
        DeliveryRequest(project_id="proj_1", message="Mine"),
        DeliveryRequest(),
    ]
    assert api.leaving.branches == [BranchTarget(branch="next", wait=5), BranchTarget(branch="topic/x", wait=0)]


@pytest.mark.parametrize(
    ("route", "body", "field"),
    [
        ("merge", {"into": "-x"}, "into"),
        ("push", {"branch": "a..b"}, "branch"),
        ("push", {"branch": "refs heads"}, "branch"),
        ("merge", {"wait_seconds": 301}, "wait_seconds"),
        ("merge", {"message": ""}, "message"),
        ("merge", {"branch": "x"}, "branch"),
    ],
)
async def test_what_cannot_be_is_refused(
    http: httpx2.AsyncClient, api: Api, route: str, body: dict[str, object], field: str
) -> None:
    answer = await http.post(f"{PATH}/{route}", json=body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
    assert api.leaving.branches == []


async def test_a_conflict_is_explained(http: httpx2.AsyncClient, api: Api) -> None:
    conflicts = [
        FileConflict(path="a.py", reason="both changed the same lines", line_numbers=[3, 9], last_commit="abc1234 Fix (Ann)"),
        FileConflict(path="b", reason="one changed it and the other deleted it"),
    ]
    api.leaving.fails = MergeConflict("main", conflicts)
    answer = await http.post(f"{PATH}/merge", json={})
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], answer.headers["x-should-retry"]) == (409, "conflict_error", "false")
    assert error["message"] == snapshot(
        """\
The session's work conflicts with the branch 'main' in 2 files:
  a.py: both changed the same lines (line 3, 9); last in abc1234 Fix (Ann)
  b: one changed it and the other deleted it\
"""
    )
    assert error["conflicts"][0] == {
        "path": "a.py",
        "reason": "both changed the same lines",
        "lines": [3, 9],
        "last_commit": "abc1234 Fix (Ann)",
    }
    assert error["docs"].endswith("#merge_conflict")


async def test_very_many_conflicts_are_counted() -> None:
    error = MergeConflict("main", [FileConflict(path=f"{number}", reason="x") for number in range(30)])
    assert error.message.endswith("and 10 more")
    assert len(error.message.splitlines()) == 22


@pytest.mark.requirement("C2")
async def test_who_holds_a_branch_is_told(http: httpx2.AsyncClient, api: Api) -> None:
    since = datetime(2026, 11, 15, 20, 0, tzinfo=UTC)
    api.leaving.fails = LeaseHeld("the branch 'main'", holder="session x", since=since, waited=300, queue_length=2)
    answer = await http.post(f"{PATH}/merge", json={})
    assert answer.status_code == 409
    assert "session x, since 2026-11-15 20:00:00 UTC. Waited 300 s" in answer.json()["error"]["message"]
    api.leaving.fails = BranchCheckedOut("main", "app")
    assert "footplate apply" in (await http.post(f"{PATH}/merge", json={})).json()["error"]["help"]
    api.leaving.fails = LeaseLost("the branch")
    answer = await http.post(f"{PATH}/merge", json={})
    assert (answer.status_code, answer.headers["x-should-retry"]) == (503, "true")


async def test_a_bundle_is_a_stream(http: httpx2.AsyncClient, api: Api) -> None:
    api.leaving.pieces = [b"# v2 git bundle\n", b"\xff"]
    answer = await http.get(f"{PATH}/bundle", params={"project_id": "proj_1"})
    assert (answer.content, answer.headers["content-type"]) == (b"# v2 git bundle\n\xff", "application/x-git-bundle")
    assert api.leaving.asked == [("sesn_1", DeliveryRequest(project_id="proj_1", writes=False))]
    api.leaving.fails = BranchCheckedOut("x", "y")
    assert (await http.get(f"{PATH}/bundle")).status_code == 409
    assert api.leaving.open == 0
